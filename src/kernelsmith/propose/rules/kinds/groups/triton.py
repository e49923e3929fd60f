"""Norms over channels as Triton: moments of pieces, then planes scaled by what they add up to."""

from kernelsmith.propose.rules.kinds.around import DTYPES
from kernelsmith.propose.rules.kinds.candidate import Parts
from kernelsmith.propose.rules.kinds.groups.graph import Groups
from kernelsmith.propose.rules.kinds.texts import Texts, triton_functions
from kernelsmith.propose.rules.space import Parameters

_MOMENTS = """\
@triton.jit
def moments({x}, partial, length, pieces, BLOCK: tl.constexpr):
    number = tl.program_id(0).to(tl.int64)
    first = number % pieces * BLOCK
    at = tl.arange(0, BLOCK)
    count = tl.minimum(length - first, BLOCK).to(tl.float32)
    inside = at < length - first
    value = tl.load(
        {x} + number // pieces * length + first + at, mask=inside, other=0.0
    ).to(tl.float32)
    mean = tl.sum(value, axis=0) / count
    off = tl.where(inside, value - mean, 0.0)
    tl.store(partial + number * 2, mean)
    tl.store(partial + number * 2 + 1, tl.sum(off * off, axis=0))


"""
_JOINED = """\
@triton.jit
def joined(partial, stats, length, pieces, PIECE: tl.constexpr, PIECES: tl.constexpr):
    group = tl.program_id(0).to(tl.int64)
    which = tl.arange(0, PIECES)
    known = which < pieces
    count = tl.where(known, tl.minimum(length - which * PIECE, PIECE), 0).to(tl.float32)
    means = tl.load(partial + (group * pieces + which) * 2, mask=known, other=0.0)
    squares = tl.load(partial + (group * pieces + which) * 2 + 1, mask=known, other=0.0)
    centre = tl.sum(means * count, axis=0) / tl.cast(length, tl.float32)
    off = tl.where(known, means - centre, 0.0)
    tl.store(stats + group * 2, centre)
    tl.store(stats + group * 2 + 1, tl.sum(squares + count * off * off, axis=0))


"""
_STATISTICS = {
    True: [
        "centre = tl.load(mean + channel).to(tl.float32)",
        "spread = tl.load(var + channel).to(tl.float32)",
    ],
    False: [
        "group = plane // (channels // groups)",
        "centre = tl.load(stats + group * 2)",
        "spread = tl.load(stats + group * 2 + 1) / tl.cast(length, tl.float32)",
    ],
}
"""By whether they are running ones."""
_MOST = 4096
"""Pieces that one program adds up."""


def render_triton(groups: Groups, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    running = groups.kind == "batch"
    x = groups.x
    evict = ', eviction_policy="evict_first"' if chosen["evict"] == "first" else ""
    texts = Texts(groups.nodes, {groups.made: "value"} | {n: f"s{n}" for n in groups.numbers},
                  cpp=False)  # fmt: skip
    inside = texts.lines([groups.output])
    stats = ["mean", "var"] if running else ["stats"]
    arguments = [*groups.tensors, *stats, "out", "channels", "groups", "length", "inner", "strips",
                 "eps", *[f"s{n}" for n in groups.numbers], "BLOCK: tl.constexpr"]  # fmt: skip
    weights = ["base = 0.0"]
    if groups.affine:
        weights = ["factor = factor * tl.load(weight + channel).to(tl.float32)",
                   "base = tl.load(bias + channel).to(tl.float32)"]  # fmt: skip
    lines = [
        "@triton.jit",
        f"def scaled({', '.join(arguments)}):",
        *[f"    {line}" for line in [
            "number = tl.program_id(0).to(tl.int64)",
            "plane = number // strips",
            "channel = plane % channels",
            *_STATISTICS[running],
            "factor = 1.0 / tl.sqrt(spread + eps)",
            *weights,
            "at = number % strips * BLOCK + tl.arange(0, BLOCK)",
            f"value = tl.load({x} + plane * inner + at, mask=at < inner, other=0.0{evict})"
            ".to(tl.float32)",
            "value = (value - centre) * factor + base",
            *inside,
            f"tl.store(out + plane * inner + at, {texts.name(groups.output)}, mask=at < inner)",
        ]],
    ]  # fmt: skip
    piece = int(chosen.get("piece", "1024"))
    given = ", ".join([*groups.tensors, *stats, "out", "channels", "groups", "length", "inner",
                       "strips", f"{groups.path}.eps", *groups.numbers.values()])  # fmt: skip
    launch = [
        f"block = min({chosen['block']}, triton.next_power_of_2(inner))",
        "strips = triton.cdiv(inner, block)",
    ]
    if not running:
        launch += [
            f"piece = min({piece}, triton.next_power_of_2(length))",
            "pieces = triton.cdiv(length, piece)",
            f"stats = torch.empty((batch * groups, 2), dtype=torch.float32, device={x}.device)",
            "partial = stats if pieces == 1 else stats.new_empty((batch * groups * pieces, 2))",
            f"moments[(batch * groups * pieces,)]({x}, partial, length, pieces, BLOCK=piece, "
            f"num_warps={chosen['warps']})",
            "if pieces > 1:",
            "    joined[(batch * groups,)](partial, stats, length, pieces, PIECE=piece, "
            "PIECES=triton.next_power_of_2(pieces), num_warps=4)",
        ]
    launch.append(
        f"scaled[(batch * channels * strips,)]({given}, BLOCK=block, num_warps={chosen['warps']})"
    )
    kernel = triton_functions(groups.nodes)
    kernel += "" if running else _MOMENTS.format(x=x) + _JOINED
    fits = groups.fits(DTYPES)
    if not running:
        fits += (f"{x}.numel() // {x}.shape[0] <= {_MOST * piece}",)
    return Parts(
        kernel=kernel + "\n".join(lines), fits=fits,
        launch=(*groups.prepared(), *launch, "return out"),
    )  # fmt: skip
