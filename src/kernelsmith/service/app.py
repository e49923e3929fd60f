"""The service's HTTP face: routes, and one place where errors become answers."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from fastapi import Depends, FastAPI, Path, Query
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kernelsmith import __version__
from kernelsmith.domain.codec import Json, encode
from kernelsmith.errors import SmithError, UsageError
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.service import schema
from kernelsmith.service.door import Door, Refused
from kernelsmith.service.fleet import Fleet
from kernelsmith.service.limits import Limits, TooMuch
from kernelsmith.service.metrics import Labels, Metrics
from kernelsmith.service.page import page
from kernelsmith.service.queue import Queue
from kernelsmith.service.store import KeyTaken
from kernelsmith.service.wire import MAX_KEY, Request, ServerInfo, Ticket, read_json, read_requests
from kernelsmith.service.writer import StoreUnavailable

WAIT_S = 60.0
"""How long one request may wait for an answer; ask again after it."""
_STREAM_IDS = 10_000
_LARGE = 1 << 16
"""Bodies above this are read in a thread, so that others do not wait for it."""
_QUIET_S = 15.0
"""A stream says at least an empty line this often, so that nobody takes it for dead."""
_ID = Path(pattern="^[0-9a-f]{32}$", description="As the submission's answer gave it.")
_KEY = Query(min_length=1, max_length=MAX_KEY, description="As the client chose it.")
_WAIT = Query(0.0, ge=0.0, le=WAIT_S, description="Seconds to wait for it to be over.")


class JudgeDiffers(SmithError):
    """The client wants another version of the judge than this server has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Everything that answers need."""

    queue: Queue
    fleet: Fleet
    door: Door
    limits: Limits
    metrics: Metrics


def make_app(service: Service) -> FastAPI:
    """Put the routes together."""
    app = FastAPI(
        title="Kernel-Smith evaluation service", version=__version__, redoc_url=None, docs_url=None,
        description="Judges candidates on tasks; see docs/service.md.",
    )  # fmt: skip
    queue, fleet, door, metrics = service.queue, service.fleet, service.door, service.metrics
    admitted = Depends(door.admit)

    @app.get("/healthz", tags=["health"], responses=schema.plain("The server runs."))
    async def healthz() -> Response:
        """Whether the server runs; needs no token and says nothing else."""
        return _json({"status": "ok"})

    @app.get("/readyz", tags=["health"], responses=schema.plain("A device is up.", 503))
    async def readyz() -> Response:
        """Whether any device is up; needs no token and says nothing else."""
        ready = any(each.state == "up" for each in fleet.statuses())
        return _json({"status": "ok" if ready else "no device is up"}, 200 if ready else 503)

    @app.get("/v1/server", tags=["about"], responses=schema.answers("ServerInfo"))
    async def server(client: str = admitted) -> Response:
        """Version, judge, devices and limits."""
        del client
        info = ServerInfo(
            version=__version__, judge=JUDGE, devices=fleet.statuses(),
            max_batch=service.limits.batch, max_body_bytes=service.limits.body_bytes,
        )  # fmt: skip
        return _json(encode(info))

    @app.get("/v1/devices", tags=["about"], responses=schema.answers("Devices"))
    async def devices(client: str = admitted) -> Response:
        """Each place where judging happens, and how it is."""
        del client
        return _json({"devices": [encode(each) for each in fleet.statuses()]})

    @app.get("/v1/backends", tags=["about"], responses=schema.answers("Backends"))
    async def backends(client: str = admitted) -> Response:
        """What can be judged here, on which devices."""
        del client
        return _json({"backends": _backends(fleet)})

    @app.get("/v1/health", tags=["health"], responses=schema.answers("Health"))
    async def health(client: str = admitted) -> Response:
        """How the service is: devices by state, what waits, what is quarantined."""
        del client
        states = [each.state for each in fleet.statuses()]
        counts: dict[str, Json] = {state: states.count(state) for state in sorted(set(states))}
        return _json(
            {
                "status": "ok" if states and set(states) == {"up"} else "degraded",
                "devices": counts, "queued": len(queue), "quarantined": len(queue.quarantined()),
            }
        )  # fmt: skip

    @app.post(
        "/v1/requests", tags=["requests"], openapi_extra=schema.body("Submission"),
        responses=schema.answers("Tickets", 202, 408, 409, 413, 415, 429, 503),
    )  # fmt: skip
    async def submit(http: HttpRequest, wait: float = _WAIT, client: str = admitted) -> Response:
        """Ask for evaluations, all of them or none; answered when they last on disk.

        200 where all are over, 202 where some are not. The same key again is the same request.
        """
        requests = await _read(http, service)
        tickets = await queue.submit(client, requests, fleet.devices())
        if wait > 0:
            with door.waiting(client):
                tickets = await _all_over(queue, client, tickets, wait)
        over = all(each.state.is_final for each in tickets)
        body = ", ".join(each.to_text() for each in tickets)
        return _text(f'{{"requests": [{body}]}}', 200 if over else 202)

    @app.get("/v1/requests/{id}", tags=["requests"], responses=schema.answers("Ticket", 404, 429))
    async def poll(id: str = _ID, wait: float = _WAIT, client: str = admitted) -> Response:
        """What became of a request; waits for it to be over if asked to."""
        with door.waiting(client):
            return _ticket(await queue.wait(client, id, wait))

    @app.delete(
        "/v1/requests/{id}", tags=["requests"], responses=schema.answers("Ticket", 404, 503)
    )
    async def cancel(id: str = _ID, client: str = admitted) -> Response:
        """Give a request up; one that is over stays as it is."""
        return _ticket(await queue.cancel(client, id))

    @app.delete("/v1/requests", tags=["requests"], responses=schema.answers("Ticket", 404, 503))
    async def cancel_by_key(key: str = _KEY, client: str = admitted) -> Response:
        """The same by the key that it was submitted under."""
        id = queue.id_of(client, key)
        if id is None:
            raise Refused(404, "not_found", "no request of yours has this key")
        return _ticket(await queue.cancel(client, id))

    @app.post(
        "/v1/stream", tags=["requests"], openapi_extra=schema.body("Ids"),
        responses=schema.stream(408, 413, 415, 429),
    )  # fmt: skip
    async def stream(http: HttpRequest, client: str = admitted) -> Response:
        """Tickets as their requests are over, one line of JSON each (NDJSON).

        Requests that this client does not have are left out; the stream ends after the last one.
        """
        ids = _ids(read_json(await door.body(http)))
        return StreamingResponse(_tickets(service, client, ids), media_type="application/x-ndjson")

    @app.get("/v1/quarantine", tags=["about"], responses=schema.answers("Quarantine"))
    async def quarantine(client: str = admitted) -> Response:
        """Candidates that no worker survived; they are not tried any more."""
        del client
        return _json({"candidates": [dict(each) for each in queue.quarantined()]})

    @app.delete(
        "/v1/quarantine/{candidate}", tags=["about"], responses=schema.answers("Released", 503)
    )
    async def release(
        candidate: str = Path(pattern="^[0-9a-f]{12}$"), client: str = admitted
    ) -> Response:
        """Let a candidate be tried again."""
        del client
        return _json({"released": await queue.release(candidate)})

    @app.get("/metrics", tags=["health"], responses=schema.text("Prometheus' text form."))
    async def measured(client: str = admitted) -> Response:
        """Counts, spans and gauges for Prometheus."""
        del client
        return Response(metrics.text(_gauges(service)), media_type="text/plain; version=0.0.4")

    @app.get("/docs", include_in_schema=False)
    async def described() -> Response:
        """What can be asked, for people."""
        return Response(page(app.openapi()), media_type="text/html; charset=utf-8")

    _add_errors(app, metrics)
    app.add_middleware(Counting, metrics=metrics)
    app.openapi = lambda: schema.openapi(app)  # type: ignore[method-assign]
    return app


async def _read(http: HttpRequest, service: Service) -> list[Request]:
    """Read a submission and refuse what cannot be judged here."""
    body = await service.door.body(http)
    if len(body) > _LARGE:
        requests = await asyncio.to_thread(_parsed, body, service.limits)
    else:
        requests = _parsed(body, service.limits)
    for index, request in enumerate(requests):
        if request.judge not in (None, JUDGE):
            raise JudgeDiffers(f"this server judges with {JUDGE!r}; asked for {request.judge!r}")
        if trouble := _unfit(request, service.fleet):
            raise UsageError(f"requests[{index}]: {trouble}")
    return requests


def _parsed(body: bytes, limits: Limits) -> list[Request]:
    requests = read_requests(read_json(body), limits.batch)
    for index, request in enumerate(requests):
        try:
            limits.check(request)
        except UsageError as error:
            raise UsageError(f"requests[{index}]: {error}") from error
    return requests


def _unfit(request: Request, fleet: Fleet) -> str | None:
    backend = request.candidate.backend
    if backend not in fleet.backends:
        return f"no backend {backend!r} here; this server has {', '.join(fleet.backends)}"
    posts = [each for each in fleet.statuses() if each.backend == backend]
    known = {each.device.name for each in posts if each.device is not None}
    is_known = request.device in known or any(each.device is None for each in posts)
    if request.device is not None and not is_known:
        return f"no device {request.device!r} here; this server has {', '.join(sorted(known))}"
    return None


async def _all_over(queue: Queue, client: str, tickets: list[Ticket], wait: float) -> list[Ticket]:
    deadline = time.monotonic() + wait
    found = []
    for ticket in tickets:
        left = deadline - time.monotonic()
        if not ticket.state.is_final:
            ticket = await queue.wait(client, ticket.id, left) or ticket
        found.append(ticket)
    return found


async def _tickets(service: Service, client: str, ids: list[str]) -> AsyncIterator[str]:
    queue = service.queue
    with service.door.waiting(client), queue.bell.watching(ids) as watch:
        for id in ids:
            ticket = queue.ticket(client, id)
            if ticket is None or ticket.state.is_final:
                queue.bell.forget(watch, id)
            if ticket is not None and ticket.state.is_final:
                yield ticket.to_text() + "\n"
        while True:
            over = await watch.next(_QUIET_S)
            for id in over:
                if (ticket := queue.ticket(client, id)) is not None:
                    yield ticket.to_text() + "\n"
            if watch.ended or (not over and not watch.pending):
                return
            if not over:
                yield "\n"


def _ids(said: Json) -> list[str]:
    ids = said.get("ids") if isinstance(said, dict) and set(said) == {"ids"} else None
    if not isinstance(ids, list) or not 1 <= len(ids) <= _STREAM_IDS:
        raise UsageError(f'the body is {{"ids": [...]}} with 1 to {_STREAM_IDS} ids')
    found = list(dict.fromkeys(each for each in ids if isinstance(each, str)))
    if len(found) != len(ids) or not all(len(each) == 32 and each.isalnum() for each in found):
        raise UsageError("an id is a text as a submission's answer gave it, and named once")
    return found


def _backends(fleet: Fleet) -> list[Json]:
    found: list[Json] = []
    for name in fleet.backends:
        posts = [each for each in fleet.statuses() if each.backend == name]
        names = sorted({each.device.name for each in posts if each.device is not None})
        up = sum(each.state == "up" for each in posts)
        found.append({"name": name, "devices": list(names), "posts": len(posts), "up": up})
    return found


def _gauges(service: Service) -> list[tuple[str, str, list[tuple[Labels, float]]]]:
    depths: dict[Labels, float] = {}
    for (backend, _), depth in service.queue.line.depths():
        label = (("backend", backend),)
        depths[label] = depths.get(label, 0) + depth
    states: list[tuple[Labels, float]] = [
        (
            (("backend", each.backend), ("number", str(each.number)), ("state", each.state)),
            1.0,
        )
        for each in service.fleet.statuses()
    ]
    return [
        ("queued", "Requests that wait.", list(depths.items()) or [((), 0.0)]),
        ("posts", "Posts by state.", states),
        (
            "quarantined",
            "Candidates that are not tried any more.",
            [((), float(len(service.queue.quarantined())))],
        ),
    ]


def _ticket(ticket: Ticket | None) -> Response:
    if ticket is None:
        raise Refused(404, "not_found", "no request of yours has this id")
    return _text(ticket.to_text())


def _json(value: Json, status: int = 200) -> Response:
    return _text(json.dumps(value), status)


def _text(text: str, status: int = 200) -> Response:
    return Response(text, status, media_type="application/json")


_STATUS: dict[type[SmithError], tuple[int, str]] = {
    UsageError: (422, "invalid"),
    KeyTaken: (409, "key_taken"),
    JudgeDiffers: (409, "judge_differs"),
    TooMuch: (429, "too_much"),
    StoreUnavailable: (503, "store"),
}


def _add_errors(app: FastAPI, metrics: Metrics) -> None:
    """Answer every failure in one form; what is not foreseen says nothing about the server."""

    def answer(status: int, code: str, message: str, after_s: float | None = None) -> Response:
        metrics.count("refused_total", code=code)
        response = _json({"error": {"code": code, "message": message}}, status)
        if after_s is not None:
            response.headers["retry-after"] = str(max(1, round(after_s)))
        if status == 401:
            response.headers["www-authenticate"] = "Bearer"
        return response

    @app.exception_handler(SmithError)
    async def known(_: HttpRequest, error: SmithError) -> Response:
        if isinstance(error, Refused):
            return answer(error.status, error.code, str(error))
        status, code = _STATUS.get(type(error), (500, "internal"))
        after_s = error.after_s if isinstance(error, TooMuch) else 5.0 if status == 503 else None
        return answer(status, code, str(error) if status != 500 else "our fault", after_s)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: HttpRequest, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(each) for each in first.get("loc", ()))
        return answer(422, "invalid", f"{where}: {first.get('msg', 'not valid')}")

    @app.exception_handler(HTTPException)
    async def refused(_: HttpRequest, error: HTTPException) -> Response:
        response = answer(error.status_code, "http", str(error.detail))
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    async def defect(_: HttpRequest, error: Exception) -> Response:
        del error  # the server's log has it
        return answer(500, "internal", "our fault; the server's log says more")


class Counting:
    """Counts requests by status and how long they took."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and look at what is sent."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.monotonic()

        async def seen(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.count("http_total", status=str(message["status"]))
            await send(message)

        try:
            await self._app(scope, receive, seen)
        finally:
            self._metrics.span("http_seconds", time.monotonic() - begun)
