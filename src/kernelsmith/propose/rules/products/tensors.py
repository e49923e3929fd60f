"""What is known of the tensors of a call at one of its steps: layout, type, and whose memory."""

from collections.abc import Iterator
from dataclasses import dataclass

from kernelsmith.propose.rules.compiler.call import (
    Alias,
    Allocate,
    Call,
    Drop,
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
    """A tensor's layout; ``root`` names the memory that it lies in."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    root: str
    offset: int = 0


class Tensors:
    """Tensors by name; follows the steps as they come."""

    def __init__(self, call: Call) -> None:
        self._known: dict[str, Tensor] = {}
        for each in call.arguments:
            if each.shape is not None and each.stride is not None:
                self._add(each.name, each.shape, each.stride, each.dtype)
        for constant in call.constants:
            self._add(constant.name, constant.shape, constant.stride, constant.dtype)

    def _add(self, name: str, shape: tuple[int, ...], stride: tuple[int, ...], dtype: str) -> None:
        self._known[name] = Tensor(shape=shape, stride=stride, dtype=dtype, root=name)

    def follow(self, step: Step) -> None:
        """Take note of what a step makes."""
        match step:
            case Allocate():
                self._add(step.name, step.shape, step.stride, step.dtype)
            case Alias():
                found = self.of(step.of)
                if found is not None:
                    self._known[step.name] = found
            case Library(result=str() as name, shape=tuple() as shape, stride=tuple() as stride):
                first = next((t for t in map(self.of, step.operands) if t is not None), None)
                if first is not None:
                    self._add(name, shape, stride, first.dtype)
            case _:
                pass

    def of(self, operand: Operand) -> Tensor | None:
        """What an operand is; ``None`` where it is no tensor, or not known."""
        match operand:
            case Named(name=name):
                return self._known.get(name)
            case Viewed():
                base = self._known.get(operand.name)
                if base is None:
                    return None
                return Tensor(
                    shape=operand.shape, stride=operand.stride, dtype=base.dtype, root=base.root,
                    offset=base.offset + operand.offset,
                )  # fmt: skip
        return None

    def root(self, operand: Operand) -> str | None:
        """The memory behind an operand."""
        found = self.of(operand)
        return None if found is None else found.root


def operands_of(step: Step) -> Iterator[Operand]:
    """All operands that a step reads or writes."""
    match step:
        case Launch():
            yield from step.operands
        case Library():
            for each in (*step.operands, *(given for _, given in step.keywords)):
                yield from each.items if isinstance(each, Listed) else (each,)
            if step.out is not None:
                yield Named(name=step.out)
        case Alias():
            yield step.of
        case Part():
            yield Named(name=step.of)
        case Allocate() | Drop():
            return
