"""Recorded proposals, handed out again: for tests, demos and comparing policies on equal terms."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelsmith.domain.codec import dumps, loads
from kernelsmith.domain.trajectory import Brief, Proposal, Step
from kernelsmith.errors import UsageError


class ReplayProposer:
    """Answers ask number n with what was recorded for n, whatever the brief says.

    Args:
        proposals: By ask number, or in the order of the asks.
    """

    name = "replay"

    def __init__(self, proposals: Mapping[int, Proposal] | Sequence[Proposal]) -> None:
        if isinstance(proposals, Mapping):
            self._proposals = dict(proposals)
        else:
            self._proposals = dict(enumerate(proposals))

    @classmethod
    def from_jsonl(cls, path: Path) -> "ReplayProposer":
        """Read what ``write_jsonl`` wrote, or lines of steps.

        Raises:
            UsageError: There is no such file, or a line holds neither proposal nor step.
        """
        try:
            lines = path.read_text().split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read recorded proposals from {path}: {error}") from error
        found: dict[int, Proposal] = {}
        for at, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                value = loads(line)
            except ValueError as error:
                raise UsageError(f"{path}, line {at}: {error}") from error
            if isinstance(value, Step):
                found[value.brief.number] = value.proposal
            elif isinstance(value, Proposal):
                found[len(found)] = value
            else:
                raise UsageError(f"{path}, line {at}: neither a proposal nor a step")
        return cls(found)

    def __len__(self) -> int:
        return len(self._proposals)

    async def propose(self, brief: Brief) -> Proposal:
        """Hand out what was recorded.

        Raises:
            UsageError: Nothing was, for this number.
        """
        proposal = self._proposals.get(brief.number)
        if proposal is None:
            raise UsageError(
                f"nothing is recorded for ask {brief.number}; the recording holds "
                f"{len(self._proposals)} proposals"
            )
        return proposal

    def learn(self, step: Step) -> None:
        """Nothing to learn: the answers are fixed."""

    async def close(self) -> None:
        """Nothing to give back."""


def write_jsonl(path: Path, proposals: Sequence[Proposal]) -> None:
    """Write proposals in the order of their asks, one a line."""
    path.write_text("".join(f"{dumps(each)}\n" for each in proposals))
