"""Tasks that ask for less than they seem to: found by running the reference, op by op."""

from collections.abc import Iterable

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelsmith.evaluate.worker.answers import Case
from kernelsmith.evaluate.worker.closeness import close
from kernelsmith.evaluate.worker.inputs import InputSet
from kernelsmith.evaluate.worker.trees import flatten

_TOLERANCE = 1e-4
_MOVES = (
    "view", "reshape", "expand", "permute", "transpose", "t.", "squeeze", "unsqueeze", "slice",
    "select", "clone", "contiguous", "to_copy", "detach", "alias", "as_strided", "copy_", "split",
    "cat", "stack", "empty", "lift", "unbind", "repeat", "flatten", "pad", "chunk", "unsafe",
)  # fmt: skip
"""Operators that are meant to hand values on unchanged."""


class _Looked:
    """What is known of one output after some sets of inputs."""

    def __init__(self, first: torch.Tensor) -> None:
        self._first = first
        self._sets = 0
        counts = first.is_floating_point() and first.numel() > 0
        self.is_fixed = self.is_constant = counts
        self._passed_on: set[int] | None = None if counts else set()

    def look(self, output: torch.Tensor, leaves: list[torch.Tensor]) -> None:
        """Take another set into account."""
        self.is_fixed = self.is_fixed and (self._sets == 0 or _same(self._first, output))
        self.is_constant = self.is_constant and _constant(output)
        tried = range(len(leaves)) if self._passed_on is None else self._passed_on
        self._passed_on = {k for k in tried if _is_input(output, leaves[k])}
        self._sets += 1

    def reason(self, name: str) -> str:
        """In what way it is degenerate; nothing where it is not."""
        if self.is_fixed and self._sets > 1:
            return f"{name} does not depend on the inputs, within 1e-4"
        if self.is_constant:
            return f"{name} is constant, within 1e-4"
        if self._passed_on:
            return f"{name} is one of the inputs unchanged, on every input drawn"
        return ""


def examine(case: Case, sets: Iterable[InputSet]) -> list[str]:
    """Say in what way the task is degenerate on the inputs that it draws; empty if it is not.

    One set after the other, and only the first one's outputs are kept: they may be large.
    """
    looked: list[_Looked] = []
    traces = [_look(case, chosen, looked) for chosen in sets]
    whole = len(looked) == 1
    named = ((each, "the output" if whole else f"output {i}") for i, each in enumerate(looked))
    reasons = [each.reason(name) for each, name in named]
    return [each for each in reasons if each] + _idle_operators(traces)


def _look(case: Case, chosen: InputSet, looked: list[_Looked]) -> list[tuple[str, bool]]:
    """Take one set into account for each output; returns what its operators did."""
    with _Idle() as watch:
        outputs = _outputs(case, chosen)
    if not looked:
        looked += [_Looked(each) for each in outputs]
    for each, output in zip(looked, outputs, strict=True):
        each.look(output, chosen.leaves)
    return watch.seen


def _outputs(case: Case, chosen: InputSet) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    with torch.no_grad(), case.undone(case.model):
        flatten(case.call(chosen, [leaf.clone() for leaf in chosen.leaves], double=False), found)
        for position, leaf in enumerate(found):  # what is the model's own is put back
            found[position] = leaf.detach().clone()
    return found


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return close(a, b, rtol=_TOLERANCE, atol=_TOLERANCE)


def _constant(a: torch.Tensor) -> bool:
    return a.numel() > 1 and _same(a, a.flatten()[0].expand_as(a))


def _is_input(output: torch.Tensor, leaf: torch.Tensor) -> bool:
    return output.shape == leaf.shape and leaf.is_floating_point() and _same(output, leaf)


class _Idle(TorchDispatchMode):
    """Notes operators whose output is their input, value for value."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, bool]] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # or torch loads its compiler for this, which takes seconds

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        sources = [a for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()]
        sources = [a.clone() for a in sources[:1]]
        result = func(*args, **(kwargs or {}))
        name = str(func).removeprefix("aten.").removeprefix("_")
        single = result if isinstance(result, torch.Tensor) else None
        if sources and single is not None and not name.startswith(_MOVES):
            source = sources[0]
            idle = source.numel() == single.numel() > 1 and bool(
                torch.equal(source.reshape(-1), single.reshape(-1).to(source.dtype))
            )
            self.seen.append((name, idle))
        return result


def _idle_operators(traces: list[list[tuple[str, bool]]]) -> list[str]:
    """Name operators that changed nothing on every set drawn: they provably cancel here."""
    if len({len(trace) for trace in traces}) != 1:
        return []
    idle = [
        name
        for position, (name, _) in enumerate(traces[0])
        if all(trace[position] == (name, True) for trace in traces)
    ]
    return [f"{name} returns its input unchanged, on every input drawn" for name in idle]
