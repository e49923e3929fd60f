"""Launch parameters of captured kernels: relative to what the compiler took, by weight."""

import ast
import math
from collections.abc import Sequence
from fractions import Fraction

from kernelsmith.propose.rules.compiler.call import Call, Kernel, Launch
from kernelsmith.propose.rules.compiler.schedules import LARGEST, power
from kernelsmith.propose.rules.levers import Lever
from kernelsmith.propose.rules.space import Parameter, Parameters

_KERNELS = 4
"""Kernels whose launches can be varied, the heaviest of a call."""
_SCALES = ("1/8", "1/4", "1/2", "1", "2", "4", "8")
_WARPS = ("1", "2", "auto", "4", "8", "16")
_STAGES = ("auto", "1", "2", "3", "4")
_ELEMENTS = 65536
"""Of one program's block, over all its axes."""
_AXES = {"xblock": "XBLOCK", "yblock": "YBLOCK", "rblock": "R0_BLOCK"}
_WHY = {
    "xblock": "elements or rows per program: fewer programs, more registers",
    "yblock": "rows of a tile: how far loads and stores stay together",
    "rblock": "elements per step along what is reduced",
}


def elements(call: Call) -> dict[str, int]:
    """How many elements each kernel goes over, all its launches together."""
    launches = [step.kernel for step in call.steps if isinstance(step, Launch)]
    return {
        each.name: math.prod(n for _, n in each.sizes) * launches.count(each.name)
        for each in call.kernels
    }


def ranked(call: Call) -> list[Kernel]:
    """The kernels that move most, heaviest first."""
    moved = elements(call)

    def weight(kernel: Kernel) -> tuple[float, str]:
        if kernel.schedule == "template":
            return -math.inf, kernel.name
        return -moved[kernel.name], kernel.name

    return sorted(call.kernels, key=weight)[:_KERNELS]


def parameters(calls: Sequence[Call], first: Sequence[Call]) -> list[Parameter]:
    """What can be varied in any of these calls; names of kernels are those of the first."""
    made = []
    names = [each.name for each in ranked(first[0])] if first else []
    for rank in range(_KERNELS):
        kernels = [found[rank] for call in calls if len(found := ranked(call)) > rank]
        if not kernels:
            break
        name = names[rank] if rank < len(names) else ""
        blocks = {each for kernel in kernels for each in kernel.blocks}
        for axis, block in _AXES.items():
            if block in blocks:
                made.append(
                    Parameter(name=f"k{rank + 1}_{axis}", choices=_SCALES, default="1",
                              lever=Lever.TILE, kernel=name, why=_WHY[axis])
                )  # fmt: skip
        made.append(
            Parameter(name=f"k{rank + 1}_warps", choices=_WARPS, default="auto",
                      lever=Lever.WARPS, kernel=name, why="threads that share a program's block")
        )  # fmt: skip
        if any(kernel.schedule in ("reduction", "template", "scan") for kernel in kernels):
            made.append(
                Parameter(name=f"k{rank + 1}_stages", choices=_STAGES, default="auto",
                          lever=Lever.STAGES, kernel=name, why="loads in flight hide latency")
            )  # fmt: skip
    return made


def seeds(parameters: Sequence[Parameter]) -> list[tuple[tuple[str, str], ...]]:
    """Launches worth trying first, for the heaviest kernels."""
    known = {each.name for each in parameters}
    wanted: tuple[dict[str, str], ...] = (
        {"k1_xblock": "2"}, {"k1_xblock": "1/2"}, {"k1_rblock": "1/2"}, {"k1_warps": "8"},
        {"k1_xblock": "2", "k1_warps": "8"}, {"k1_rblock": "2", "k1_warps": "8"},
        {"k2_xblock": "2"},
    )  # fmt: skip
    return [tuple(each.items()) for each in wanted if set(each) <= known]


def chosen(call: Call, given: Parameters) -> dict[str, dict[str, int]]:
    """Block sizes, warps and stages by kernel, where they differ from the defaults."""
    found = {}
    for rank, kernel in enumerate(ranked(call), 1):
        launch = dict(kernel.defaults)
        sizes = dict(kernel.sizes)
        for axis, block in _AXES.items():
            if block in kernel.blocks:
                scale = Fraction(given.get(f"k{rank}_{axis}", "1"))
                wanted = max(1, int(launch[block] * scale))
                size = power(sizes.get(block.removesuffix("BLOCK").lower(), wanted))
                launch[block] = min(wanted, size, LARGEST[block])
        _bounded(kernel, launch)
        for key, name in (("num_warps", "warps"), ("num_stages", "stages")):
            wish = given.get(f"k{rank}_{name}", "auto")
            if wish != "auto" and (name == "warps" or _loops(kernel)):
                launch[key] = int(wish)
        if launch != dict(kernel.defaults):
            found[kernel.name] = launch
    return found


def _loops(kernel: Kernel) -> bool:
    return kernel.schedule in ("reduction", "template", "scan")


def _bounded(kernel: Kernel, launch: dict[str, int]) -> None:
    """Keep what one program holds within reason, unless the compiler itself took more."""
    blocks = [block for block in _AXES.values() if block in kernel.blocks]
    held = _held(kernel)
    allowed = max(_ELEMENTS, held * math.prod(dict(kernel.defaults)[each] for each in blocks))
    for block in blocks:
        while launch[block] > 1 and held * math.prod(launch[each] for each in blocks) > allowed:
            launch[block] //= 2


def _held(kernel: Kernel) -> int:
    """Elements along axes that the text settles: a whole row of a persistent reduction."""
    found = 1
    for node in ast.parse(kernel.text).body[0].body:  # type: ignore[attr-defined]
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=int() as size)):
                if name.endswith("BLOCK") and name[0] == "R":
                    found *= size
    return found
