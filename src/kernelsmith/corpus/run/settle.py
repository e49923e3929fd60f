"""In the sandbox: inputs that run, put for others where the call only happens not to raise.

What the search finds first may be a convolution called without a batch, a side smaller than the
kernel, four numbers where an image belongs, or two inputs that broadcast across the batch. Each of
these is seen while the module runs; a few better inputs are tried, and kept if they are better.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from kernelsmith.corpus.inputs.repair import (
    BATCH,
    FLOAT,
    LENGTH,
    SIDE,
    Other,
    State,
    Tensor,
    Value,
)
from kernelsmith.corpus.run.attempt import attempted
from kernelsmith.corpus.run.drawing import elements

Call = Callable[[nn.Module, State], Any]
Make = Callable[[], nn.Module]
BATCHES = ("batch_size", "bsz", "batch", "n_batch", "num_batch")
"""Names of numbers that say how many things axis 0 holds the parts of."""
FEWEST = 16
"""Inputs with fewer elements than this are taken only where nothing larger runs."""
_MOST_TRIES, _BUDGET_S, _SLOW_S = 10, 0.4, 0.12
_MOST_ELEMENTS = 1 << 21
_SMALL_AXIS = 3
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_POOLS = (nn.modules.pooling._MaxPoolNd, nn.modules.pooling._AvgPoolNd,
          nn.modules.pooling._AdaptiveAvgPoolNd, nn.modules.pooling._AdaptiveMaxPoolNd)  # fmt: skip
_UNBATCHED = (nn.modules.conv._ConvNd, *_POOLS, nn.modules.instancenorm._InstanceNorm)


@dataclass(slots=True)
class Seen:
    """What is wrong with a call that runs; nothing where all is zero."""

    unbatched: int = 0
    tiny: int = 0
    crossed: int = 0
    whole: int = 0
    narrow: int = 0
    layers: int = 0

    def score(self) -> tuple[int, ...]:
        """Smaller is better; what comes first weighs more."""
        return (min(self.unbatched, 1), self.tiny, self.crossed, self.whole, self.narrow)


def settled(
    model: nn.Module, state: State, call: Call, make: Make
) -> tuple[nn.Module, State, list[str]]:
    """The same inputs or better ones with the module to run on them, and in words what stays bad.

    Some modules keep a table of the first size that they see, so a handful of numbers, which may
    have made such a table, is compared with what a module that was made anew says.
    """
    began = time.process_time()
    deadline = began + _BUDGET_S
    now, spent, better = _seen(model, state, call), 0, True
    took = time.process_time() - began
    while better and any(now.score()) and spent < _MOST_TRIES:
        better = False
        for other in _candidates(state, now):
            if spent >= _MOST_TRIES or time.process_time() > deadline:
                break
            # What a handful of numbers or one step of time takes says little about more of them.
            growth = 1 if now.tiny else min(4, elements(other) / max(1, elements(state)))
            if elements(other) > _MOST_ELEMENTS or took * growth > _SLOW_S:
                continue
            spent += 1
            began = time.process_time()
            tried = attempted(partial(_tried, None if now.tiny else model, make, other, call))
            if tried is None:  # whatever it raised, these inputs are no better
                continue
            fresh, then = tried
            if then.score() < now.score():
                model, state, now, better = fresh, other, then, True
                took = time.process_time() - began
                break
    return model, state, _notes(now)


def _tried(model: nn.Module | None, make: Make, state: State, call: Call) -> tuple[nn.Module, Seen]:
    model = make() if model is None else model
    return model, _seen(model, state, call)


def _notes(seen: Seen) -> list[str]:
    found = []
    if seen.unbatched:
        found.append("a convolution, pooling or norm is called without a batch axis")
    if seen.tiny:
        found.append(f"an input has fewer than {FEWEST} elements")
    if seen.crossed:
        found.append("inputs broadcast across the batch")
    if seen.narrow:
        found.append("a convolution is wider than what it runs over")
    if seen.whole:
        found.append("the batch size handed over is all of axis 0")
    return found


def _seen(model: nn.Module, state: State, call: Call) -> Seen:
    seen = Seen()

    def look(layer: nn.Module, args: tuple[Any, ...]) -> None:
        if args and isinstance(args[0], torch.Tensor):
            _layer(layer, tuple(args[0].shape), seen)

    watched = [m for m in model.modules() if isinstance(m, _UNBATCHED)]
    hooks = [layer.register_forward_pre_hook(look) for layer in watched]
    try:
        output = call(model, state)
    finally:
        for hook in hooks:
            hook.remove()
    seen.tiny = sum(len(v.shape) > 1 and _count(v) < FEWEST for _, v in _floats(state))
    seen.whole = len(_batch_sizes(state))
    seen.narrow += _narrow_input(watched, state)
    seen.crossed = int(_crossed(model, output, state, call))
    return seen


def _layer(layer: nn.Module, shape: tuple[int, ...], seen: Seen) -> None:
    over = next((n for n in (1, 2, 3) if f"{n}d" in type(layer).__mro__[_known(layer)].__name__), 0)
    if not over:
        return
    seen.unbatched += len(shape) == over + 1
    sides = shape[-over:]
    if isinstance(layer, _CONVOLUTIONS):
        first, seen.layers = not seen.layers, seen.layers + 1
        for side, kernel, dilation in zip(sides, layer.kernel_size, layer.dilation, strict=True):
            # From the centre outwards all taps lie in the padding; deep in a pyramid of small
            # maps some may.
            outside = kernel > 1 and (kernel - 1) // 2 * dilation >= side
            seen.narrow += outside or (first and side <= _SMALL_AXIS and side < kernel)
    elif isinstance(layer, _POOLS) and hasattr(layer, "output_size"):
        seen.narrow += max(sides) == 1  # a global pooling that has nothing left to pool


def _known(layer: nn.Module) -> int:
    """Where torch's own class stands among a layer's bases: its name says over how many axes."""
    return next((i for i, each in enumerate(type(layer).__mro__)
                 if each.__module__.startswith("torch.nn")), 0)  # fmt: skip


def _narrow_input(watched: list[nn.Module], state: State) -> int:
    """Sides of an image that are shorter than any kernel, padded up before a layer sees them."""
    first = _first(state)
    kernels = [max(m.kernel_size) for m in watched if isinstance(m, _CONVOLUTIONS)]
    if first is None or len(first.shape) < 4 or not kernels:
        return 0
    # Frames may come before channels in a video.
    sides = first.shape[3 if len(first.shape) == 5 else 2 :]
    return sum(size <= _SMALL_AXIS and size < max(kernels) for size in sides)


def _batch_sizes(state: State) -> dict[str, Value]:
    """Batch sizes that leave one frame or one part of axis 0 to each, and what to put instead."""
    first = _first(state)
    if first is None or first.shape[:1] in ((), (1,)):
        return {}
    return {name: Other("1") for name, value in state
            if name in BATCHES and value == Other(str(first.shape[0]))}  # fmt: skip


def _crossed(model: nn.Module, output: Any, state: State, call: Call) -> bool:
    """Whether the batch stands twice in the output, because one input broadcast over another's."""
    given = _floats(state)
    ranks = [len(value.shape) for _, value in given]
    if len(given) < 2 or not _twice(output, max(ranks), given[0][1].shape[:1]):
        return False
    # Two axes may be of one size by chance: another batch tells.
    batch, changed = given[0][1].shape[0], dict[str, Value]()
    for name, value in state:
        if isinstance(value, Tensor) and value.shape[:1] == (batch,):
            changed[name] = replace(value, shape=(batch + 1, *value.shape[1:]))
    # Where the batch cannot be changed nothing can be said.
    again = attempted(lambda: call(model, _with(state, changed)))
    return _twice(again, max(ranks), (batch + 1,))


