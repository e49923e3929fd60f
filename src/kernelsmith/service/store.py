"""The queue on disk: every acknowledged request, in SQLite, until it is answered and fetched.

All methods are plain and synchronous. Those that write run inside a transaction of ``Writer``'s.
"""

import fcntl
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import decode, encode
from kernelsmith.domain.task import Task
from kernelsmith.errors import SmithError, UsageError
from kernelsmith.evaluate.settings import Settings
from kernelsmith.service.wire import Request, State, Ticket, canonical, digest, text_of

T = TypeVar("T")
_FORM = 1
"""Of the tables; another one is not read."""
_TABLES = """
CREATE TABLE IF NOT EXISTS texts (hash TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS requests (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  client TEXT NOT NULL,
  key TEXT,
  subject TEXT NOT NULL,
  task TEXT NOT NULL,
  settings TEXT NOT NULL,
  candidate TEXT NOT NULL,
  baseline TEXT,
  backend TEXT NOT NULL,
  device TEXT,
  priority INTEGER NOT NULL,
  cache INTEGER NOT NULL,
  state TEXT NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 0,
  faults INTEGER NOT NULL DEFAULT 0,
  created REAL NOT NULL,
  finished REAL,
  message TEXT NOT NULL DEFAULT '',
  cached INTEGER NOT NULL DEFAULT 0,
  evaluation TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS by_key ON requests (client, key) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS unfinished ON requests (seq) WHERE finished IS NULL;
CREATE INDEX IF NOT EXISTS by_finish ON requests (finished) WHERE finished IS NOT NULL;
CREATE TABLE IF NOT EXISTS cache (
  content TEXT PRIMARY KEY, evaluation TEXT NOT NULL, made REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS quarantine (
  subject TEXT PRIMARY KEY, candidate TEXT NOT NULL, message TEXT NOT NULL, since REAL NOT NULL
) WITHOUT ROWID;
"""
_TICKET = "id, state, attempt, message, cached, evaluation"


class KeyTaken(SmithError):
    """The client has used the key for something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the line must know of a request that waits; the rest stays on disk."""

    seq: int
    client: str
    task: str
    backend: str
    device: str | None
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A request as a worker gets it."""

    seq: int
    id: str
    attempt: int
    subject: str
    cache: bool
    created: float
    task: Task
    candidate: Candidate
    baseline: Candidate | None
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of a submission: its ticket, and where it waits if it does."""

    ticket: Ticket
    entry: Entry | None = None


