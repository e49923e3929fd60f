"""In the sandbox: inputs that never change the output, one by one."""

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import nn

from kernelsmith.corpus.inputs.repair import FLOAT, State, Tensor
from kernelsmith.corpus.run.attempt import attempted
from kernelsmith.corpus.run.drawing import made
from kernelsmith.evaluate.worker import parameters

Make = Callable[[], nn.Module]


def busy(make: Make, state: State, optional: Collection[str]) -> tuple[State, list[str]]:
    """The inputs without optional ones that do nothing; the others that do nothing, in words.

    Args:
        make: Constructs the module anew. Its weights are drawn here, or a layer that starts at
            zero would hide what stands before it.
        state: Inputs that it runs on.
        optional: Arguments that may be left out.
    """
    names = [n for n, v in state if isinstance(v, Tensor) and v.dtype == FLOAT]
    tensors = sum(isinstance(v, Tensor) for _, v in state)
    if not names or tensors < 2:
        return state, []  # a single one is looked at by the checks

    def looked() -> tuple[State, list[str]]:
        model = make()
        parameters.randomise(model, 5)
        first = _answer(model, state, "")
        if not _same(first, _answer(model, state, "")):
            return state, []
        idle = [name for name in names if _same(first, _answer(model, state, name))]
        if idle and len(idle) < tensors:
            left = tuple((n, v) for n, v in state if n not in idle or n not in optional)
            if left != state and _same(first, _answer(model, left, "")):
                return left, [name for name in idle if name not in optional]
        return state, idle

    # Where it raises, the checks of the finished file say why.
    kept, idle = attempted(looked) or (state, [])
    return kept, [f"input {name} does not affect the output" for name in idle]


def _answer(model: nn.Module, state: State, other: str) -> list[torch.Tensor]:
    """Run on inputs that are the same every time, but for the one that is named."""
    given = {}
    for index, (name, value) in enumerate(state):
        # By name, so that leaving one out changes no other.
        torch.manual_seed(sum(name.encode()) + (1000 + index if name == other else 0))
        given[name] = made(value)
    torch.manual_seed(1)
    with torch.no_grad():
        found = _leaves(model(**given))
    return [leaf.clone() for leaf in found]


def _leaves(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in _leaves(each)]
    held = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return [leaf for each in held.values() if isinstance(each, torch.Tensor | list | tuple)
            for leaf in _leaves(each)]  # fmt: skip


def _same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(
        a.shape == b.shape and torch.allclose(a, b, rtol=1e-6, atol=0.0, equal_nan=True)
        for a, b in zip(one, other, strict=True)
    )