def _twice(output: Any, rank: int, batch: tuple[int, ...]) -> bool:
    while isinstance(output, list | tuple) and output:
        output = output[0]
    if not isinstance(output, torch.Tensor) or not batch:
        return False
    return output.dim() > rank and tuple(output.shape[:2]) == (*batch, *batch)


def _first(state: State) -> Tensor | None:
    return next((value for _, value in _floats(state)), None)


def _floats(state: State) -> list[tuple[str, Tensor]]:
    return [(n, v) for n, v in state if isinstance(v, Tensor) and v.dtype == FLOAT]


def _count(value: Tensor) -> int:
    return elements((("", value),))


def _with(state: State, changed: dict[str, Value]) -> State:
    return tuple((name, changed.get(name, value)) for name, value in state)


def _candidates(state: State, seen: Seen) -> Iterator[State]:
    if seen.unbatched:
        yield from _batched(state)
    if seen.tiny:
        yield from _grown(state, seen.layers > 0)
    if seen.crossed:
        yield from _lined_up(state)
    if seen.whole:
        yield _with(state, _batch_sizes(state))
    if seen.narrow:
        yield from _wider(state)


def _batched(state: State) -> Iterator[State]:
    given = _floats(state)
    rank = len(given[0][1].shape) if given else 0
    alike = {n: replace(v, shape=(BATCH, *v.shape)) for n, v in given if len(v.shape) == rank}
    yield _with(state, dict(alike))
    if len(alike) > 1:
        name = given[0][0]
        yield _with(state, {name: alike[name]})


