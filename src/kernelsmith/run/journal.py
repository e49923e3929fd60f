"""The journal: an append-only file in which a run can be read, resumed and trained on.

``docs/journal.md`` describes the lines. What has been synced survives ``kill -9`` and power loss;
what was appended since the last sync may be lost, and is then simply done again.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import Json, decode, encode
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Proposal, Step
from kernelsmith.errors import UsageError
from kernelsmith.run.config import RunConfig
from kernelsmith.run.recorded import SCHEMA, Header, Judged, Recorded, Session, Stage
from kernelsmith.run.texts import Packer, Unpacker, line
from kernelsmith.run.toml import from_table, to_table


class Journal:
    """The one writer of a journal. Appending buffers; ``sync`` makes it last, many lines at a time.

    Opened by ``create`` or ``open``, which lock the file until ``close`` or the process's end.
    """

    def __init__(self, fd: int, packer: Packer) -> None:
        self._fd, self._packer = fd, packer
        self._pending: list[bytes] = []
        self.appended: Callable[[], None] | None = None
        """Called after each line, by whoever must know that there is something to sync."""
        self.elapsed: Callable[[], float] | None = None
        """Running time of the run, which lines tell: a session that is cut short has had some."""
        self.asked: dict[int, float] = {}
        """When a proposal was asked for, in running time, by number of the ask."""

    @classmethod
    def create(cls, path: Path, header: Header) -> "Journal":
        """Begin a journal; its header lasts when this returns.

        Raises:
            UsageError: There is a journal already, or none can be written here.
        """
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        try:
            fd = os.open(draft, flags, 0o644)
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from error
        journal = cls(_locked(fd, path), Packer())
        journal._append(
            {
                "schema": SCHEMA,
                "run": header.run,
                "started": header.started,
                "versions": dict(header.versions),
                "seed": header.seed,
                "config": _json(header.config),
                "task": encode(header.task),
                "device": encode(header.device),
            }
        )
        journal.sync()
        try:
            os.link(draft, path)  # a journal is there with its header, or not at all
        except FileExistsError:
            journal.close()
            raise UsageError(
                f"{path} exists; go on with it: kernelsmith resume {path.parent}"
            ) from None
        finally:
            os.unlink(draft)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return journal

    @classmethod
    def open(cls, path: Path) -> "Journal":
        """Go on with a journal; a torn last line is cut off.

        Raises:
            UsageError: There is none, or another process writes it.
        """
        try:
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise UsageError(f"no journal {str(path)!r}: {error.strerror}") from error
        _locked(fd, path)
        packer, whole = Packer(), 0
        for content, end in _lines(path):
            whole = end
            for key in ("text", "value"):
                if key in content:
                    packer.remember(str(content[key]))
        os.ftruncate(fd, whole)
        return cls(fd, packer)

    def append_proposal(self, number: int, proposal: Proposal) -> None:
        """Write down what ask ``number`` got, before it costs an evaluation."""
        asked = {"asked": round(self.asked[number], 3)} if number in self.asked else {}
        self._append({"proposal": number, **self._now(), **asked, "body": self._packed(proposal)})

    def append_judged(self, number: int, judged: Judged) -> None:
        """Write down what an evaluator said about the candidate of ask ``number``."""
        self._append(
            {
                "judged": number,
                **self._now(),
                "stage": judged.stage.value,
                "candidate": self._packed(judged.candidate),
                "evaluation": self._packed(judged.evaluation),
                "lost": self._packed(judged.lost),
            }
        )

    def _now(self) -> dict[str, Json]:
        return {} if self.elapsed is None else {"at": round(self.elapsed(), 3)}

    def append_step(self, step: Step, *, at_s: float = 0.0) -> None:
        """Write down a step that search has been told, ``at_s`` seconds into the run."""
        number = step.brief.number
        self._append({"step": number, "at": round(at_s, 3), "body": self._packed(step)})

    def append_adapted(self, number: int, weights: str) -> None:
        """Write down that the proposer has other weights since step ``number``: their hash."""
        self._append({"adapted": number, "weights": weights})

    def append_drained(self, number: int) -> None:
        """Write down that everything before ask ``number`` was told before it was asked."""
        self._append({"drained": number})

    def append_session(self, session: Session) -> None:
        """Write down that a process takes the run up again."""
        self._append(
            {
                "resumed": session.started,
                "versions": dict(session.versions),
                "config": _json(session.config),
            }
        )

    @property
    def is_synced(self) -> bool:
        """Whether all that was appended lasts."""
        return not self._pending

    def sync(self) -> None:
        """Make everything appended so far last, with one write and one flush to the disk."""
        if self._pending:
            self.write()
            self.harden()

    def write(self) -> None:
        """Hand what was appended to the operating system; ``harden`` must follow.

        Raises:
            UsageError: The disk is full, or gone; what was synced before is safe.
        """
        data = memoryview(b"\n".join([*self._pending, b""]))
        self._pending.clear()
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError as error:
            raise _unwritable(error) from error

    def harden(self) -> None:
        """Wait until what was written is on the disk; may run in a thread beside appends.

        Raises:
            UsageError: As for ``write``.
        """
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            raise _unwritable(error) from error

    def close(self) -> None:
        """Sync and let go of the file; again does nothing."""
        if self._fd >= 0:
            try:
                self.sync()
            finally:
                os.close(self._fd)
                self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _packed(self, value: object) -> Json:
        before, packed = self._packer.pack(value)
        self._pending += before
        return packed

    def _append(self, content: Mapping[str, Json]) -> None:
        self._pending.append(line(content))
        if self.appended is not None:
            self.appended()


def read(path: Path) -> Recorded:
    """Read a journal, also while it is being written; a torn last line is not there yet.

    Raises:
        UsageError: There is none, it is of another version, or it is damaged before its end.
    """
    reader = _Reader()
    for number, (content, _) in enumerate(_lines(path), 1):
        try:
            reader.take(content)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{path}, line {number} is damaged: {error!r}") from error
    if reader.header is None:
        raise UsageError(f"{path} is no journal: its first line is no header of {SCHEMA!r}")
    return Recorded(
        header=reader.header,
        steps=tuple(reader.steps),
        proposals=reader.proposals,
        judged=reader.judged,
        drained=tuple(reader.drained),
        adapted=reader.adapted,
        sessions=tuple(reader.sessions),
        elapsed_s=reader.elapsed_s,
        asked=reader.asked,
    )


class _Reader:
    """Takes line after line."""

    def __init__(self) -> None:
        self.header: Header | None = None
        self.steps: list[Step] = []
        self.proposals: dict[int, Proposal] = {}
        self.judged: dict[tuple[int, Stage], Judged] = {}
        self.drained: list[int] = []
        self.adapted: dict[int, str] = {}
        self.sessions: list[Session] = []
        self.elapsed_s = 0.0
        self.asked: dict[int, float] = {}
        self._unpacker = Unpacker()

    def take(self, content: Mapping[str, object]) -> None:
        if self.header is None:
            self.header = _header(content)
        elif self._unpacker.take(content):
            pass
        elif "step" in content:
            step = decode(self._unpacker.plain(content["body"]), Step)
            assert isinstance(step, Step)
            if step.brief.number != len(self.steps):
                raise ValueError(f"step {len(self.steps)} is missing before {step.brief.number}")
            self.steps.append(step)
        elif "proposal" in content:
            proposal = self._unpacker.plain(content["body"])
            assert isinstance(proposal, Proposal)
            number = int(str(content["proposal"]))
            self.proposals[number] = proposal
            if "asked" in content:
                self.asked[number] = float(str(content["asked"]))
        elif "judged" in content:
            judged = self._judged(content)
            self.judged[int(str(content["judged"])), judged.stage] = judged
        elif "drained" in content:
            self.drained.append(int(str(content["drained"])))
        elif "adapted" in content:
            self.adapted[int(str(content["adapted"]))] = str(content["weights"])
        elif "resumed" in content:
            self.sessions.append(_session(content))
        else:
            raise ValueError(f"no such line: {', '.join(content)}")
        if "at" in content:
            self.elapsed_s = max(self.elapsed_s, float(str(content["at"])))

    def _judged(self, content: Mapping[str, object]) -> Judged:
        candidate = self._unpacker.plain(content["candidate"])
        evaluation = self._unpacker.plain(content["evaluation"])
        assert isinstance(candidate, Candidate)
        assert evaluation is None or isinstance(evaluation, Evaluation)
        return Judged(
            stage=Stage(str(content["stage"])),
            candidate=candidate,
            evaluation=evaluation,
            lost=str(self._unpacker.plain(content["lost"])),
        )


def _header(content: Mapping[str, object]) -> Header:
    if content.get("schema") != SCHEMA:
        raise ValueError(f"not a header of {SCHEMA!r}")
    task = decode(content["task"], Task)
    device = None if content["device"] is None else decode(content["device"], Device)
    assert isinstance(task, Task)
    assert device is None or isinstance(device, Device)
    return Header(
        task=task,
        device=device,
        config=_config(content["config"]),
        run=str(content["run"]),
        started=str(content["started"]),
        versions=_versions(content["versions"]),
    )


def _session(content: Mapping[str, object]) -> Session:
    return Session(
        started=str(content["resumed"]),
        versions=_versions(content["versions"]),
        config=_config(content["config"]),
    )


def _config(said: object) -> RunConfig:
    if not isinstance(said, dict):
        raise ValueError(f"a config is an object; got {said!r}")
    return from_table(RunConfig, said)


def _versions(said: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(said, dict):
        raise ValueError(f"versions are an object; got {said!r}")
    return tuple((str(name), str(version)) for name, version in said.items())


def _json(config: RunConfig) -> Json:
    return cast(Json, to_table(config))


def _lines(path: Path) -> Iterator[tuple[dict[str, object], int]]:
    """Every whole line with the offset of its end; the last may be torn, and is then left out."""
    end = 0
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                content = _parsed(raw)
                if content is None:
                    if raw.endswith(b"\n") and file.read(1):
                        raise UsageError(f"{path}, line {number} is damaged, and lines follow it")
                    return
                end += len(raw)
                yield content, end
    except OSError as error:
        raise UsageError(f"no journal {str(path)!r}: {error.strerror}") from error


def _parsed(raw: bytes) -> dict[str, object] | None:
    if not raw.endswith(b"\n"):
        return None
    try:
        content = json.loads(raw)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _unwritable(error: OSError) -> UsageError:
    return UsageError(f"cannot write the journal: {error.strerror}; make room, then resume the run")


def _locked(fd: int, path: Path) -> int:
    # flock, not lockf: a reader in the same process that closes the file must not unlock it.
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise UsageError(f"{path} is being written by another run; wait for its end") from None
    return fd
