"""The Python of one captured call on the processor: memory, kernels, library calls."""

from collections.abc import Mapping

from kernelsmith.propose.rules.compiler.call import (
    Allocate,
    Constant,
    Drop,
    Launch,
    Library,
    Listed,
    Named,
    Operand,
    Part,
    Step,
    Verbatim,
    Viewed,
)
from kernelsmith.propose.rules.compiler.cpp_plan import Plan
from kernelsmith.propose.rules.compiler.module_text import local_names
from kernelsmith.propose.rules.graph import NotRecognised


def run_function(name: str, plan: Plan, *, checks: frozenset[str]) -> str:
    """A function from the call's tensors to its results.

    Args:
        name: Its name.
        plan: What it does.
        checks: Kernels that report an index out of range.
    """
    call = plan.call
    taken = {step.name: None for step in call.steps if isinstance(step, Allocate | Part)}
    names = local_names(call, taken)
    writer = _Lines(names, checks)
    lines = [line for step in call.steps for line in writer.step(step)]
    lines.append(f"return {', '.join(writer.operand(each) for each in call.results)}")
    parameters = ", ".join(names[each.name] for each in call.arguments)
    return f"def {name}({parameters}):\n" + "\n".join(f"    {line}" for line in lines) + "\n"


def constant(held: Constant) -> str:
    """A tensor that the compiler computed, written out."""
    values = ", ".join(_number(each) for each in held.values)
    if held.stride != contiguous(held.shape):
        raise NotRecognised("the compiler keeps a constant that is not dense")
    return f"{held.name} = torch.tensor([{values}], dtype=torch.{held.dtype}).reshape({held.shape})"


def _number(value: float | int | bool) -> str:
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return f'float("{value}")'
    return repr(value)


class _Lines:
    """Writes the steps of one call."""

    def __init__(self, names: Mapping[str, str], checks: frozenset[str]) -> None:
        self._names = names
        self._checks = checks

    def step(self, step: Step) -> list[str]:
        match step:
            case Allocate(name=name, shape=shape, stride=stride, dtype=dtype):
                return [f"{name} = {_allocated(shape, stride, dtype)}"]
            case Launch(kernel=kernel, operands=operands):
                made = f"lib.{kernel}({', '.join(self._pointer(each) for each in operands)})"
                if kernel in self._checks:
                    return [f"if {made}:", '    raise IndexError("index out of range")']
                return [made]
            case Library(target="torch.zero_", operands=(operand,)):
                return [f"{self.operand(operand)}.zero_()"]
            case Library(target=target, operands=operands, keywords=keywords):
                given = [self.operand(each) for each in operands]
                given += [f"{key}={self.operand(value)}" for key, value in keywords]
                given += [f"out={self._names.get(step.out, step.out)}"] if step.out else []
                to = f"{step.result} = " if step.result else ""
                return [f"{to}{target}({', '.join(given)})"]
            case Part(name=name, of=of, index=index):
                return [f"{name} = {of}[{index}]"]
            case Drop():
                return []
        raise NotRecognised(f"rules cannot write a step of the kind {type(step).__name__}")

    def _pointer(self, operand: Operand) -> str:
        """A kernel wants an address only: the shape does not matter."""
        assert isinstance(operand, Named), operand
        return self._names.get(operand.name, operand.name)

    def operand(self, operand: Operand) -> str:
        """An operand as Python."""
        match operand:
            case Named(name=name):
                return self._names.get(name, name)
            case Viewed(name=name, shape=shape, stride=stride, offset=offset):
                made = self._names.get(name, name)
                begin = f"{made}.storage_offset() + " if name in self._names else ""
                last = f", {begin}{offset}" if offset else ""
                return f"torch.as_strided({made}, {shape}, {stride}{last})"
            case Listed(items=items):
                return f"[{', '.join(self.operand(each) for each in items)}]"
            case Verbatim(text=text):
                return '"cpu"' if text == "device" else text
            case float():
                return _number(operand)
        return repr(operand)


def _allocated(shape: tuple[int, ...], stride: tuple[int, ...], dtype: str) -> str:
    if stride == contiguous(shape):
        return f"torch.empty({shape}, dtype=torch.{dtype})"
    return f"torch.empty_strided({shape}, {stride}, dtype=torch.{dtype})"


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a dense tensor."""
    found, size = [], 1
    for each in reversed(shape):
        found.append(size)
        size *= max(1, each)
    return tuple(reversed(found))
