"""How a program's failure travels inside the judge until it becomes an evaluation."""

import re

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.errors import EvaluationLost

_NO_MEMORY = re.compile(
    r"out of memory|OutOfMemory|ALLOC(ATION)?_FAILED|cuMemAlloc|CUDA error 2\b"
    # A library that finds no memory for itself says this, and torch, where no algorithm of cuDNN
    # finds its scratch, that there is none.
    r"|CU(BLAS|DNN|SOLVER)_STATUS_NOT_INITIALIZED|unable to find an engine"
)


def lacks_memory(said: str) -> bool:
    """Whether a device was full; beside others, that is nobody's fault."""
    return _NO_MEMORY.search(said) is not None


class ProgramFailed(Exception):
    """A program did not get through; carries the verdict and what its author should read."""

    def __init__(self, verdict: Verdict, message: str) -> None:
        super().__init__(message)
        self.verdict, self.message = verdict, message

    def said(self, message: str) -> "ProgramFailed":
        """The same failure in more words."""
        return ProgramFailed(self.verdict, message)


class TooFarOff(ProgramFailed):
    """An output of the right form is further off than eager's own error allows."""

    def __init__(self, message: str) -> None:
        super().__init__(Verdict.WRONG, message)

    def said(self, message: str) -> "TooFarOff":
        """The same failure in more words."""
        return TooFarOff(message)


class ReferenceBroken(EvaluationLost):
    """What it was asked left the reference's process unusable; opened again, it is asked less."""


class KilledFromOutside(EvaluationLost):
    """The program's process was killed, not by us; once is an accident, twice its own doing."""
