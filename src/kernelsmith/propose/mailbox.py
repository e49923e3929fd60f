"""A folder between a run and coding agents: briefs go out, replies come in, claims keep order.

Everything is a plain file, so that an agent can look at it, and each change is a rename, so that
nobody ever reads half of one.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.errors import UsageError

LEASE_S = 1800.0
"""How long an agent may think about a brief before it is handed to another."""
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A brief that waits for a reply."""

    number: int
    path: Path
    """The prompt, as text."""
    agent: str = ""
    """Who has claimed it; empty while nobody has, or once the claim has run out."""

    @property
    def text(self) -> str:
        """What the agent should read."""
        return self.path.read_text()


class Mailbox:
    """The folder ``agent`` of a run."""

    def __init__(self, folder: Path, *, now: Callable[[], float] = time.time) -> None:
        self._folder, self._now = folder, now

    def post(self, number: int, prompt: str) -> None:
        """Put a brief out; again does nothing."""
        path = self._brief(number)
        if not path.exists():
            self._write(path, prompt)

    def withdraw(self, number: int) -> None:
        """Take a brief back that has its reply or is no longer of use."""
        self._brief(number).unlink(missing_ok=True)
        self._claim(number).unlink(missing_ok=True)

    def orders(self) -> list[Order]:
        """Briefs without a reply, oldest first."""
        found = []
        for path in sorted(self._folder.glob("brief-*.md")):
            number = int(path.stem.removeprefix("brief-"))
            if not self._reply(number).exists():
                found.append(Order(number=number, path=path, agent=self._holder(number)))
        return found

    def claim(self, count: int, agent: str) -> list[Order]:
        """Hand out up to ``count`` briefs that nobody else is working on, one's own first.

        Raises:
            UsageError: A count or a name makes no sense.
        """
        if count < 1:
            raise UsageError(f"ask for at least one brief; got {count}")
        if not agent.strip() or "\n" in agent:
            raise UsageError(f"an agent needs a name of one line; got {agent!r}")
        with self._locked():
            orders = self.orders()
            chosen = [each for each in orders if each.agent == agent][:count]
            for order in orders:
                if len(chosen) < count and not order.agent:
                    self._write(
                        self._claim(order.number),
                        json.dumps({"agent": agent, "until": self._now() + LEASE_S}),
                    )
                    chosen.append(Order(number=order.number, path=order.path, agent=agent))
            return chosen

    def reply(self, number: int, text: str) -> None:
        """Answer a brief. A second answer to the same brief is refused: the first may be judged.

        Raises:
            UsageError: There is no such brief, it has been answered, or the text is no reply.
        """
        if not text.strip():
            raise UsageError(f"the reply to brief {number} is empty")
        if len(text.encode(errors="replace")) > _MOST_BYTES:
            raise UsageError(f"the reply to brief {number} is larger than {_MOST_BYTES:,} bytes")
        with self._locked():
            if self._reply(number).exists():
                raise UsageError(f"brief {number} has been answered already")
            if not self._brief(number).exists():
                waiting = ", ".join(str(each.number) for each in self.orders()) or "none"
                raise UsageError(f"no brief {number} waits for a reply; waiting: {waiting}")
            self._write(self._reply(number), text)

    def take(self, number: int) -> str | None:
        """The reply to a brief, if it has come."""
        try:
            return self._reply(number).read_text()
        except FileNotFoundError:
            return None

    def replies(self) -> Sequence[int]:
        """Numbers of the replies that were given so far."""
        names = (path.stem for path in self._folder.glob("reply-*.txt"))
        return sorted(int(name.removeprefix("reply-")) for name in names)

    def _holder(self, number: int) -> str:
        try:
            claim = json.loads(self._claim(number).read_text())
        except (FileNotFoundError, ValueError):
            return ""
        return str(claim["agent"]) if float(claim["until"]) > self._now() else ""

    def _brief(self, number: int) -> Path:
        return self._folder / f"brief-{number:05d}.md"

    def _reply(self, number: int) -> Path:
        return self._folder / f"reply-{number:05d}.txt"

    def _claim(self, number: int) -> Path:
        return self._folder / f"claim-{number:05d}.json"

    def _write(self, path: Path, text: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(text)
        draft.replace(path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
