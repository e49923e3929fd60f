"""The seam between a brief and a model: what is asked, what is answered, how it is read."""

from typing import Protocol

from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Brief, Message
from kernelsmith.errors import UsageError
from kernelsmith.propose.prompt_options import Form as ReplyForm
from kernelsmith.propose.prompt_options import PromptOptions
from kernelsmith.training.forms.algebra import AlgebraEdits
from kernelsmith.training.forms.program import Program
from kernelsmith.training.forms.rules_edits import RulesEdits

FORMS = ("whole", "diff", "typed")


class Form(Protocol):
    """How steps are put into words. The same for training data, rollouts and evolution.

    ``whole`` and ``diff`` are what any model is asked for; ``typed`` names a change of a typed
    parameter and leaves writing the program to code: a model of a few million weights can learn it.
    """

    name: str

    def at_hand(self, task: Task) -> bool:
        """Whether replies about a task are read at once; else a compiler is asked before."""
        ...

    def messages(self, brief: Brief) -> tuple[Message, ...]:
        """What the model is sent."""
        ...

    def answer(self, brief: Brief, source: str, note: str = "") -> str | None:
        """The reply that would have given ``source``; none where this form cannot say it."""
        ...

    def source(self, reply: str, brief: Brief, *, cut_off: bool = False) -> str:
        """Read the candidate's source out of a reply.

        Raises:
            Unreadable: There is none; the text says why.
        """
        ...


def form_named(name: str, backend: str, *, budget_tokens: int = 32_768) -> Form:
    """Open a form.

    Raises:
        UsageError: There is none of that name, or not for this backend.
    """
    if name == "typed":
        return AlgebraEdits() if backend == "null" else RulesEdits(backend)
    if name in ("whole", "diff"):
        options = PromptOptions(form=ReplyForm(name), budget_tokens=budget_tokens)
        return Program(options)
    raise UsageError(f"no form {name!r}; known are {', '.join(FORMS)}")
