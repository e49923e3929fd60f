"""In the sandbox: which sizes of the inputs are free, and sizes that are worth timing."""

import time
from collections.abc import Callable
from dataclasses import replace

from kernelsmith.corpus.inputs.recipe import Recipe
from kernelsmith.corpus.inputs.repair import Many, State, Tensor, Value
from kernelsmith.corpus.run.attempt import works

Place = tuple[int, int, int]
"""Argument, tensor in it, dimension."""
Run = Callable[[State], object]
_BUDGET_S = 0.02
_MOST_ELEMENTS = 1 << 21
_SMALLEST = 8
_FEWEST, _MOST_S = 16, 0.5
_CHOICES = ((16, 4), (16, 2), (8, 2), (8, 1), (4, 1), (2, 1))


def stretched(state: State, run: Run, recipe: Recipe) -> None:
    """Fill in a recipe's inputs: free sizes by name, defaults that cost enough, more workloads."""
    # Processor time: sizes must not depend on who else uses the machine.
    began = time.process_time()
    run(state)
    seconds = time.process_time() - began
    groups = [(name, places) for name, places in _groups(state) if _is_free(state, places, run)]
    chosen = _sizes(state, groups, run, seconds)
    _enough(state, groups, chosen, run, seconds)
    final = state
    for index, (_, places) in enumerate(groups):
        final = _put(final, places, -index - 1)
    recipe.inputs = final
    recipe.sizes = {name: chosen[name] for name, _ in groups}
    recipe.workloads = _more(state, groups, chosen, run)


def _tensors(value: Value) -> tuple[Tensor, ...]:
    if isinstance(value, Tensor):
        return (value,)
    return value.tensors if isinstance(value, Many) else ()


def _groups(state: State) -> list[tuple[str, list[Place]]]:
    sizes: dict[int, list[Place]] = {}
    batch: list[Place] = []
    first: int | None = None
    sides: set[int] = set()
    for index, (_, value) in enumerate(state):
        for number, tensor in enumerate(_tensors(value)):
            for dim, size in enumerate(tensor.shape):
                if dim == 0 and (first is None or size == first):
                    first = size
                    batch.append((index, number, dim))
                elif size >= _SMALLEST:
                    sizes.setdefault(size, []).append((index, number, dim))
                    if dim >= 2 and len(tensor.shape) >= 4:
                        sides.add(size)
    found = [("batch", batch)] if batch else []
    taken: dict[str, int] = {}
    for size, places in list(sizes.items())[:3]:
        name = "side" if size in sides else "length"
        taken[name] = taken.get(name, 0) + 1
        found.append((name if taken[name] == 1 else f"{name}{taken[name]}", places))
    return found


def _put(state: State, places: list[Place], size: int) -> State:
    found = list(state)
    for index, number, dim in places:
        name, value = found[index]
        tensors = list(_tensors(value))
        shape = list(tensors[number].shape)
        shape[dim] = size
        tensors[number] = replace(tensors[number], shape=tuple(shape))
        new: Value = tensors[0]
        if isinstance(value, Many):
            new = replace(value, tensors=tuple(tensors))
        found[index] = (name, new)
    return tuple(found)


def _size_at(state: State, place: Place) -> int:
    return _tensors(state[place[0]][1])[place[1]].shape[place[2]]


def _works(state: State, run: Run) -> bool:
    return works(lambda: run(state))


def _is_free(state: State, places: list[Place], run: Run) -> bool:
    size = _size_at(state, places[0])
    return _works(_put(state, places, size * 2), run)


def _elements(state: State) -> int:
    total = 0
    for _, value in state:
        for tensor in _tensors(value):
            count = 1
            for size in tensor.shape:
                count *= size
            total += count
    return total


def _sizes(
    state: State, groups: list[tuple[str, list[Place]]], run: Run, seconds: float
) -> dict[str, int]:
    base = {name: _size_at(state, places[0]) for name, places in groups}
    powers = sum(2 if name == "side" else 1 for name, _ in groups if name != "batch")
    for batch, factor in _CHOICES:
        sizes = {}
        for name, size in base.items():
            if name == "batch":
                sizes[name] = max(size, batch)
            else:
                sizes[name] = min(size * factor, max(size, 512))
        scale = (batch / 2 if "batch" in base else 1) * factor**powers
        new = state
        for name, places in groups:
            new = _put(new, places, sizes[name])
        if seconds * scale > _BUDGET_S or _elements(new) > _MOST_ELEMENTS:
            continue
        if sizes == base or _works(new, run):
            return sizes
    return base


def _enough(
    state: State, groups: list[tuple[str, list[Place]]], chosen: dict[str, int], run: Run,
    seconds: float,
) -> None:  # fmt: skip
    """Where inputs are only a handful of numbers, a larger batch though it costs more."""
    largest = max((_elements((("", each),)) for _, value in state for each in _tensors(value)),
                  default=0)  # fmt: skip
    batch = chosen.get("batch", _FEWEST)
    if batch >= _FEWEST or largest // max(1, _size_at(state, groups[0][1][0])) * batch >= _FEWEST:
        return
    new = state
    for name, places in groups:
        new = _put(new, places, _FEWEST if name == "batch" else chosen[name])
    if seconds * _FEWEST < _MOST_S and _works(new, run):
        chosen["batch"] = _FEWEST


def _more(
    state: State, groups: list[tuple[str, list[Place]]], chosen: dict[str, int], run: Run
) -> list[dict[str, int]]:
    """Two other workloads: one of the free sizes changed in each."""
    found = []
    for name, _ in groups[:2]:
        sizes = dict(chosen)
        sizes[name] = chosen[name] * 2 if name != "batch" else max(1, chosen[name] // 2 + 1)
        new = state
        for each, places in groups:
            new = _put(new, places, sizes[each])
        if _elements(new) <= 2 * _MOST_ELEMENTS and sizes != chosen and _works(new, run):
            found.append({name: sizes[name]})
    return found
