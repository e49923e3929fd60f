"""Three kernels: the copy of the input, that of the weights, and their product."""

from dataclasses import dataclass

from kernelsmith.propose.rules.kinds.around import DTYPES
from kernelsmith.propose.rules.kinds.candidate import Parts
from kernelsmith.propose.rules.kinds.neighbours.graph import Convolution
from kernelsmith.propose.rules.kinds.neighbours.triton import (
    AXES,
    after_of,
    value_of,
    wrapped,
)
from kernelsmith.propose.rules.kinds.packed.phases import Axis, Phase, phases_of
from kernelsmith.propose.rules.kinds.packed.tiles import (
    fitted,
    most_sums,
    precision_of,
    rounds,
    warps_of_all,
)
from kernelsmith.propose.rules.kinds.sizes import Three
from kernelsmith.propose.rules.kinds.texts import triton_functions
from kernelsmith.propose.rules.space import Parameters

ROUNDED = """\
@triton.jit
def rounded_to_tf32(v):
    # To the nearest: tensor cores cut off what is below. What is no number stays none.
    if v.dtype == tl.float32:
        bits = v.to(tl.uint32, bitcast=True) + 0x1000
        v = tl.where(v == v, (bits & 0xFFFFE000).to(tl.float32, bitcast=True), v)
    return v"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What the product does with ``total``, and what it needs for that."""

    lines: tuple[str, ...]
    tensors: tuple[tuple[str, str], ...]
    """By their names in the kernel, as Python has them."""
    numbers: tuple[tuple[str, str], ...] = ()
    target: str = ""
    """The tensor whose strides the kernel gets, if any."""
    by_image: bool = False
    """Whether no tile may hold pixels of two images."""
    whole: bool = False
    """Whether a tile must hold all channels."""
    window: Three = (1, 1, 1)
    """Sizes of windows that a tile must hold whole; what is left over beside them is left out."""
    places: tuple[str, ...] = ()
    """Lines that say where a tile's pixels lie, if not one after the other."""
    room: tuple[str, ...] = ()
    """Lines of Python that make tensors once ``pieces``, tiles of an image, are counted."""


def stored(found: Convolution) -> Ending:
    """What is elementwise, and a store."""
    names = [*found.tensors[2:], "out"]
    numbers = tuple((name, text) for name, text in found.numbers.items() if name.startswith("s"))
    return Ending(
        lines=(*placed(found), *after_of(found, "[None, :]")), numbers=numbers, target="out",
        tensors=tuple((each, each) for each in names),
    )  # fmt: skip


def placed(found: Convolution, channels: bool = True) -> list[str]:
    """Lines that say ``at`` which places of the output a tile lies, and which of it is ``there``.

    Without ``channels`` there is one value per pixel.
    """
    apart = [each.apart for each in phases_of(found)[0]]
    lines = [
        f"at = (jz * {apart[0]} + shift_z).to(tl.int64) * oz + image.to(tl.int64) * ob",
        f"at += (jy * {apart[1]} + shift_y) * oy + (jx * {apart[2]} + shift_x) * ox",
    ]
    if not channels:
        return [*lines, "at = at[:, None]", "there = exists[:, None]"]
    return [
        *lines,
        "at = at[:, None] + (co.to(tl.int64) * oc)[None, :]",
        "there = exists[:, None] & known[None, :]",
    ]


