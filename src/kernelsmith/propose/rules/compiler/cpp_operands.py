"""Operands of library calls as far as they are known, and kernels that take their place."""

from collections.abc import Iterable
from dataclasses import dataclass

from kernelsmith.propose.rules.compiler.call import (
    Kernel,
    Launch,
    Library,
    Listed,
    Named,
    Operand,
    Part,
    Step,
    Viewed,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """What is known of an operand."""

    operand: Named | Viewed
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str

    @property
    def is_dense(self) -> bool:
        """Whether elements lie side by side in the usual order."""
        size = 1
        for length, step in zip(reversed(self.shape), reversed(self.stride), strict=True):
            if length != 1 and step != size:
                return False
            size *= length
        return True


Own = tuple[Kernel, list[Step], tuple[Operand, ...]]
"""A kernel, what comes before its launch, and what it is launched with."""


def kernel_of(kind: str, parameters: str, work: int, **sizes: int | str) -> Kernel:
    """A kernel by its kind, its C++ parameters, and what is filled into its text."""
    fixed = {"kind": kind, "work": str(work), **{key: str(each) for key, each in sizes.items()}}
    return Kernel(
        name=kind, text=parameters, schedule="template", fixed=tuple(sorted(fixed.items()))
    )


def inputs_text(names: list[str]) -> str:
    """Pointers that a kernel only reads."""
    return ", ".join(f"const float* __restrict {each}" for each in names)


def listed(step: Library) -> dict[str, list[int]]:
    """Keyword arguments that are lists of numbers."""
    return {
        key: [each for each in value.items if isinstance(each, int)]
        for key, value in step.keywords
        if isinstance(value, Listed)
    }


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a tensor in the usual order."""
    found, size = [], 1
    for each in reversed(shape):
        found.append(size)
        size *= max(1, each)
    return tuple(reversed(found))


def operands_of(step: Step) -> list[Operand]:
    """What a step reads or writes, lists opened."""
    match step:
        case Launch(operands=operands):
            return opened(operands)
        case Library(operands=operands, keywords=keywords, out=out):
            found = [*operands, *(value for _, value in keywords)]
            return opened([*found, *([Named(name=out)] if out else [])])
        case Part(of=of):
            return [Named(name=of)]
    return []


def opened(operands: Iterable[Operand]) -> list[Operand]:
    """The same without lists: what was in them."""
    found: list[Operand] = []
    for each in operands:
        found += opened(each.items) if isinstance(each, Listed) else [each]
    return found