def _grown(state: State, images: bool) -> Iterator[State]:
    small = {n: v for n, v in _floats(state) if len(v.shape) > 1 and _count(v) < FEWEST}
    if not small:
        return
    width = max(size for v in small.values() for size in v.shape)
    shapes = [(BATCH, LENGTH, 64), (BATCH, 64), (BATCH, 4, 64, 64), (64, 64), (64, width),
              (BATCH, LENGTH, width)]  # fmt: skip
    if images:
        shapes.insert(0, (BATCH, 64, SIDE // 2, SIDE // 2))
    for shape in shapes:
        yield _with(state, {n: replace(v, shape=shape) for n, v in small.items()})
    # Nodes of a graph or samples of a loss stand in several inputs, several times.
    yield tuple(
        (n, replace(v, shape=tuple(LENGTH if s <= _SMALL_AXIS else s for s in v.shape)))
        if isinstance(v, Tensor) else (n, v) for n, v in state
    )  # fmt: skip


def _lined_up(state: State) -> Iterator[State]:
    """The first input stays; the others get its rank, or one value for each of the batch."""
    (_, first), *others = _floats(state)
    for name, value in others:
        if len(value.shape) != len(first.shape):
            yield _with(state, {name: replace(value, shape=first.shape)})
        if len(value.shape) > 2:
            yield _with(state, {name: replace(value, shape=(value.shape[0], value.shape[-1]))})
    flat = {n: replace(v, shape=(v.shape[0], v.shape[-1])) for n, v in others if len(v.shape) > 2}
    if len(flat) > 1:
        yield _with(state, dict(flat))


def _wider(state: State) -> Iterator[State]:
    given = _floats(state)
    rank = max((len(v.shape) for _, v in given), default=0)
    for dim in range(rank - 1, 0, -1):
        size = SIDE if rank > 3 else LENGTH
        alike = [(n, v) for n, v in given if len(v.shape) == rank and v.shape[dim] <= _SMALL_AXIS]
        short = {n: _sized(v, dim, size) for n, v in alike}
        if short:
            yield _with(state, dict(short))
    for factor in (2, 4):
        if rank >= 4:
            yield _with(state, {
                n: replace(v, shape=(*v.shape[:2], *(s * factor for s in v.shape[2:])))
                for n, v in given if len(v.shape) >= 4})  # fmt: skip
    for dim in (2, 1) if rank == 3 else ():
        long = {n: _sized(v, dim, v.shape[dim] * 4) for n, v in given if len(v.shape) == 3}
        yield _with(state, dict(long))


def _sized(value: Tensor, dim: int, size: int) -> Tensor:
    return replace(value, shape=(*value.shape[:dim], size, *value.shape[dim + 1 :]))
