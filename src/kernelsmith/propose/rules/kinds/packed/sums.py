"""Lines of Triton that reduce: channels within a tile, pixels of a tile, tiles of an image."""

from collections.abc import Iterable
from math import prod

from kernelsmith.propose.rules.graph import Kind
from kernelsmith.propose.rules.kinds.packed.layouts import STARTS
from kernelsmith.propose.rules.kinds.packed.stages import MOMENTS, Stages
from kernelsmith.propose.rules.kinds.sizes import Three
from kernelsmith.propose.rules.kinds.texts import Texts

_FUNCTIONS = {
    "max": "@triton.jit\ndef larger(a, b):\n"
    "    return tl.maximum(a, b, tl.PropagateNan.ALL)  # NaN wins, as in torch",
    "min": "@triton.jit\ndef smaller(a, b):\n"
    "    return tl.minimum(a, b, tl.PropagateNan.ALL)  # NaN wins, as in torch",
}
_JOIN = {"sum": "{0} + {1}", "max": "larger({0}, {1})", "min": "smaller({0}, {1})"}
JOINED = """\
@triton.jit
def joined(
    means, squares, lengths, centres, spreads, channels, groups, pieces, pixels,
    BLOCK: tl.constexpr, BG: tl.constexpr,
):
    # Mean and centred squares of a group, from those of its pieces: none cancel.
    image = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1)
    size = channels // groups
    within = tl.arange(0, BG)
    co = group * size + within
    share = 1.0 / (tl.cast(size, tl.float32) * tl.cast(pixels, tl.float32))
    total = tl.zeros([BLOCK, BG], tl.float32)
    for first in range(0, pieces, BLOCK):
        piece = first + tl.arange(0, BLOCK)
        both = (piece < pieces)[:, None] & (within < size)[None, :]
        length = tl.load(lengths + piece, mask=piece < pieces, other=0.0)[:, None]
        at = ((image * pieces + piece) * channels)[:, None] + co[None, :]
        total += tl.load(means + at, mask=both, other=0.0) * (length * share)
    centre = tl.sum(tl.sum(total, axis=0), axis=0)
    total = tl.zeros([BLOCK, BG], tl.float32)
    for first in range(0, pieces, BLOCK):
        piece = first + tl.arange(0, BLOCK)
        both = (piece < pieces)[:, None] & (within < size)[None, :]
        length = tl.load(lengths + piece, mask=piece < pieces, other=0.0)[:, None]
        at = ((image * pieces + piece) * channels)[:, None] + co[None, :]
        off = tl.load(means + at, mask=both, other=0.0) - centre
        more = tl.load(squares + at, mask=both, other=0.0) + length * off * off
        total += tl.where(both, more, 0.0)
    tl.store(centres + image * groups + group, centre)
    tl.store(spreads + image * groups + group, tl.sum(tl.sum(total, axis=0), axis=0))"""
"""Moments of groups of channels, per image."""


def functions(stages: Stages) -> list[str]:
    """What the lines below call."""
    nodes = [stages.reduced.nodes[n] for n in stages.needed]
    ops = {node.op for node in nodes if node.kind is Kind.REDUCE}
    found = [text for op, text in _FUNCTIONS.items() if op in ops]
    return found + [JOINED] * bool(ops & set(MOMENTS))


def across(op: str, value: str, axis: int, *, keep: bool) -> str:
    """One value of many along an axis of a tile."""
    kept = ", keep_dims=True" if keep else ""
    if op == "sum":
        return f"tl.sum({value}, axis={axis}{kept})"
    return f"tl.reduce({value}, {axis}, {'larger' if op == 'max' else 'smaller'}{kept})"


def computed(stages: Stages, texts: Texts, nodes: Iterable[int]) -> list[str]:
    """Lines for these nodes in their order, channels reduced within the tile."""
    lines = []
    for n in nodes:
        node = stages.reduced.nodes[n]
        if n in texts.given or node.kind in (Kind.CONSTANT, Kind.NUMBER):
            continue
        if node.kind is Kind.REDUCE and node.text == "w":
            lines += texts.lines(node.args)
            size = prod(stages.reduced.window or ())
            wide = "BC" if "c" in stages.reduced.layouts[n] else "1"
            value = f"tl.reshape({texts.name(node.args[0])}, [BP // {size}, {size}, {wide}])"
            lines.append(f"v{n} = {across(node.op, value, 1, keep=False)}")
            texts.given[n] = f"v{n}"
        elif node.kind is Kind.REDUCE:
            lines += texts.lines(node.args)
            value = f"tl.where(known[None, :], {texts.name(node.args[0])}, {STARTS[node.op]})"
            lines.append(f"v{n} = {across(node.op, value, 1, keep=True)}")
            texts.given[n] = f"v{n}"
        else:
            lines += texts.lines([n])
    return lines


