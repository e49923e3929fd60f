"""A small OpenAI-compatible server for models that fit on one machine; larger ones have vLLM."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self

import torch

from kernelsmith.errors import UsageError
from kernelsmith.training.recipes.model import Model, Tokens, prompt_ids

_MOST_BODY = 8 << 20
_GATHER_S = 0.01
"""How long the first of a batch waits for others."""


@dataclass(slots=True)
class _Job:
    """One request under way."""

    ids: list[int]
    temperature: float
    top_p: float
    most: int
    seed: int
    done: threading.Event
    answer: list[int] | None = None


class BadRequest(Exception):
    """What the client sent cannot be answered; the text says why."""


class ModelServer:
    """Answers ``/v1/chat/completions`` and ``/v1/models``; requests that meet are batched.

    Args:
        model: In evaluation.
        tokens: Its tokenizer, with a chat template.
        name: What clients call it.
        host: Loopback unless told otherwise: there is no key.
        port: 0 takes a free one.
        batch: Requests answered at a time.
        turn: Held while it generates, where the same device is timed.
    """

    def __init__(
        self, model: Model, tokens: Tokens, *, name: str = "student", host: str = "127.0.0.1",
        port: int = 0, batch: int = 8,
        turn: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:  # fmt: skip
        self._model, self._tokens, self.name = model.eval(), tokens, name
        self._batch, self._turn = batch, turn
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.lock = threading.Lock()
        """Held while the model is used; whoever changes its weights takes it."""
        try:
            self._http = ThreadingHTTPServer((host, port), _handler(self))
        except OSError as error:
            raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from error
        self._http.daemon_threads = True
        self._threads = (
            threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True),
            threading.Thread(target=self._work, daemon=True),
        )

    @property
    def url(self) -> str:
        """The base address, up to and with ``/v1``."""
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}/v1"

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._jobs.put(None)
        for each in self._threads:
            each.join()
        self._http.server_close()

    def completion(self, body: object) -> dict[str, object]:
        """Answer one request.

        Raises:
            BadRequest: It makes no sense.
        """
        job = self._job(body)
        self._jobs.put(job)
        job.done.wait()
        if job.answer is None:
            raise BadRequest("the server is shutting down")
        ended = bool(job.answer) and job.answer[-1] == self._tokens.eos_token_id
        text = self._tokens.decode(job.answer, skip_special_tokens=True)
        return {
            "id": f"chatcmpl-{time.monotonic_ns()}", "object": "chat.completion",
            "created": int(time.time()), "model": self.name,
            "choices": [{"index": 0, "finish_reason": "stop" if ended else "length",
                         "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": len(job.ids), "completion_tokens": len(job.answer),
                      "total_tokens": len(job.ids) + len(job.answer)},
        }  # fmt: skip

    def _job(self, body: object) -> _Job:
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            raise BadRequest("a request has messages")
        said = body["messages"]
        if not said or not all(
            isinstance(m, dict) and isinstance(m.get("role"), str)
            and isinstance(m.get("content"), str) for m in said
        ):  # fmt: skip
            raise BadRequest("a message has a role and a text")
        if body.get("stream"):
            raise BadRequest("this server does not stream; leave out stream")
        ids = prompt_ids(self._tokens, [{"role": m["role"], "content": m["content"]} for m in said])
        room = int(getattr(self._model.config, "max_position_embeddings", 1 << 30)) - len(ids)
        if room < 1:
            raise BadRequest(f"the prompt has {len(ids)} tokens, more than the model's context")
        most = body.get("max_tokens") or body.get("max_completion_tokens") or 256
        return _Job(
            ids=ids, temperature=_number(body, "temperature", 1.0, 0.0, 100.0),
            top_p=_number(body, "top_p", 1.0, 1e-6, 1.0), most=max(1, min(_count(most), room)),
            seed=_count(body.get("seed", 0)), done=threading.Event(),
        )  # fmt: skip

    def _work(self) -> None:
        while True:
            first = self._jobs.get()
            if first is None:
                break
            jobs = [first]
            until = time.monotonic() + _GATHER_S
            while len(jobs) < self._batch:
                try:
                    more = self._jobs.get(timeout=max(0.0, until - time.monotonic()))
                except Empty:
                    break
                if more is None:
                    self._jobs.put(None)
                    break
                jobs.append(more)
            try:
                with self._turn(), self.lock:
                    answers = generate(self._model, self._tokens, jobs)
                for job, answer in zip(jobs, answers, strict=True):
                    job.answer = answer
            finally:
                for job in jobs:
                    job.done.set()


def generate(model: Model, tokens: Tokens, jobs: Sequence[_Job]) -> list[list[int]]:
    """Answer several requests at once, each with its own temperature and its own seed.

    Rows are padded and drawn one by one from the logits, so that a request gets the same answer
    whoever else is in its batch.
    """
    end, pad = tokens.eos_token_id, tokens.pad_token_id
    longest = max(len(job.ids) for job in jobs)
    ids = torch.tensor([[pad] * (longest - len(job.ids)) + job.ids for job in jobs])
    mask = torch.tensor([[0] * (longest - len(job.ids)) + [1] * len(job.ids) for job in jobs])
    ids, mask = ids.to(model.device), mask.to(model.device)
    draws = [torch.Generator().manual_seed(job.seed) for job in jobs]
    answers: list[list[int]] = [[] for _ in jobs]
    active = set(range(len(jobs)))
    past = None
    with torch.no_grad():
        for _ in range(max(job.most for job in jobs)):
            places = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            out = model(input_ids=ids, attention_mask=mask, position_ids=places,
                        past_key_values=past, use_cache=True)  # fmt: skip
            past = out.past_key_values
            logits = out.logits[:, -1].float().cpu()
            following = [pad] * len(jobs)
            for row in sorted(active):
                token = _drawn(logits[row], jobs[row], draws[row])
                answers[row].append(token)
                following[row] = token
                if token == end or len(answers[row]) >= jobs[row].most:
                    active.discard(row)
            if not active:
                break
            ids = torch.tensor(following, device=model.device)[:, None]
            mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)
    return answers


def _drawn(logits: torch.Tensor, job: _Job, draw: torch.Generator) -> int:
    if job.temperature == 0:
        return int(logits.argmax())
    shares = torch.softmax(logits / job.temperature, -1)
    ranked, order = shares.sort(descending=True)
    inside = ranked.cumsum(-1) - ranked < job.top_p
    ranked = torch.where(inside, ranked, torch.zeros_like(ranked))
    return int(order[torch.multinomial(ranked, 1, generator=draw)])


def _number(body: dict[str, object], name: str, usual: float, low: float, high: float) -> float:
    value = body.get(name, usual)
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise BadRequest(f"{name} is a number from {low:g} to {high:g}")
    return float(value)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadRequest("counts and seeds are whole numbers, not negative")
    return value


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path.rstrip("/") == "/v1/models":
                listed = [{"id": server.name, "object": "model", "owned_by": "kernelsmith"}]
                self._reply(200, {"object": "list", "data": listed})
            else:
                self._refuse(404, "there is /v1/models and /v1/chat/completions")

        def do_POST(self) -> None:
            size = self.headers.get("Content-Length", "")
            if not size.isdigit() or int(size) > _MOST_BODY:
                self.close_connection = True
                self._refuse(413, f"a body has a length, up to {_MOST_BODY} bytes")
                return
            raw = self.rfile.read(int(size))
            if self.path.rstrip("/") != "/v1/chat/completions":
                self._refuse(404, "there is /v1/models and /v1/chat/completions")
                return
            try:
                self._reply(200, server.completion(json.loads(raw)))
            except BadRequest as error:
                self._refuse(400, str(error))
            except (ValueError, RecursionError):
                self._refuse(400, "the body is not JSON")

        def _refuse(self, status: int, why: str) -> None:
            self._reply(status, {"error": {"message": why, "type": "invalid_request_error"}})

        def _reply(self, status: int, said: object) -> None:
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    return Handler
