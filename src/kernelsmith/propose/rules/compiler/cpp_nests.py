"""Nests of loops: how they lie in each other, and how much they do."""

from kernelsmith.propose.rules.compiler.cpp_tree import (
    Accumulator,
    Gather,
    Loop,
    Statement,
    walk,
)


def is_innermost(loop: Loop) -> bool:
    """Whether there is no loop inside."""
    return not any(isinstance(each, Loop) for each in walk(loop.body))


def chain_of(loop: Loop) -> list[Loop]:
    """Loops with nothing else between them, the outermost first."""
    found = [loop]
    while len(found[-1].body) == 1 and isinstance(found[-1].body[0], Loop):
        found.append(found[-1].body[0])
    return found


def collapsed(loop: Loop) -> tuple[int, tuple[Statement, ...]]:
    """How many loops threads share, so that there is enough to share, and what is inside."""
    chain = chain_of(loop)
    outer = [each for each in chain if not is_innermost(each)] or chain[:1]
    depth, shared = 1, loop.extent
    while depth < len(outer) and shared < 128:
        shared *= outer[depth].extent
        depth += 1
    return depth, outer[depth - 1].body


def work(loop: Loop) -> int:
    """How many elements a nest of loops touches."""
    inside = sum(work(each) for each in loop.body if isinstance(each, Loop))
    return loop.extent * max(1, inside)


def terms(body: tuple[Statement, ...], name: str) -> int:
    """How many values an accumulator gathers before it starts anew."""
    if any(isinstance(each, Accumulator) and each.name == name for each in body):
        return _gathered(body, name)
    return max((terms(each.body, name) for each in body if isinstance(each, Loop)), default=0)


def _gathered(body: tuple[Statement, ...], name: str) -> int:
    loops = [each.extent * _gathered(each.body, name) for each in body if isinstance(each, Loop)]
    here = any(isinstance(each, Gather) and each.name == name for each in body)
    return max([*loops, int(here)])