def render_triton(found: Convolution, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    nodes = (*found.before.nodes, *found.after.nodes)
    return Parts(
        kernel=triton_functions(nodes) + "\n\n\n".join(
            [*helpers_of(chosen), *kernels_of(found, chosen)]
        ),
        fits=fits_of(found, chosen), setup=found.setup(),
        launch=(
            *found.prepared(), "groups = layer.groups", *launch_of(found, chosen), "return out",
        ),
    )  # fmt: skip


def fits_of(found: Convolution, chosen: Parameters) -> tuple[str, ...]:
    """When the kernels may run."""
    x = found.x
    allowed = f"({x}.dtype is not torch.float32 or torch.backends.cudnn.allow_tf32)"
    return (
        *found.fits(DTYPES), *([allowed] if rounds(chosen) else []),
        # Places of pixels are counted in 32 bits.
        f"{x}.numel() // {x}.shape[1] * {_growth(found)} < 2**31",
    )  # fmt: skip


def kernels_of(
    found: Convolution, chosen: Parameters, name: str = "", *, ending: Ending | None = None
) -> list[str]:
    """Copy, weights and product; they need ``helpers_of``. ``name`` is added to their names.

    Raises:
        NotRecognised: It has too many phases.
    """
    ending, near = ending or stored(found), "rounded_to_tf32({})" if rounds(chosen) else "{}"
    return [
        _copy(found, name, near),
        _weights(found, name, near),
        _product(found, name, ending),
    ]


def helpers_of(chosen: Parameters) -> list[str]:
    """What the kernels call: only TF32 is rounded, whatever is exact keeps all bits."""
    return [ROUNDED] if rounds(chosen) else []


def _growth(found: Convolution) -> int:
    """At most how many pixels of copy and output one pixel of the input becomes, roughly."""
    stride = found.stride if found.turned else (1, 1, 1)
    return 2 * stride[0] * stride[1] * stride[2]


def _in_rows(found: Convolution) -> bool:
    """Whether neighbours along the last axis are one row: few channels, side by side anyway."""
    return found.few and not (found.turned or found.grouped) and found.step[2] == 1


def _copy(found: Convolution, name: str, near: str) -> str:
    """Channels side by side, zeros around; ``near`` is what becomes of a value."""
    numbers = [name for name in found.numbers if name.startswith("t")]
    names = [
        "x", "copy", "inputs", *(f"in_{a}" for a in AXES), *(f"size_{a}" for a in AXES),
        "xb", "xc", *(f"x{a}" for a in AXES), *numbers,
    ]  # fmt: skip
    fixed = ["BX", "BH"]
    low = [each.low for each in phases_of(found)[0]]
    lines = [
        "blocks = tl.cdiv(size_x, BX)",
        "row = tl.program_id(0) // blocks",
        "left = tl.program_id(0) % blocks * BX + tl.arange(0, BX)",
        "image = (row // (size_y * size_z)).to(tl.int64)",
        f"at_z = (row // size_y % size_z - {low[0]}).to(tl.int64)",
        f"at_y = (row % size_y - {low[1]}).to(tl.int64)",
        f"at_x = left - {low[2]}",
        "place = tl.program_id(1) * BH + tl.arange(0, BH)",
        "ci = place % WIDTH",
        "inside = (at_z >= 0) & (at_z < in_z) & (at_y >= 0) & (at_y < in_y)",
        "both = ((at_x >= 0) & (at_x < in_x) & inside)[:, None]",
        "both = both & ((ci < inputs) & (place < ALL))[None, :]",
        "start = x + image * xb + at_z * xz + at_y * xy",
        "channel = (place // WIDTH * inputs + ci).to(tl.int64)",
        "near = start + (at_x * xx)[:, None] + (channel * xc)[None, :]",
        "v = tl.load(near, mask=both, other=0.0)",
        *value_of(found, "both"),
        "to = copy + (row.to(tl.int64) * size_x + left)[:, None] * ALL + place[None, :]",
        "there = (left < size_x)[:, None] & (place < ALL)[None, :]",
        f"tl.store(to, {near.format('v.to(copy.dtype.element_ty)')}, mask=there)",
    ]
    return _jit("pack" + name, found, [*names, "WIDTH", "ALL"], fixed, lines)


def _weights(found: Convolution, name: str, near: str) -> str:
    """One row of factors per output channel, neighbour by neighbour."""
    names = ["weight", "factors", "inputs", "group", *(f"first_{a}" for a in AXES), "wo", "wi",
             *(f"w{a}" for a in AXES), "RUN", "WIDTH"]  # fmt: skip
    fixed = [*(f"N{a}" for a in "ZYX"), "BLOCK"]
    sz, sy, sx = (axis.next for axis in phases_of(found)[0])
    if _in_rows(found):
        place = ["mx = within // WIDTH", "ci = within % WIDTH", "my = tap % NY", "mz = tap // NY"]
        taps, known = "NZ * NY", "(mx < NX) & (ci < inputs)"
    else:
        place = ["ci = within", "mx = tap % NX", "my = tap // NX % NY", "mz = tap // (NX * NY)"]
        taps, known = "NZ * NY * NX", "(ci < inputs)"
    at = f"(first_z + mz * {sz}) * wz + (first_y + my * {sy}) * wy + (first_x + mx * {sx}) * wx"
    source = "co * wo + ci * wi"
    if found.turned:
        source = "(co // group * inputs + ci) * wo + co % group * wi"
    lines = [
        "co = tl.program_id(0).to(tl.int64)",
        f"LENGTH = {taps} * RUN",
        "k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)",
        "tap = k // RUN",
        "within = k % RUN",
        *place,
        f"wanted = (k < LENGTH) & {known}",
        f"w = tl.load(weight + {source} + {at}, mask=wanted, other=0.0)",
        f"tl.store(factors + co * LENGTH + k, {near.format('w')}, mask=k < LENGTH)",
    ]
    return _jit("weigh" + name, found, names, fixed, lines)


_IN_ORDER = (
    "jx = pixel % nx",
    "jy = pixel // nx % ny",
    "jz = pixel // (nx * ny) % nz",
)


def _product(found: Convolution, name: str, ending: Ending) -> str:
    strides = ["ob", "oc", *(f"o{a}" for a in AXES)] if ending.target else []
    names = [
        "copy", "factors", *(name for name, _ in ending.tensors), "batch", "channels", "group",
        *strides, *(f"n{a}" for a in AXES),
        *(f"size_{a}" for a in AXES), *(f"base_{a}" for a in AXES),
        *(f"shift_{a}" for a in AXES), *(name for name, _ in ending.numbers),
        "RUN", "WIDTH", "ALL",
    ]  # fmt: skip
    fixed = [*(f"N{a}" for a in "ZYX"), "BP", "BC", "BK", "EXACT"]
    first = phases_of(found)[0]
    (sz, sy, sx), (dz, dy, dx) = [(a.stride for a in first), (a.step for a in first)]
    if _in_rows(found):
        taps, place = "NZ * NY", ["my = tap % NY", "mz = tap // NY"]
        far = f"(mz * {dz} * size_y + my * {dy}) * size_x"
        # What lies behind a row meets zeros, and need not be a number.
        row = ", mask=(k % STEPS * BK + step < NX * WIDTH)[None, :], other=0.0"
    else:
        taps = "NZ * NY * NX"
        place = ["mx = tap % NX", "my = tap // NX % NY", "mz = tap // (NX * NY)"]
        far = f"(mz * {dz} * size_y + my * {dy}) * size_x + mx * {dx}"
        row = ""
    pixel = [
        "pixel = tl.program_id(0) // tiles * BP + tl.arange(0, BP)",
        "pixels = nz * ny * nx",
        "exists = pixel < batch * pixels",
        "image = tl.minimum(pixel // pixels, batch - 1)",
    ]
    if ending.by_image:
        pixel = [
            "pixels = nz * ny * nx",
            "blocks = tl.cdiv(pixels, BP)",
            "block = tl.program_id(0) // tiles % blocks",
            "image = tl.program_id(0) // tiles // blocks",
            "pixel = block * BP + tl.arange(0, BP)",
            "exists = pixel < pixels",
        ]
    lines = [
        f"TAPS: tl.constexpr = {taps}",
        "STEPS = RUN // BK",
        "shares = tl.cdiv(group, BC)",
        "tiles = channels // group * shares",
        "tile = tl.program_id(0) % tiles",
        *pixel,
        *(ending.places or _IN_ORDER),
        f"row = (image * size_z + jz * {sz} + base_z) * size_y + jy * {sy} + base_y",
        f"row = (row * size_x + jx * {sx} + base_x).to(tl.int64)",
        "step = tl.arange(0, BK)",
        "near = copy + (row * ALL)[:, None] + (tile // shares * WIDTH + step)[None, :]",
        "within = tile % shares * BC + tl.arange(0, BC)",
        "known = within < group",
        "co = tile // shares * group + tl.where(known, within, 0)",
        "beside = factors + (co.to(tl.int64) * (TAPS * RUN))[None, :] + step[:, None]",
        "total = tl.zeros([BP, BC], tl.float32)",
        "if TAPS > 0:",
        "    for k in range(TAPS * STEPS):",
        "        tap = k // STEPS",
        *(f"        {line}" for line in place),
        f"        far = ({far}).to(tl.int64) * ALL",
        f"        v = tl.load(near + (far + k % STEPS * BK){row})",
        "        w = tl.load(beside + k * BK)",
        "        total = tl.dot(v, w, total, input_precision=EXACT)",
    ]
    return _jit("convolve" + name, found, names, fixed, [*lines, *ending.lines])


def _jit(
    name: str, found: Convolution, names: list[str], fixed: list[str], lines: list[str]
) -> str:
    """A kernel; lengths are compiled in only where they are not multiples of 16."""
    if _in_rows(found):
        lengths = [each for each in names if each in ("RUN", "WIDTH", "ALL")]
        names, fixed = [each for each in names if each not in lengths], [*lengths, *fixed]
    head = wrapped(f"def {name}(", [*names, *(f"{each}: tl.constexpr" for each in fixed)])
    body = [f"    {line}" for line in lines]
    return "\n".join(["@triton.jit", *head[:-1], head[-1] + ":", *body])


def launch_of(
    found: Convolution, chosen: Parameters, name: str = "", *, ending: Ending | None = None
) -> list[str]:
    """Lines that fill ``out`` from ``x`` and ``weight``.

    They need ``sizes`` and ``outs`` (three numbers each), ``channels`` and ``groups``.
    """
    ending, chosen = ending or stored(found), fitted(chosen)
    phases = phases_of(found)
    lines = [
        "batch, inputs = x.shape[0], x.shape[1] // groups",
        *_sizes(found, chosen, phases),
        "pixels = batch * size[0] * size[1] * size[2]",
        "copy = x.new_empty(pixels * ALL)",
    ]
    first = {name: text for name, text in found.numbers.items() if name.startswith("t")}
    lines += [
        "BX = min(128, max(16, triton.next_power_of_2(size[2])))",
        "BH = min(64, triton.next_power_of_2(ALL))",
        "grid = (batch * size[0] * size[1] * triton.cdiv(size[2], BX), triton.cdiv(ALL, BH))",
        *wrapped(f"pack{name}[grid](", [
            "x", "copy", "inputs", "*sizes", "*size", *_strides(found, "x"), *first.values(),
            "WIDTH=WIDTH", "ALL=ALL", "BX=BX", "BH=BH", "num_warps=4",
        ]),
        "group = channels // groups",
        f"BC = {_channels(chosen, ending)}",
        "tiles = groups * triton.cdiv(group, BC)",
    ]  # fmt: skip
    if ending.by_image or ending.whole:
        most = f"{most_sums(chosen)} // BC"
        most = most if rounds(chosen) else f"max(64, {most})"
        few = "max(64, triton.next_power_of_2(outs[0] * outs[1] * outs[2]))"
        lines.append(f"BP = min({chosen['pixels']}, {most}, {few})")
    if ending.by_image:
        each = [
            f"triton.cdiv({' * '.join(f'({n})' for n in _counts(phase, ending))}, BP)"
            for phase in phases
        ]
        lines += [*wrapped("pieces = sum([", each)[:-1], "])", *ending.room, "first = 0"]
    for phase in phases:
        lines += _phase(found, chosen, phase, name, ending)
    return lines


def _channels(chosen: Parameters, ending: Ending) -> str:
    most = "max(16, triton.next_power_of_2(group))"
    return most if ending.whole else f"min({chosen['channels']}, {most})"


def _counts(phase: Phase, ending: Ending) -> list[str]:
    """How many outputs of a phase are computed along each axis."""
    made = []
    for i, (axis, size) in enumerate(zip(phase, ending.window, strict=True)):
        text = _counted(axis, f"outs[{i}]")
        made.append(f"({text}) // {size} * {size}" if size > 1 else text)
    return made


def _sizes(found: Convolution, chosen: Parameters, phases: list[Phase]) -> list[str]:
    """How long rows of factors are, and how large the copy is."""
    high = []
    for i in range(3):
        low, s, pad = phases[0][i].low, found.stride[i], found.padding[i]
        if found.turned:
            high.append(f"{low} + max(sizes[{i}], (outs[{i}] - 1 + {pad}) // {s} + 1)")
        else:
            high.append(f"sizes[{i}] + {2 * pad}" if pad else f"sizes[{i}]")
    depth = chosen["depth"]
    if _in_rows(found):
        lines = [
            "WIDTH = ALL = triton.next_power_of_2(inputs)",
            f"BK = min({depth}, max(16, triton.next_power_of_2({found.size[2]} * WIDTH)))",
            f"RUN = triton.cdiv({found.size[2]} * WIDTH, BK) * BK",
        ]
    else:
        steps = [each for each in ("64", "32") if int(each) <= int(depth)]
        choice = "".join(f"{each} if inputs % {each} == 0 else " for each in steps)
        lines = [
            f"BK = {choice}16",
            "WIDTH = RUN = triton.cdiv(inputs, BK) * BK",
            "ALL = WIDTH * groups",
        ]
    return [*lines, f"size = ({', '.join(high)})"]


def _phase(
    found: Convolution, chosen: Parameters, phase: Phase, name: str, ending: Ending
) -> list[str]:
    counts = _counts(phase, ending)
    taps = phase[0].taps * phase[1].taps * (1 if _in_rows(found) else phase[2].taps)
    pixels = "BP" if ending.by_image or ending.whole else chosen["pixels"]
    blocks = f"triton.cdiv(batch * counts[0] * counts[1] * counts[2], {pixels})"
    grid, more = "blocks * tiles", []
    if ending.by_image:
        blocks = "triton.cdiv(counts[0] * counts[1] * counts[2], BP)"
        grid, more = "batch * blocks * tiles", ["first += blocks"]
    first, base, shift = (
        ", ".join(str(getattr(axis, each)) for axis in phase) for each in ("first", "base", "shift")
    )
    fixed = [f"N{a}={axis.taps}" for a, axis in zip("ZYX", phase, strict=True)]
    lines = [
        f"counts = ({', '.join(counts)})",
        f"blocks = {blocks}",
        f"factors = x.new_empty((channels, {max(taps, 1)} * RUN))",
    ]
    if taps:
        lines += [
            f"BLOCK = min(1024, triton.next_power_of_2({taps} * RUN))",
            f"grid = (channels, triton.cdiv({taps} * RUN, BLOCK))",
            *wrapped(f"weigh{name}[grid](", [
                "weight", "factors", "inputs", "group", first, *_strides(found, "weight"),
                "RUN=RUN", "WIDTH=WIDTH", *fixed, "BLOCK=BLOCK", "num_warps=4",
            ]),
        ]  # fmt: skip
    return [
        *lines,
        *wrapped(f"convolve{name}[({grid},)](", [
            "copy", "factors", *(text for _, text in ending.tensors), "batch", "channels", "group",
            *(_strides(found, ending.target) if ending.target else []), "*counts", "*size", base,
            shift, *(text for _, text in ending.numbers), "RUN=RUN", "WIDTH=WIDTH", "ALL=ALL",
            *fixed, f"BP={pixels}", "BC=BC", "BK=BK",
            f'EXACT="{precision_of(chosen)}" if x.dtype is torch.float32 else "ieee"',
            f"num_warps={warps_of_all(chosen) if ending.whole else chosen['warps']}",
            f"num_stages={chosen['stages']}",
        ]),
        *more,
    ]  # fmt: skip


def _counted(axis: Axis, outs: str) -> str:
    """How many outputs a phase has along an axis."""
    if axis.apart == 1:
        return outs
    return f"({outs} + {axis.apart - 1 - axis.shift}) // {axis.apart}"


def _strides(found: Convolution, tensor: str) -> list[str]:
    """Of the first two dimensions, then of three, where missing ones have none."""
    known = [f"{tensor}.stride({i})" for i in range(found.ndim + 2)]
    return [*known[:2], *["0"] * (3 - found.ndim), *known[2:]]
