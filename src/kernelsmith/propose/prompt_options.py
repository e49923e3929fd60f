"""What can be chosen about prompts and replies."""

from dataclasses import dataclass
from enum import StrEnum

from kernelsmith.domain.trajectory import Brief
from kernelsmith.errors import UsageError


class Preset(StrEnum):
    """How much a proposer may change."""

    FREE = "free"
    """Anything, as long as the judge finds it right."""
    PAPER = "paper"
    """As in the paper: the kernel's signature, its grid and its masks stay as they are."""


class Form(StrEnum):
    """What a reply looks like."""

    WHOLE = "whole"
    """One fenced block with the whole program."""
    DIFF = "diff"
    """SEARCH/REPLACE blocks against the current program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOptions:
    """Choices that hold for a whole run."""

    preset: Preset = Preset.FREE
    form: Form = Form.WHOLE
    budget_tokens: int = 32_768
    """For all messages together, counted as ``tokens.py`` counts."""

    def __post_init__(self) -> None:
        for name, kind in (("preset", Preset), ("form", Form)):
            said = getattr(self, name)  # from a file it comes as plain text
            if said not in list(kind):
                raise UsageError(f"no {name} {str(said)!r}; known are {', '.join(kind)}")
            object.__setattr__(self, name, kind(said))
        if self.budget_tokens < 1:
            raise UsageError(f"a prompt needs tokens; got {self.budget_tokens}")

    def form_for(self, brief: Brief) -> Form:
        """The form of the reply to ``brief``; without a parent there is nothing to edit."""
        return self.form if brief.parent is not None else Form.WHOLE
