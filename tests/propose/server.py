"""An OpenAI-compatible server on loopback that answers by script; real HTTP, standard library."""

import json
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """One answer."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0
    cut: bool = False
    """Close the connection in the middle of the body."""


def good(text: str, *, finish: str = "stop", usage: tuple[int, int] | None = (100, 50)) -> Scripted:
    said = {
        "id": "x", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [{"index": 0, "finish_reason": finish,
                     "message": {"role": "assistant", "content": text}}],
    }  # fmt: skip
    if usage is not None:
        said["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    return Scripted(body=json.dumps(said).encode())


def failing(status: int, *, code: str = "", message: str = "no", **headers: str) -> Scripted:
    said = {"error": {"message": message, "type": "error", "code": code or None, "param": None}}
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Scripted(status=status, body=json.dumps(said).encode(), headers=named)


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: dict[str, object] = field(repr=False)


class ScriptedServer:
    """Plays ``script`` in order, one answer a request; the last one is repeated."""

    def __init__(self, script: Iterable[Scripted]) -> None:
        self._script = list(script)
        self._lock = threading.Lock()
        self.requests: list[Request] = []
        played = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(size) or b"{}")
                request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                played._answer(self, played._next(request))

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> "ScriptedServer":
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _next(self, request: Request) -> Scripted:
        with self._lock:
            self.requests.append(request)
            return self._script.pop(0) if len(self._script) > 1 else self._script[0]

    def _answer(self, handler: BaseHTTPRequestHandler, said: Scripted) -> None:
        time.sleep(said.delay_s)
        try:
            handler.send_response(said.status)
            names = {name.lower() for name, _ in said.headers}
            for name, value in said.headers:
                handler.send_header(name, value)
            if "content-type" not in names:
                handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(said.body)))
            handler.end_headers()
            handler.wfile.write(said.body[: len(said.body) // 2] if said.cut else said.body)
            handler.wfile.flush()
        except OSError:
            pass  # the client gave up, as some tests want it to
        if said.cut:
            handler.close_connection = True
