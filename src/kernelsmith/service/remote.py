"""The evaluator over HTTP: the same protocol as the local one, with retries that are safe.

Every evaluation has a key that it keeps over all retries, so a request that was sent twice is
judged once. The server's judge and device are pinned when the first one is asked for.
"""

import asyncio
import contextlib
import json
import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self, cast

import httpx

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import Json, decode, encode
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.errors import BackendUnavailable, EvaluationLost, UsageError
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.evaluate.settings import Settings
from kernelsmith.service.wire import API, USUAL, Request, ServerInfo, State, Ticket

_WAIT_S = 25.0
_FIRST_S, _MOST_S = 0.2, 10.0
"""Pauses between retries: doubled from the first to the most, with some luck in it."""
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that say nothing about the request: it is sent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a client puts up with a server that does not answer."""

    contact_s: float = 600.0
    """Without any answer; a queue that is long is waited for without end."""
    first_s: float = 20.0
    """The same before anything was answered: an address that is wrong is noticed soon."""
    connect_s: float = 10.0


class RemoteEvaluator:
    """Judges on a server. One may be used by many tasks of a loop at a time."""

    def __init__(
        self,
        url: str,
        *,
        backend: str,
        settings: Settings | None = None,
        token: str | None = None,
        device: str | None = None,
        cache: bool = True,
        priority: int = 5,
        in_flight: int = 256,
        patience: Patience | None = None,
    ) -> None:
        """Say where and how; nothing is sent yet.

        Args:
            url: Of the server, such as ``http://127.0.0.1:8471``.
            backend: What candidates are for.
            settings: How thorough the judge is.
            token: Whose requests they are, where the server asks for it.
            device: The name of the device to judge on; the server's first of the backend if absent.
            cache: Whether an evaluation that the server has already will do.
            priority: Among requests with the same token; 9 goes first.
            in_flight: Requests at a time; more wait here.
            patience: How long to put up with silence.

        Raises:
            UsageError: The address is none.
        """
        self._url = checked_url(url)
        self._backend, self._settings = backend, settings or USUAL
        self._token, self._device, self._cache = token, device, cache
        self._priority, self._in_flight = priority, in_flight
        self._patience = patience or Patience()
        self._session: _Session | None = None
        self._pinned: Device | None = None

    async def evaluate(
        self, task: Task, candidate: Candidate, *, baseline: Candidate | None = None
    ) -> Evaluation:
        """Have it judged there; gives the request up when cancelled."""
        session = self._here()
        if self._pinned is None:
            await self.connect()
        assert self._pinned is not None
        request = Request(
            task=task, candidate=candidate, baseline=baseline, settings=self._settings,
            key=uuid.uuid4().hex, priority=self._priority, device=self._pinned.name, judge=JUDGE,
            cache=self._cache,
        )  # fmt: skip
        async with session.turns:
            return await self._judged(session, request)

    async def connect(self) -> Device:
        """Ask the server who it is, and return the device that will be judged on.

        Raises:
            UsageError: Its judge is of another version, or it has no such backend or device.
            BackendUnavailable: It has, and none of them is up.
            EvaluationLost: It does not answer.
        """
        found = _server_info(await self._here().call("GET", "/v1/server"), self._url)
        posts = [each for each in found.devices if each.backend == self._backend]
        if not posts:
            has = ", ".join(sorted({each.backend for each in found.devices}))
            raise UsageError(f"{self._url} has no backend {self._backend!r}; it has {has}")
        known = {each.device.name: each.device for each in posts if each.device is not None}
        if not known and any(each.state == "starting" for each in posts):
            await asyncio.sleep(_FIRST_S)
            return await self.connect()
        if not known:
            raise BackendUnavailable(
                f"{self._url} has no device for {self._backend!r} that is up: {posts[0].message}"
            )
        name = self._device or next(iter(known))
        if name not in known:
            raise UsageError(
                f"{self._url} has no device {name!r} for {self._backend!r}; "
                f"it has {', '.join(known)}"
            )
        self._pinned = known[name]
        return self._pinned

    async def close(self) -> None:
        """Close connections. Does no harm twice."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _here(self) -> "_Session":
        """Connections belong to a loop; in another one there are new ones."""
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.loop is not loop:
            self._session = _Session(
                self._url, token=self._token, in_flight=self._in_flight, patience=self._patience
            )
        return self._session

    async def _judged(self, session: "_Session", request: Request) -> Evaluation:
        ticket: Ticket | None = None
        try:
            while True:
                if ticket is None:
                    body: Json = {"requests": [encode(request)]}
                    said = await session.call("POST", f"/v1/requests?wait={_WAIT_S}", body)
                    listed = cast(dict[str, list[Json]], said)["requests"]
                    ticket = Ticket.from_json(listed[0])
                elif not ticket.state.is_final:
                    path = f"/v1/requests/{ticket.id}?wait={_WAIT_S}"
                    found = await session.call("GET", path, missing_ok=True)
                    # A server that has lost its disk is told again; the key is the same.
                    ticket = None if found is None else Ticket.from_json(found)
                else:
                    return _outcome(ticket, request.candidate)
        except asyncio.CancelledError:
            assert request.key is not None
            session.give_up(request.key)  # by its key: the answer with its id may be under way
            raise


