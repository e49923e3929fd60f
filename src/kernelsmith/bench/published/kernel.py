"""A published kernel: a source, what it is for, and what is claimed of it."""

import re
from dataclasses import dataclass

_CUDA = re.compile(
    r"__global__|\bload_inline\b|\bcpp_extension\b|\bimport (cupy|pycuda|tilelang|cutlass|cuda)\b"
    r"|\bfrom (cupy|pycuda|tilelang|cutlass|cuda)\b|#include"
)
_CPP = re.compile(r"^\s*from kernelsmith\.kernels import [^\n]*\bcpp\b", re.MULTILINE)
_TRITON = re.compile(r"^\s*(import triton|from triton)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One kernel as it was found."""

    id: str
    """Where it was found: a path, and a row where there are several in a file."""
    source: str
    language: str
    """``pytorch``, ``cpp`` (for a processor), ``triton`` or ``cuda``."""
    level: int | None = None
    number: int | None = None
    """KernelBench's, where the publication names a problem that way."""
    name: str = ""
    """What the task is called there."""
    reference: str = ""
    """The reference, where it was published beside the kernel; KernelBench's form."""
    claim: float | None = None
    """The speed-up over eager PyTorch that is claimed."""
    claimed_on: str = ""
    """The device of that claim, where it is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """What lies among the kernels and could not be read."""

    where: str
    """A path, and a line where only that is broken."""
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}; skipped"


def language_of(source: str) -> str:
    """What a source is written in, from what it imports."""
    if _CPP.search(source) and "__global__" not in source:
        return "cpp"
    if _CUDA.search(source):
        return "cuda"
    return "triton" if _TRITON.search(source) else "pytorch"
