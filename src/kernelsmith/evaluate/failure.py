"""How a program's failure travels inside the judge until it becomes an evaluation."""

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.errors import EvaluationLost

_NO_MEMORY = ("out of memory", "OutOfMemory", "ALLOC_FAILED", "cuMemAlloc")


def lacks_memory(said: str) -> bool:
    """Whether a device was full; beside others, that is nobody's fault."""
    return any(each in said for each in _NO_MEMORY)


class ProgramFailed(Exception):
    """A program did not get through; carries the verdict and what its author should read."""

    def __init__(self, verdict: Verdict, message: str) -> None:
        super().__init__(message)
        self.verdict, self.message = verdict, message


class ReferenceBroken(EvaluationLost):
    """What it was asked left the reference's process unusable; opened again, it is asked less."""


class KilledFromOutside(EvaluationLost):
    """The program's process was killed, not by us; once is an accident, twice its own doing."""