class _Session:
    """Connections in one event loop."""

    def __init__(self, url: str, *, token: str | None, in_flight: int, patience: Patience) -> None:
        self.loop = asyncio.get_running_loop()
        self.turns = asyncio.Semaphore(in_flight)
        self._patience, self._url = patience, url
        self._asides: set[asyncio.Task[None]] = set()
        self._answered = False
        self._client = httpx.AsyncClient(
            base_url=url,
            headers={} if token is None else {"authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(_WAIT_S + 15.0, connect=patience.connect_s),
            limits=httpx.Limits(max_connections=in_flight + 8, keepalive_expiry=60.0),
            trust_env=False,  # a proxy of the environment's has no business with tokens of ours
        )

    async def call(
        self, method: str, path: str, body: Json = None, *, missing_ok: bool = False
    ) -> Json:
        """Ask until there is an answer that means something.

        Raises:
            UsageError: The server refuses the request as it is.
            EvaluationLost: There was no answer for too long.
        """
        content = None if body is None else json.dumps(body).encode()
        heads = {} if content is None else {"content-type": "application/json"}
        since, pause = self.loop.time(), _FIRST_S
        while True:
            after = 0.0
            try:
                reply = await self._client.request(method, path, content=content, headers=heads)
                trouble = f"it answered {reply.status_code}"
                if reply.status_code not in _AGAIN:
                    self._answered = True
                    return self._meant(reply, missing_ok)
                if reply.status_code in (429, 503):
                    since = self.loop.time()  # it is there, and has too much to do
                    after = _retry_after(reply.headers)
            except httpx.HTTPError as error:
                trouble = str(error) or type(error).__name__
            limit = self._patience.contact_s if self._answered else self._patience.first_s
            if self.loop.time() - since > limit:
                raise EvaluationLost(f"no answer from {self._url} for {limit:.0f} s: {trouble}")
            await asyncio.sleep(max(after, pause * random.uniform(0.5, 1.0)))
            pause = min(2 * pause, _MOST_S)

    def give_up(self, key: str) -> None:
        """Tell the server that nobody waits any more, if it can be told at once."""

        async def told() -> None:
            with contextlib.suppress(httpx.HTTPError):
                await self._client.delete("/v1/requests", params={"key": key}, timeout=5.0)

        task = asyncio.create_task(told())
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)

    async def close(self) -> None:
        if self.loop is not asyncio.get_running_loop():
            return  # its loop is over, and its connections with it
        if self._asides:
            await asyncio.wait(self._asides, timeout=6.0)
        await self._client.aclose()

    def _meant(self, reply: httpx.Response, missing_ok: bool) -> Json:
        if reply.status_code == 404 and missing_ok:
            return None
        try:
            said = cast(Json, reply.json())
        except ValueError as error:
            raise UsageError(f"{self._url} is no Kernel-Smith server: no JSON") from error
        if reply.is_success:
            return said
        problem = said.get("error") if isinstance(said, dict) else None
        if not isinstance(problem, dict):
            raise UsageError(f"{self._url} is no Kernel-Smith server: {reply.status_code}")
        message = str(problem.get("message"))
        if problem.get("code") == "judge_differs":
            message = f"{message}; install the same version on both sides"
        if reply.status_code == 401:
            message = f"{message} (set KERNELSMITH_TOKEN)"
        raise UsageError(f"{self._url}: {message}")


async def backends_of(url: str, *, token: str | None = None) -> list[str]:
    """What a server judges for, in its own order.

    Raises:
        UsageError: It is no server, or its judge is of another version.
        EvaluationLost: It does not answer.
    """
    session = _Session(checked_url(url), token=token, in_flight=1, patience=Patience())
    try:
        found = _server_info(await session.call("GET", "/v1/server"), url)
    finally:
        await session.close()
    return list(dict.fromkeys(each.backend for each in found.devices))


def checked_url(url: str) -> str:
    """An address without its last slash.

    Raises:
        UsageError: It is no address of a server, or holds a password.
    """
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise UsageError(f"{url!r} is no address: {error}") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise UsageError(f"{url!r} is no address of a server; one is http://HOST:PORT")
    if parsed.userinfo:
        raise UsageError("an address holds no password here; set KERNELSMITH_TOKEN instead")
    return url.rstrip("/")


def _server_info(said: Json, url: str) -> ServerInfo:
    api = said.get("api") if isinstance(said, dict) else None
    judge = said.get("judge") if isinstance(said, dict) else None
    if api != API:
        raise UsageError(f"{url} speaks version {api} of the service; this client version {API}")
    if judge != JUDGE:
        raise UsageError(
            f"{url} judges with {judge!r}, this installation with {JUDGE!r}: their evaluations do "
            "not compare; install the same version on both sides"
        )
    try:
        found = decode(said, ServerInfo)
    except ValueError as error:
        raise UsageError(f"{url} does not say who it is: {error}") from error
    assert isinstance(found, ServerInfo)
    return found


def _outcome(ticket: Ticket, candidate: Candidate) -> Evaluation:
    """The evaluation, or what its absence means.

    Raises:
        UsageError: The task cannot be judged.
        EvaluationLost: Nobody could judge it.
    """
    found = ticket.evaluation
    if found is not None:
        if found.candidate != candidate.id:
            raise EvaluationLost(f"asked for {candidate.id}, answered for {found.candidate}")
        return found
    if ticket.state is State.REFUSED:
        raise UsageError(ticket.message)
    raise EvaluationLost(f"candidate {candidate.id} is {ticket.state}: {ticket.message}")


def _retry_after(headers: Mapping[str, str]) -> float:
    try:
        return min(60.0, max(0.0, float(headers.get("retry-after", "0"))))
    except ValueError:
        return 0.0
