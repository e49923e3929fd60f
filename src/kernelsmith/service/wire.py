"""What goes over the wire: a request, and the ticket that says what became of it."""

import hashlib
import json
import typing
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import Json, decode, encode, loads
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.settings import Settings

API = 1
"""Raised when an older client or server would misread what the other says."""
USUAL = Settings()
PRIORITIES = range(10)
MAX_KEY = 200
_SMALL, _MANY = 1 << 16, 512
"""Texts up to this length are remembered, and so many of them."""


class State(StrEnum):
    """How far a request got. The last five never change again."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    """Judged: there is exactly one evaluation."""
    REFUSED = "refused"
    """The task cannot be judged; the message says why."""
    LOST = "lost"
    """The judge failed again and again, for reasons of its own."""
    QUARANTINED = "quarantined"
    """It brought down one worker after the other and is not tried again."""
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing more will come of it."""
        return self not in (State.QUEUED, State.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One evaluation that somebody wants."""

    task: Task
    candidate: Candidate
    baseline: Candidate | None = None
    """Measured beside it instead of the task's own baseline."""
    settings: Settings = USUAL
    key: str | None = None
    """Chosen by the client: the same key again is the same request, never a second one."""
    priority: int = 5
    """Among the same client's requests: 9 goes first, 0 last. Clients share evenly anyway."""
    device: str | None = None
    """Only on devices of this name; anywhere where absent."""
    judge: str | None = None
    """Only by this version of the judge."""
    cache: bool = True
    """Whether an evaluation of the same content on the same device will do."""

    def __post_init__(self) -> None:
        if self.priority not in PRIORITIES:
            raise ValueError(f"a priority lies in 0 to 9; got {self.priority}")
        if self.key is not None and not 0 < len(self.key) <= MAX_KEY:
            raise ValueError(f"a key has 1 to {MAX_KEY} characters; got {len(self.key)}")
        if self.device is not None and not self.device:
            raise ValueError("a device has a name, or is left out")

    @property
    def subject(self) -> str:
        """Hash of all that is to be judged; who asks, how urgently and under which key is not."""
        sources = (encode(_bare(self.candidate)), encode(_bare(self.baseline)))
        return digest([text_of(self.task), *sources, text_of(self.settings)])


def _bare(candidate: Candidate | None) -> Candidate | None:
    """Without its parent, which says nothing about what it computes."""
    return None if candidate is None else replace(candidate, parent=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """What became of a request so far."""

    id: str
    state: State
    attempts: int = 0
    """How often a worker was given it."""
    message: str = ""
    cached: bool = False
    """Whether the evaluation is one that somebody had asked for before."""
    line: str | None = None
    """The evaluation, as ``codec.dumps`` writes it; present exactly when the state is ``done``."""

    def __post_init__(self) -> None:
        if (self.line is not None) is not (self.state is State.DONE):
            raise ValueError(f"an evaluation goes with done only; got {self.state}")

    @property
    def evaluation(self) -> Evaluation | None:
        """The evaluation, read."""
        found = None if self.line is None else loads(self.line)
        assert found is None or isinstance(found, Evaluation)
        return found

    def to_text(self) -> str:
        """As an answer; the evaluation goes in as it is stored, and is not read for that."""
        head = json.dumps(
            {
                "id": self.id,
                "state": self.state.value,
                "attempts": self.attempts,
                "message": self.message,
                "cached": self.cached,
            }
        )
        return f'{head[:-1]}, "evaluation": {self.line or "null"}}}'

    @classmethod
    def from_json(cls, said: Json) -> "Ticket":
        """Read an answer.

        Raises:
            ValueError: It is not a ticket.
        """
        if not isinstance(said, dict):
            raise ValueError("a ticket is an object")
        rest = dict(said)
        found = rest.pop("evaluation", None)
        line = None if found is None else json.dumps(found, ensure_ascii=False)
        ticket = decode({**rest, "line": line}, cls)
        assert isinstance(ticket, Ticket)
        return ticket


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatus:
    """One place where judging happens, as a client sees it."""

    backend: str
    number: int
    state: str
    """``starting``, ``up``, ``sick`` or ``stopped``."""
    device: Device | None = None
    """Known once it has been up."""
    message: str = ""
    """What was last wrong with it."""
    judged: int = 0
    faults: int = 0
    """Workers that ended without an answer there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """Who answers: what a client must know before it sends anything."""

    version: str
    judge: str
    api: int = API
    devices: tuple[DeviceStatus, ...] = ()
    max_batch: int = 1
    max_body_bytes: int = 1 << 20


def text_of(value: Task | Settings) -> str:
    """One text for one value; many requests share a task and a way of judging."""
    if isinstance(value, Task) and len(value.source) > _SMALL:
        return canonical(encode(value))
    return _text_of(value)


@lru_cache(_MANY)
def _text_of(value: Task | Settings) -> str:
    return canonical(encode(value))


def canonical(value: Json) -> str:
    """One text for one value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Json) -> str:
    """Hash of a value's content."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def content_of(subject: str, device: Device, judge: str) -> str:
    """What a cached evaluation is found by: what was judged, where, by whom."""
    return digest([subject, encode(device), judge])


def read_json(body: bytes | str) -> Json:
    """Read JSON as the standard has it.

    Raises:
        UsageError: It is not JSON, or nobody could mean it.
    """
    try:
        return typing.cast(Json, json.loads(body, parse_constant=_no_constant))
    except RecursionError as error:
        raise UsageError("the body is nested too deeply") from error
    except ValueError as error:
        raise UsageError(f"the body is not JSON: {_short(error)}") from error


def read_requests(body: Json, limit: int) -> list[Request]:
    """Read what a client sends: ``{"requests": [...]}``.

    Raises:
        UsageError: It does not describe requests; the message names the first that is wrong.
    """
    if not isinstance(body, dict) or set(body) != {"requests"}:
        raise UsageError('the body is an object with one field, "requests"')
    listed = body["requests"]
    if not isinstance(listed, list) or not 1 <= len(listed) <= limit:
        raise UsageError(f"requests is a list of 1 to {limit}")
    return [_request(index, each) for index, each in enumerate(listed)]


def _request(index: int, said: Json) -> Request:
    try:
        found = decode(_shared(said), Request)
        assert isinstance(found, Request)
        found.subject  # noqa: B018  # what is no text cannot be hashed, stored or judged
        (found.key or "").encode()
        (found.device or "").encode()
    except RecursionError as error:
        raise UsageError(f"requests[{index}] is nested too deeply") from error
    except ValueError as error:
        raise UsageError(f"requests[{index}]: {_short(error)}") from error
    return found


def _shared(said: Json) -> Json | dict[str, object]:
    """The same with task and settings read already, if they were read before."""
    if not isinstance(said, dict):
        return said
    kinds = {"task": Task, "settings": Settings}
    texts = {name: json.dumps(said[name]) for name in kinds if name in said}
    read = {name: _read(t, kinds[name]) for name, t in texts.items() if len(t) <= _SMALL}
    return {**said, **read}


@lru_cache(_MANY)
def _read(text: str, kind: type) -> object:
    return decode(json.loads(text), kind)


def _no_constant(name: str) -> typing.NoReturn:
    raise ValueError(f"{name} is not JSON")


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:300]} ..."
