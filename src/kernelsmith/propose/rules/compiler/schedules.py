"""Launch parameters for a generated kernel that nobody has measured yet, from its sizes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

LARGEST = {"XBLOCK": 4096, "YBLOCK": 1024, "ZBLOCK": 1024, "R0_BLOCK": 32768, "R1_BLOCK": 32768}
"""The generated masks hold up to these; a dimension of size one is not masked at all."""
_GRID = 65535
"""Programs along the second and third dimension of a grid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What the generated text says about a kernel besides its body."""

    schedule: str
    sizes: Mapping[str, int]
    reduction: str = "DEFAULT"
    """``INNER``: what is reduced lies densely; ``OUTER``: what is kept does."""
    square: bool = False
    loads: int = 1
    reductions: int = 0
    whole: bool = False
    """Whether long rows may be held at once, where registers suffice."""


def power(number: int) -> int:
    """The next power of two."""
    return 1 << max(0, number - 1).bit_length()


def chosen(hints: Hints) -> dict[str, int]:
    """Block sizes by name, ``num_warps`` and ``num_stages``."""
    sizes = {name: power(size) for name, size in hints.sizes.items()}
    if hints.schedule in ("pointwise", "other") or not any(name[0] == "r" for name in sizes):
        return _pointwise(sizes)
    if hints.schedule == "persistent":
        return _persistent(sizes, hints)
    return _looped(sizes, hints)


def _pointwise(sizes: dict[str, int]) -> dict[str, int]:
    """About a thousand elements per program, eight per thread; square where there are two axes."""
    total = math.prod(sizes.values())
    wanted = max(256, min(total // 128, 1024))
    start = {1: {"x": wanted}, 2: {"y": 32, "x": 32}, 3: {"z": 16, "y": 16, "x": 16}}[len(sizes)]
    target = math.prod(start.values())
    if total < target:
        target //= 8
    blocks = {name: min(size, sizes[name]) for name, size in start.items()}
    for name in ("x", "y", "z"):
        if name in blocks:
            limit = min(sizes[name], LARGEST[f"{name.upper()}BLOCK"])
            grid = 2**31 - 1 if name == "x" else _GRID
            while blocks[name] < limit and (
                math.prod(blocks.values()) < target or blocks[name] * grid < sizes[name]
            ):
                blocks[name] *= 2
    elements = math.prod(blocks.values())
    warps = min(8, max(4 if elements >= 128 else 1, elements // 256))
    return _named(blocks, power(warps))


def _persistent(sizes: dict[str, int], hints: Hints) -> dict[str, int]:
    """Whole rows in registers: few programs' worth of rows each, one warp where rows are short."""
    length = math.prod(size for name, size in sizes.items() if name[0] == "r")
    rows = sizes["x"]
    if hints.reduction == "INNER" and length >= 256:
        if length > 1024 or rows // 8 < 128:
            block, warps = 1, max(2, min(8, length // 128))
        else:
            block, warps = min(1024 // length, 8), 1
    elif hints.reduction == "OUTER_TINY":
        block = 2 * (256 // length) if length <= 256 else 1
        warps = max(2, min(8, block * length // 128))
    else:
        fits = [each for each in (1, 8, 32, 128) if each == 1 or length * each <= 4096]
        block = min([each for each in fits if each <= rows][-1], 32)
        if hints.reduction == "OUTER":
            block = [each for each in fits if each <= rows][-1]
        warps = max(2, min(8, block * length // 128))
    blocks = _others(sizes) | {"x": max(1, min(block, rows))}
    return _named(blocks, power(warps))


def _looped(sizes: dict[str, int], hints: Hints) -> dict[str, int]:
    """Long rows in steps; many rows side by side where those are what lies densely."""
    length = math.prod(size for name, size in sizes.items() if name[0] == "r")
    rows, heavy = sizes["x"], sizes["x"] >= 1024 and hints.loads + hints.reductions >= 10
    longest = 1024 if heavy else 2048
    if hints.reduction in ("OUTER", "DEFAULT") and hints.reduction != "INNER" and rows > 1:
        block, step = _outer(rows, length, hints) if hints.reduction == "OUTER" else (8, 512)
        warps = block * step // 128
    elif hints.whole and hints.loads + hints.reductions <= 8 and length <= 8192:
        block, step = max(4096 // length, 1), length
        warps = step // 128
    else:
        block, step = 2 if length <= 2048 else 1, min(length, longest)
        warps = step // 128
    block, step = max(1, min(block, rows)), max(1, min(step, length))
    most = 8 if heavy else 16
    inner = _shared(step, {name: size for name, size in sizes.items() if name[0] == "r"})
    blocks = _others(sizes) | {"x": block} | inner
    return _named(blocks, power(max(2, min(most, warps))))


def _others(sizes: Mapping[str, int]) -> dict[str, int]:
    return dict.fromkeys([name for name in sizes if name in ("y", "z")], 1)


def _outer(rows: int, length: int, hints: Hints) -> tuple[int, int]:
    if rows <= 1024:
        return max(min(rows // 128, 8), 2), min(length, 64)
    if rows // 4096 <= 8:
        return 16, 32
    block = max(min(256, power(rows // 4096)), 64)
    if hints.loads < 4 or length <= 128:
        return block, 512 // block
    return 32, 64 if length >= 2048 else 32


def _shared(step: int, lengths: dict[str, int]) -> dict[str, int]:
    """A step over one reduced axis, or over several with the innermost first."""
    found = {}
    for name in sorted(lengths, reverse=True):
        found[name] = min(step, lengths[name])
        step = max(1, step // found[name])
    return found


def _named(blocks: Mapping[str, int], warps: int) -> dict[str, int]:
    return {f"{name.upper()}BLOCK": size for name, size in blocks.items()} | {
        "num_warps": warps, "num_stages": 1,
    }  # fmt: skip
