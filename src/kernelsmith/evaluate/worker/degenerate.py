"""Tasks that ask for less than they seem to: found by running the reference, op by op."""

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


def examine(case: Case, sets: list[InputSet]) -> list[str]:
    """Say in what way the task is degenerate on the inputs that it draws; empty if it is not."""
    results = [_outputs(case, chosen) for chosen in sets]
    reasons = []
    for index, first in enumerate(results[0]):
        if not first.is_floating_point() or first.numel() == 0:
            continue
        others = [result[index] for result in results[1:]]
        name = "the output" if len(results[0]) == 1 else f"output {index}"
        if all(_same(first, other) for other in others):
            reasons.append(f"{name} does not depend on the inputs, within 1e-4")
        elif all(_constant(result[index]) for result in results):
            reasons.append(f"{name} is constant, within 1e-4")
        elif _is_input(results, sets, index):
            reasons.append(f"{name} is one of the inputs unchanged, on every input drawn")
    return reasons + _idle_operators(case, sets)


def _outputs(case: Case, chosen: InputSet) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    with torch.no_grad(), case.undone(case.model):
        flatten(case.call(chosen, [leaf.clone() for leaf in chosen.leaves], double=False), found)
    return [leaf.detach().clone() for leaf in found]


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return close(a, b, rtol=_TOLERANCE, atol=_TOLERANCE)


def _constant(a: torch.Tensor) -> bool:
    return a.numel() > 1 and _same(a, a.flatten()[0].expand_as(a))


def _is_input(results: list[list[torch.Tensor]], sets: list[InputSet], index: int) -> bool:
    return any(
        all(
            result[index].shape == chosen.leaves[k].shape
            and chosen.leaves[k].is_floating_point()
            and _same(result[index], chosen.leaves[k])
            for result, chosen in zip(results, sets, strict=True)
        )
        for k in range(len(sets[0].leaves))
    )


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


def _idle_operators(case: Case, sets: list[InputSet]) -> list[str]:
    """Name operators that changed nothing on every set drawn: they provably cancel here."""
    traces = []
    for chosen in sets:
        watch = _Idle()
        with watch:
            _outputs(case, chosen)
        traces.append(watch.seen)
    if len({len(trace) for trace in traces}) != 1:
        return []
    idle = [
        name
        for position, (name, _) in enumerate(traces[0])
        if all(trace[position] == (name, True) for trace in traces)
    ]
    return [f"{name} returns its input unchanged, on every input drawn" for name in idle]