class Store:
    """One connection. ``Store.lock`` makes sure that one server has the folder."""

    def __init__(
        self, path: Path, *, most_bytes: int | None = None, readonly: bool = False
    ) -> None:
        """Open the file, and make it if it is not there.

        Args:
            path: Of the database; its folder must exist.
            most_bytes: How large it may grow; a request beyond that is refused, not lost.
            readonly: For reading beside a connection that writes.

        Raises:
            UsageError: It cannot be opened, or is of another form.
        """
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            if readonly:
                self._db.execute("PRAGMA query_only = 1")
                return
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            (form,) = self._db.execute("PRAGMA user_version").fetchone()
            if form not in (0, _FORM):
                raise UsageError(f"{path} is of form {form}; this installation reads {_FORM}")
            self._db.executescript(_TABLES)
            self._db.execute(f"PRAGMA user_version = {_FORM}")
            self._limit(most_bytes)
        except sqlite3.Error as error:
            raise UsageError(f"cannot keep a queue in {path}: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def begin(self) -> None:
        """Begin a transaction that others will not write into."""
        self._db.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make it last."""
        self._db.execute("COMMIT")

    def rollback(self) -> None:
        """Undo it, if there is one."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def savepoint(self) -> None:
        """Mark where ``undo`` goes back to."""
        self._db.execute("SAVEPOINT one")

    def undo(self) -> None:
        """Go back to the mark."""
        self._db.execute("ROLLBACK TO one")

    # Writing.

    def submit(
        self, client: str, requests: Sequence[Request], *, now: float,
        contents: Sequence[Sequence[str]],
    ) -> list[Taken]:  # fmt: skip
        """Take requests in, all of them or none.

        Args:
            client: Who asks.
            requests: What for.
            now: Seconds since the epoch.
            contents: For each, under which contents the cache may have an answer already.

        Raises:
            KeyTaken: A key was used for something else before.
        """
        return [
            self._submit(client, request, now, known)
            for request, known in zip(requests, contents, strict=True)
        ]

    def _submit(self, client: str, said: Request, now: float, contents: Sequence[str]) -> Taken:
        subject = said.subject
        if said.key is not None:
            row = self._db.execute(
                f"SELECT {_TICKET}, subject FROM requests WHERE client = ? AND key = ?",
                (client, said.key),
            ).fetchone()
            if row is not None:
                if row[-1] != subject:
                    raise KeyTaken(f"the key {said.key!r} was used for another request")
                return Taken(ticket=_ticket(row[:-1]))
        id = secrets.token_hex(16)
        state, message, line = State.QUEUED, "", None
        if row := self._db.execute(
            "SELECT message FROM quarantine WHERE subject = ?", (subject,)
        ).fetchone():
            state, message = State.QUARANTINED, row[0]
        elif said.cache and (line := self._cached(contents)) is not None:
            state = State.DONE
        task = self._text(text_of(said.task))
        cursor = self._db.execute(
            "INSERT INTO requests (id, client, key, subject, task, settings, candidate, baseline,"
            " backend, device, priority, cache, state, created, finished, message, cached,"
            " evaluation) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                id, client, said.key, subject, task,
                self._text(text_of(said.settings)),
                canonical(encode(said.candidate)),
                None if said.baseline is None else canonical(encode(said.baseline)),
                said.candidate.backend, said.device, said.priority, said.cache, state.value,
                now, now if state.is_final else None, message, line is not None, line,
            ),
        )  # fmt: skip
        ticket = Ticket(id=id, state=state, message=message, cached=line is not None, line=line)
        if state.is_final:
            return Taken(ticket=ticket)
        assert cursor.lastrowid is not None
        entry = Entry(
            seq=cursor.lastrowid, client=client, task=task, backend=said.candidate.backend,
            device=said.device, priority=said.priority,
        )  # fmt: skip
        return Taken(ticket=ticket, entry=entry)

    def start(self, seq: int) -> Order | None:
        """Hand a request out under a new attempt; none where it was cancelled meanwhile."""
        row = self._db.execute(
            "UPDATE requests SET state = 'running', attempt = attempt + 1"
            " WHERE seq = ? AND state = 'queued'"
            " RETURNING id, attempt, subject, cache, created, task, candidate, baseline, settings",
            (seq,),
        ).fetchone()
        if row is None:
            return None
        id, attempt, subject, cache, created, task, candidate, baseline, settings = row
        return Order(
            seq=seq, id=id, attempt=attempt, subject=subject, cache=bool(cache), created=created,
            task=_decoded(self._read_text(task), Task),
            candidate=_decoded(candidate, Candidate),
            baseline=None if baseline is None else _decoded(baseline, Candidate),
            settings=_decoded(self._read_text(settings), Settings),
        )  # fmt: skip

    def finish(
        self, seq: int, attempt: int, state: State, *, now: float, message: str = "",
        line: str | None = None, cached: bool = False,
    ) -> bool:  # fmt: skip
        """Answer a request once: only its current attempt may, and only while it runs."""
        done = self._db.execute(
            "UPDATE requests SET state = ?, finished = ?, message = ?, evaluation = ?, cached = ?"
            " WHERE seq = ? AND attempt = ? AND state = 'running'",
            (state.value, now, message, line, cached, seq, attempt),
        )
        return done.rowcount == 1

    def give_back(self, seq: int, attempt: int, *, fault: bool) -> int | None:
        """Let a request wait again; returns how many workers it took along, none if it is over."""
        row = self._db.execute(
            "UPDATE requests SET state = 'queued', faults = faults + ?"
            " WHERE seq = ? AND attempt = ? AND state = 'running' RETURNING faults",
            (int(fault), seq, attempt),
        ).fetchone()
        return None if row is None else int(row[0])

    def forgive(self, seqs: Sequence[int]) -> None:
        """Take one fault back from each: it was the device."""
        for seq in seqs:
            self._db.execute(
                "UPDATE requests SET faults = max(0, faults - 1) WHERE seq = ?", (seq,)
            )

    def give_up(self, seq: int, state: State, *, message: str, now: float) -> str | None:
        """End a request that waits, and return its id.

        Where it is quarantined, every later one of the same content is, too.
        """
        row = self._db.execute(
            "UPDATE requests SET state = ?, finished = ?, message = ?"
            " WHERE seq = ? AND state = 'queued' RETURNING id, subject, candidate",
            (state.value, now, message, seq),
        ).fetchone()
        if row is None:
            return None
        if state is State.QUARANTINED:
            candidate = _decoded(row[2], Candidate).id
            self._db.execute(
                "INSERT OR REPLACE INTO quarantine VALUES (?, ?, ?, ?)",
                (row[1], candidate, message, now),
            )
        return str(row[0])

    def cancel(self, client: str, id: str, *, now: float) -> tuple[Ticket | None, bool]:
        """End a request that is not over; an evaluation under way goes nowhere.

        Returns its ticket, and whether it was ended just now.
        """
        ended = self._db.execute(
            "UPDATE requests SET state = 'cancelled', finished = ?"
            " WHERE id = ? AND client = ? AND finished IS NULL",
            (now, id, client),
        )
        return self.ticket(client, id), ended.rowcount == 1

    def id_of(self, client: str, key: str) -> str | None:
        """Which request a client's key stands for."""
        row = self._db.execute(
            "SELECT id FROM requests WHERE client = ? AND key = ?", (client, key)
        ).fetchone()
        return None if row is None else str(row[0])

    def remember(self, content: str, line: str, *, now: float) -> None:
        """Keep an evaluation for whoever asks for the same."""
        self._db.execute("INSERT OR IGNORE INTO cache VALUES (?, ?, ?)", (content, line, now))

    def recover(self) -> int:
        """After a start: whatever was running has no worker any more and waits again."""
        return self._db.execute(
            "UPDATE requests SET state = 'queued' WHERE state = 'running'"
        ).rowcount

    def prune(self, *, before: float) -> int:
        """Forget what was answered before; texts that nobody needs go, too."""
        gone = self._db.execute("DELETE FROM requests WHERE finished < ?", (before,)).rowcount
        self._db.execute("DELETE FROM cache WHERE made < ?", (before,))
        self._db.execute("DELETE FROM quarantine WHERE since < ?", (before,))
        self._db.execute(
            "DELETE FROM texts WHERE hash NOT IN"
            " (SELECT task FROM requests UNION SELECT settings FROM requests)"
        )
        return gone

    # Reading.

    def waiting(self) -> Iterator[tuple[Entry, int, int]]:
        """Every request that waits, oldest first, with its attempts and faults."""
        rows = self._db.execute(
            "SELECT seq, client, task, backend, device, priority, attempt, faults FROM requests"
            " WHERE finished IS NULL AND state = 'queued' ORDER BY seq"
        )
        for seq, client, task, backend, device, priority, attempt, faults in rows:
            entry = Entry(
                seq=seq, client=client, task=task, backend=backend, device=device,
                priority=priority,
            )  # fmt: skip
            yield entry, attempt, faults

    def ticket(self, client: str, id: str) -> Ticket | None:
        """What became of a request of this client's."""
        row = self._db.execute(
            f"SELECT {_TICKET} FROM requests WHERE id = ? AND client = ?", (id, client)
        ).fetchone()
        return None if row is None else _ticket(row)

    def cached(self, content: str) -> str | None:
        """An evaluation of the same content."""
        return self._cached([content])

    def quarantined(self) -> list[Mapping[str, str | float]]:
        """Which candidates are not tried any more, and why."""
        rows = self._db.execute("SELECT candidate, message, since FROM quarantine ORDER BY since")
        return [{"candidate": c, "message": m, "since": s} for c, m, s in rows]

    def release(self, candidate: str) -> int:
        """Let candidates be tried again, by their ids; returns how many there were."""
        done = self._db.execute("DELETE FROM quarantine WHERE candidate = ?", (candidate,))
        return done.rowcount

    def _cached(self, contents: Sequence[str]) -> str | None:
        for content in contents:
            row = self._db.execute(
                "SELECT evaluation FROM cache WHERE content = ?", (content,)
            ).fetchone()
            if row is not None:
                return str(row[0])
        return None

    def _text(self, text: str) -> str:
        """Store a text once, and name it."""
        hash = digest(text)
        self._db.execute("INSERT OR IGNORE INTO texts VALUES (?, ?)", (hash, text))
        return hash

    def _read_text(self, hash: str) -> str:
        row = self._db.execute("SELECT text FROM texts WHERE hash = ?", (hash,)).fetchone()
        return str(row[0])

    def _limit(self, most_bytes: int | None) -> None:
        (page,) = self._db.execute("PRAGMA page_size").fetchone()
        pages = (1 << 30) if most_bytes is None else max(1, most_bytes // page)
        self._db.execute(f"PRAGMA max_page_count = {pages}")


def lock(folder: Path) -> int:
    """Take a folder for this process; the descriptor holds it until the process ends.

    Raises:
        UsageError: Another server has it.
    """
    try:
        fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        raise UsageError(f"another server keeps its queue in {folder}") from error
    return fd


def _ticket(row: Sequence[object]) -> Ticket:
    id, state, attempt, message, cached, evaluation = row
    assert isinstance(attempt, int)
    return Ticket(
        id=str(id), state=State(str(state)), attempts=attempt, message=str(message),
        cached=bool(cached), line=None if evaluation is None else str(evaluation),
    )  # fmt: skip


def _decoded(text: str, kind: type[T]) -> T:
    value = decode(json.loads(text), kind)
    assert isinstance(value, kind)
    return value
