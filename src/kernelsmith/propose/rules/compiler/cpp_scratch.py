"""Memory between kernels as parts of one allocation; torch takes a microsecond for each of its own.

Parts begin on lines of the cache, and not a multiple of a page behind their neighbours: the same
element of several tensors would fall into the same few lines then.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kernelsmith.propose.rules.compiler.call import (
    Allocate,
    Call,
    Launch,
    Library,
    Named,
    Operand,
    Part,
    Step,
    Viewed,
)
from kernelsmith.propose.rules.compiler.cpp_operands import opened, operands_of

SCRATCH = "scratch"
"""The name of the allocation, in Python as in C++."""
LINE = 64
"""Bytes; torch's own memory begins at a multiple of that too."""
PAGE = 4096
MOST = 30 << 20
"""Bytes of one allocation. From 32 MiB on the C library asks the system for pages that it has to
clear at each call: 40 MiB filled in 18 ms, where eight allocations of 5 MiB took 0.6."""
_SKEW = 13 * LINE
_NEAR = 32
"""How many parts before it one must not be a multiple of a page behind."""
_BYTES = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "int32": 4,
    "float32": 4, "int64": 8, "float64": 8,
}  # fmt: skip


def in_scratch(call: Call) -> Call:
    """The same call with what only its own kernels touch in one allocation.

    Args:
        call: Every tensor goes under one name. Kernels are then launched with places in bytes
            of ``scratch``.
    """
    made = {each.name: each for each in _temporaries(call)}
    places, size = laid_out({name: _size(each) for name, each in made.items()})
    if len(places) < 2:
        return call
    steps: list[Step] = []
    for step in call.steps:
        if isinstance(step, Launch):
            operands = tuple(_place(each, places, made) for each in step.operands)
            steps.append(replace(step, operands=operands))
        elif not isinstance(step, Allocate) or step.name not in places:
            steps.append(step)
        elif step.name == next(iter(places)):
            steps.append(Allocate(name=SCRATCH, shape=(size,), stride=(1,), dtype="uint8"))
    return replace(call, steps=tuple(steps))


def laid_out(sizes: Mapping[str, int]) -> tuple[dict[str, int], int]:
    """Where each begins, and how much it is in all; where it would be too much, the smaller ones.

    Args:
        sizes: Bytes by name, in order.
    """
    small: set[str] = set()
    total = 0
    for name in sorted(sizes, key=lambda each: sizes[each]):
        total += sizes[name] + PAGE
        if total <= MOST:
            small.add(name)
    places: dict[str, int] = {}
    end = 0
    for name in [each for each in sizes if each in small]:
        start = _rounded(end)
        near = {each % PAGE for each in list(places.values())[-_NEAR:]}
        while start % PAGE in near:
            start += _SKEW
        places[name] = start
        end = start + max(1, sizes[name])
    return places, _rounded(end)


def _rounded(size: int) -> int:
    return -(-size // LINE) * LINE


def _temporaries(call: Call) -> list[Allocate]:
    """What is allocated, is no result, and is touched by nothing but launches."""
    kept = set(_named(call.results))
    launched: set[str] = set()
    for step in call.steps:
        if isinstance(step, Launch):
            launched |= set(_named(step.operands))
        elif isinstance(step, Library | Part):
            kept |= set(_named(operands_of(step)))
    return [
        each for each in call.steps
        if isinstance(each, Allocate) and each.dtype in _BYTES and each.name in launched - kept
    ]  # fmt: skip


def _named(operands: Iterable[Operand]) -> list[str]:
    return [each.name for each in opened(operands) if isinstance(each, Named | Viewed)]


def _size(step: Allocate) -> int:
    """Bytes from the first element to the last."""
    if 0 in step.shape:
        return 0
    last = sum((n - 1) * by for n, by in zip(step.shape, step.stride, strict=True))
    return (last + 1) * _BYTES[step.dtype]


def _place(operand: Operand, places: Mapping[str, int], made: Mapping[str, Allocate]) -> Operand:
    """The same memory as bytes of the allocation that it lies in."""
    match operand:
        case Named(name=name) if name in places:
            return Viewed(name=SCRATCH, shape=(), stride=(), offset=places[name])
        case Viewed(name=name, offset=offset) if name in places:
            begin = places[name] + offset * _BYTES[made[name].dtype]
            return Viewed(name=SCRATCH, shape=(), stride=(), offset=begin)
    return operand
