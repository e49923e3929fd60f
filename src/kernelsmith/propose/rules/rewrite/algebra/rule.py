"""What a rewriting rule is."""

from collections.abc import Callable
from dataclasses import dataclass

from kernelsmith.propose.rules.rewrite.build import Build

Rewrite = Callable[[Build, int], int | None]
"""From a node to one of equal value, or nothing where a side condition fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One identity, looked for at every node."""

    name: str
    words: str
    """What is rewritten and why that holds, as half a sentence."""
    rewrite: Rewrite
    tidy: bool = False
    """Never costs anything: applied wherever it fits, before the cost model is asked."""
    finite: bool = False
    """Holds where intermediate values are finite; an infinity or NaN inside may get lost."""
    doc: str = ""
    """The proof sketch."""


def rule(
    name: str, words: str, *, tidy: bool = False, finite: bool = False
) -> Callable[[Rewrite], Rule]:
    """Make a rule of the function that applies it; its docstring is the proof."""

    def made(rewrite: Rewrite) -> Rule:
        assert rewrite.__doc__, name
        return Rule(name=name, words=words, rewrite=rewrite, tidy=tidy, finite=finite,
                    doc=rewrite.__doc__)  # fmt: skip

    return made
