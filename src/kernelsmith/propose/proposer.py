"""The seam to whoever writes candidates."""

from typing import Protocol, runtime_checkable

from kernelsmith.domain.trajectory import Brief, Proposal, Step


class Proposer(Protocol):
    """Turns a brief into a proposal: a model, an agent, a recording, or the built-in rules."""

    name: str

    async def propose(self, brief: Brief) -> Proposal:
        """Write one candidate, or say why there is none.

        May be called for many briefs at a time. A reply that holds no candidate is a proposal with
        a rejection, not an exception.

        Raises:
            UsageError: It can never work: no such model, wrong key, nothing recorded.
        """
        ...

    def learn(self, step: Step) -> str | None:
        """Take note of what became of a proposal; called in the order of the asks.

        Returns the hash of its weights where it has just changed them: the journal keeps it.
        """
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...


@runtime_checkable
class Recalling(Protocol):
    """A proposer that counts what it wrote before it is known what became of it."""

    def recall(self, brief: Brief, proposal: Proposal) -> None:
        """Take note of a proposal of an earlier session whose step was not told.

        Called instead of ``propose`` where a run is taken up in the middle of a step.
        """
        ...