def by_window(window: Three) -> list[str]:
    """Lines that place ``pixel`` within windows, which follow one another; sizes are multiples."""
    (z, y, x), many = window, prod(window)
    return [
        f"window = pixel // {many}",
        f"jx = window % (nx // {x}) * {x} + pixel % {x}",
        f"jy = window // (nx // {x}) % (ny // {y}) * {y} + pixel // {x} % {y}",
        f"jz = window // (nx // {x} * (ny // {y})) % (nz // {z}) * {z} + pixel // {x * y} % {z}",
    ]


def of_windows(window: Three) -> list[str]:
    """Lines after which windows are what pixels were."""
    (z, y, x), many = window, prod(window)
    return [
        f"pixel = block * (BP // {many}) + tl.arange(0, BP // {many})",
        f"pixels = pixels // {many}",
        "exists = pixel < pixels",
        f"jx = pixel % (nx // {x})",
        f"jy = pixel // (nx // {x}) % (ny // {y})",
        f"jz = pixel // (nx // {x} * (ny // {y})) % (nz // {z})",
    ]


def pieces(stages: Stages, texts: Texts, stage: int) -> list[str]:
    """Lines that store what a tile's pixels add up to.

    They need ``image``, ``block``, ``first`` and ``pieces``, which say where the tile's share is
    kept, and ``pixel``, ``pixels`` and ``exists``.
    """
    summed = stages.summed(stage)
    if not summed:
        return []
    reduced = stages.reduced
    lines = ["piece = image.to(tl.int64) * pieces + first + block"]
    moments: list[int] = []
    for n in summed:
        node = reduced.nodes[n]
        arg = node.args[0]
        if node.op in MOMENTS:
            moments += [arg] if arg not in moments else []
            continue
        at, mask = _place(stages, arg)
        value = f"tl.where(exists[:, None], {texts.name(arg)}, {STARTS[node.op]})"
        lines.append(f"tl.store(a{n} + {at}, {across(node.op, value, 0, keep=False)}{mask})")
    if moments:
        size = prod(reduced.window or ()) if stages.windowed(stage) else 1
        tile = f"BP // {size}" if size > 1 else "BP"
        lines += [
            f"length = tl.minimum(pixels - block * ({tile}), {tile}).to(tl.float32)",
            "tl.store(lengths + first + block, length, mask=image == 0)",
        ]
    for arg in moments:
        at, mask = _place(stages, arg)
        value = texts.name(arg)
        lines += [
            # A share of each, so that no sum is larger than what it is the mean of.
            f"mean = tl.sum(tl.where(exists[:, None], {value}, 0.0) * (1.0 / length), axis=0)",
            f"off = tl.where(exists[:, None], {value} - mean[None, :], 0.0)",
            f"tl.store(a{arg} + {at}, mean{mask})",
            f"tl.store(m{arg} + {at}, tl.sum(off * off, axis=0){mask})",
        ]
    return lines


def _place(stages: Stages, arg: int) -> tuple[str, str]:
    if "c" in stages.reduced.layouts[arg]:
        return "piece * channels + co", ", mask=known"
    return "piece + tl.zeros([1], tl.int64)", ""


def finished(stages: Stages, n: int) -> list[str]:
    """Lines that add up the shares of all tiles, in order."""
    node = stages.reduced.nodes[n]
    channels = "c" in stages.reduced.layouts[n]
    start = STARTS[node.op]
    at = "((image * pieces + piece) * channels)[:, None] + co[None, :]"
    mask = "(piece < pieces)[:, None] & known[None, :]"
    if not channels:
        at, mask = "(image * pieces + piece)[:, None]", "(piece < pieces)[:, None]"
    part = f"tl.load(a{n} + {at}, mask={mask}, other={start})"
    return [
        f"total = tl.full([BLOCK, {'BC' if channels else '1'}], {start}, tl.float32)",
        "for first in range(0, pieces, BLOCK):",
        "    piece = first + tl.arange(0, BLOCK)",
        f"    total = {_JOIN[node.op].format('total', part)}",
        f"v{n} = {across(node.op, 'total', 0, keep=True)}",
    ]
