"""The seam between the rules and their proposer: one way of writing candidates for one task."""

from typing import Protocol

from kernelsmith.propose.rules.space import Parameters, Space


class Family(Protocol):
    """A source for every choice of typed parameters; the same choice gives the same text."""

    @property
    def space(self) -> Space:
        """What can be chosen, and which choices to begin with."""
        ...

    def source(self, chosen: Parameters) -> str:
        """A stand-alone candidate that carries ``space.header(chosen)``.

        Raises:
            NotRecognised: This choice cannot be written; the text says why.
        """
        ...

    def words(self, chosen: Parameters) -> str:
        """What this choice tries and why it may be faster, in one sentence."""
        ...


def owned(family: Family, source: str) -> dict[str, str] | None:
    """The parameters of a candidate that a family wrote; ``None`` of any other text.

    The header is not believed: the parameters in it must give that very text.
    """
    chosen = family.space.read(source)
    return chosen if chosen is not None and family.source(chosen) == source else None
