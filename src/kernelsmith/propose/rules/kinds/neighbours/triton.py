"""Convolutions as Triton: output channels by pixels; neighbours are read where they lie.

A transposed one with a stride goes phase by phase: outputs of one phase have the same neighbours,
so that no tap is a zero in between.
"""

from kernelsmith.propose.rules.kinds.around import DTYPES
from kernelsmith.propose.rules.kinds.candidate import Parts
from kernelsmith.propose.rules.kinds.neighbours.graph import Convolution
from kernelsmith.propose.rules.kinds.texts import Texts, triton_functions
from kernelsmith.propose.rules.space import Parameters

AXES = "zyx"


def render_triton(found: Convolution, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    names = [
        *found.tensors, "out", "batch", "inputs", "channels", "group",
        *(f"in_{a}" for a in AXES), *(f"out_{a}" for a in AXES),
        "xb", "xc", *(f"x{a}" for a in AXES), *found.numbers,
    ]  # fmt: skip
    fixed = ["BC", "BP"] + ([] if found.direct else ["BK", "EXACT"])
    listed = [*names, *(f"{each}: tl.constexpr" for each in fixed)]
    head = wrapped("def neighbours(", listed)
    body = [f"    {line}" for line in _kernel(found, chosen)]
    nodes = (*found.before.nodes, *found.after.nodes)
    kernel = triton_functions(nodes) + "\n".join(["@triton.jit", *head[:-1], head[-1] + ":", *body])
    return Parts(
        kernel=kernel, fits=found.fits(DTYPES), setup=found.setup(),
        launch=(*found.prepared(), *_launch(found, chosen), "return out"),
    )  # fmt: skip


def wrapped(head: str, arguments: list[str]) -> list[str]:
    """A call or a signature over several lines."""
    lines = ["    "]
    for each in arguments:
        if len(lines[-1]) + len(each) > 94:
            lines[-1] = lines[-1].rstrip()
            lines.append("    ")
        lines[-1] += f"{each}, "
    return [head, *(line.rstrip() for line in lines), ")"]


def _phases(found: Convolution) -> int:
    z, y, x = found.stride
    return z * y * x if found.turned else 1


def _launch(found: Convolution, chosen: Parameters) -> list[str]:
    lines = []
    if chosen["layout"] == "last":
        if found.ndim == 1:
            lines.append("x = x.transpose(1, 2).contiguous().transpose(1, 2)")
        else:
            form = {2: "channels_last", 3: "channels_last_3d"}[found.ndim]
            lines.append(f"x = x.contiguous(memory_format=torch.{form})")
    if not found.direct and chosen["order"] == "taps" and found.taps > 1:
        lines.append("weight = weight.flatten(2).permute(2, 0, 1).contiguous()  # tap by tap")
    missing = 3 - found.ndim
    strides = ", ".join(["0"] * missing + [f"x.stride({2 + i})" for i in range(found.ndim)])
    sz, sy, sx = found.stride if found.turned else (1, 1, 1)
    lines += [
        "group = channels // layer.groups  # output channels that share their inputs",
        f"phase = triton.cdiv(outs[0], {sz}) * triton.cdiv(outs[1], {sy}) "
        f"* triton.cdiv(outs[2], {sx})",
    ]
    if found.direct:
        lines += [
            f"BC = min({chosen['channels']}, triton.next_power_of_2(channels))",
            f"BP = min({chosen['pixels']}, max(32, triton.next_power_of_2(phase)))",
            "tiles = triton.cdiv(channels, BC)",
        ]
        fixed = ["BC=BC", "BP=BP", f"num_warps={chosen['warps']}"]
    else:
        lines += [
            f"BC = min({chosen['channels']}, max(16, triton.next_power_of_2(group)))",
            f"BP = min({chosen['pixels']}, max(16, triton.next_power_of_2(phase)))",
            f"BK = {chosen['depth']}",
            "tiles = layer.groups * triton.cdiv(group, BC)",
        ]
        fixed = ["BC=BC", "BP=BP", "BK=BK", f'EXACT="{chosen["precision"]}" '
                 'if x.dtype is torch.float32 else "ieee"', f"num_warps={chosen['warps']}",
                 f"num_stages={chosen['stages']}"]  # fmt: skip
    lines.append(f"grid = (triton.cdiv(phase, BP) * tiles, x.shape[0] * {_phases(found)})")
    given = [
        *found.tensors, "out", "x.shape[0]", "x.shape[1] // layer.groups", "channels", "group",
        "*sizes", "*outs", "x.stride(0)", "x.stride(1)", strides, *found.numbers.values(), *fixed,
    ]  # fmt: skip
    return [*lines, *wrapped("neighbours[grid](", given)]


def _kernel(found: Convolution, chosen: Parameters) -> list[str]:
    lines, shares = ["number = tl.program_id(1)"], []
    for i, a in enumerate(AXES):
        s = found.stride[i] if found.turned else 1
        if s > 1:
            lines += [f"f{a} = number % {s}", f"number = number // {s}",
                      f"n{a} = (out_{a} - f{a} + {s - 1}) // {s}"]  # fmt: skip
            shares.append(f"tl.cdiv(out_{a}, {s})")
        else:
            lines.append(f"n{a} = out_{a}")
            shares.append(f"out_{a}")
    lines += [
        "image = number.to(tl.int64)",
        "pixels = nz * ny * nx",
        f"blocks = tl.cdiv({' * '.join(shares)}, BP)",
        "pixel = tl.program_id(0) % blocks * BP + tl.arange(0, BP)",
        "tile = tl.program_id(0) // blocks",
        "jx = pixel % nx",
        "jy = pixel // nx % ny",
        "jz = pixel // (nx * ny)",
    ]
    if found.direct:
        lines += [
            "co = tile * BC + tl.arange(0, BC)",
            "known = co < channels",
            "first = co // group * inputs",
            "start = x + image * xb + (first * xc)[:, None]",
        ]
    else:
        lines += [
            "shares = tl.cdiv(group, BC)",
            "within = tile % shares * BC + tl.arange(0, BC)",
            "co = tile // shares * group + within",
            "known = within < group",
            "first = tile // shares * inputs",
            "start = x + image * xb + first * xc",
            "step = tl.arange(0, BK)",
        ]
    lines.append("total = tl.zeros([BC, BP], tl.float32)")
    if found.direct:
        lines += _direct(found)
    elif chosen["order"] == "flat":
        lines += _flat(found)
    else:
        lines += _taps(found)
    return lines + _ending(found)


def _place(found: Convolution, i: int, tap: str) -> str:
    """Where a tap of an output lies in the input, along one axis."""
    a, s, d, p = AXES[i], found.stride[i], found.step[i], found.padding[i]
    if not found.turned:
        at = f"j{a} * {s}" if s > 1 else f"j{a}"
        return f"{at} + {tap} * {d} - {p}" if d > 1 or p else f"{at} + {tap}"
    if s == 1:
        return f"j{a} + {p} - {tap} * {d}"
    return f"j{a} + (f{a} + {p} - {tap} * {d}) // {s}"


def _split_tap(found: Convolution, tap: str) -> list[str]:
    _, ky, kx = found.size
    return [f"kz = {tap} // {ky * kx}", f"ky = {tap} // {kx} % {ky}", f"kx = {tap} % {kx}"]


def _inside(found: Convolution) -> tuple[list[str], str]:
    """Lines that place the taps ``kz``, ``ky``, ``kx``, and when they lie inside."""
    lines, tests = [], ["(pixel < pixels)"]
    for i, a in enumerate(AXES):
        if i < 3 - found.ndim:
            continue
        lines.append(f"at_{a} = {_place(found, i, f'k{a}')}")
        if found.turned or found.padding[i]:
            tests += [f"(at_{a} >= 0)", f"(at_{a} < in_{a})"]
    return lines, " & ".join(tests)


def _offset(found: Convolution) -> str:
    return " + ".join(f"at_{a} * x{a}" for i, a in enumerate(AXES) if i >= 3 - found.ndim)


def _matching(found: Convolution) -> str:
    """Which taps a phase has, where not all."""
    tests = []
    for i, a in enumerate(AXES):
        s = found.stride[i]
        if found.turned and s > 1:
            # A multiple more keeps what is divided from being negative.
            more = found.padding[i] + s * found.size[i] * found.step[i]
            tests.append(f"((f{a} + {more} - k{a} * {found.step[i]}) % {s} == 0)")
    return " & ".join(tests)


def value_of(found: Convolution, mask: str) -> list[str]:
    """The loaded ``v``, with what stands before the convolution."""
    lines = []
    if len(found.before.nodes) > 1:
        given = {found.before.made: "v"}
        given |= {int(name[1:]): name for name in found.numbers if name.startswith("t")}
        texts = _Before(found.before.nodes, given, cpp=False)
        lines = ["v = v.to(tl.float32)", *texts.lines([found.before.output])]
        lines.append(f"v = tl.where({mask}, {texts.name(found.before.output)}, 0.0)")
    return lines


class _Before(Texts):
    """Names of its own, beside those of what comes behind."""

    def name(self, n: int) -> str:
        """What a node is called in the kernel."""
        found = super().name(n)
        return f"{found}_" if found == f"v{n}" else found


def _weight(found: Convolution, co: str, ci: str, tap: str) -> str:
    """Where a weight lies."""
    if found.turned:
        return f"(({ci}) * group + {co}) * {found.taps} + {tap}"
    return f"({co} * inputs + {ci}) * {found.taps} + {tap}"


def _direct(found: Convolution) -> list[str]:
    places, inside = _inside(found)
    match = _matching(found)
    co = "co % group" if found.turned else "co"
    ci = "first + ci" if found.turned else "ci"
    inner = [
        *places,
        f"inside = known[:, None] & ({inside})[None, :]",
        f"v = tl.load(start + ci * xc + ({_offset(found)})[None, :], mask=inside, other=0.0)",
        *value_of(found, "inside"),
        f"w = tl.load(weight + {_weight(found, co, ci, 'tap')}, mask=known, other=0.0)",
        "total += w.to(tl.float32)[:, None] * v.to(tl.float32)",
    ]
    few = found.taps <= 64
    lines = ["for ci in range(inputs):"]
    lines.append(f"    for tap in {'tl.static_range' if few else 'range'}({found.taps}):")
    lines += [f"        {line}" for line in _split_tap(found, "tap")]
    if match:
        return [*lines, f"        if {match}:", *(f"            {line}" for line in inner)]
    return [*lines, *(f"        {line}" for line in inner)]


def _taps(found: Convolution) -> list[str]:
    places, inside = _inside(found)
    match = _matching(found)
    # Weights lie tap by tap here; see _launch.
    at = "(tap * channels + co)[:, None] * inputs + ci[None, :]"
    if found.turned:
        at = "(tap * (channels // group) * inputs + first + ci)[None, :] * group + within[:, None]"
    lines = [f"for tap in range({found.taps}):"]
    lines += [f"    {line}" for line in _split_tap(found, "tap")]
    inner = [
        *places,
        f"inside = {inside}",
        f"near = start + ({_offset(found)})[None, :]",
        "for c0 in range(0, inputs, BK):",
        "    ci = c0 + step",
        "    both = (ci < inputs)[:, None] & inside[None, :]",
        "    v = tl.load(near + (ci * xc)[:, None], mask=both, other=0.0)",
        *(f"    {line}" for line in value_of(found, "both")),
        f"    w = tl.load(weight + {at}, mask=known[:, None] & (ci < inputs)[None, :], other=0.0)",
        "    total = tl.dot(w, v.to(w.dtype), total, input_precision=EXACT)",
    ]
    if match:
        return [*lines, f"    if {match}:", *(f"        {line}" for line in inner)]
    return [*lines, *(f"    {line}" for line in inner)]


def _flat(found: Convolution) -> list[str]:
    """All neighbours of all channels in one row, as weights lie."""
    places, inside = _inside(found)
    for a in AXES:
        places = [line.replace(f"k{a}", f"k{a}[:, None]").replace(f"j{a}", f"j{a}[None, :]")
                  for line in places]  # fmt: skip
    inside = inside.replace("(pixel < pixels)", "(pixel < pixels)[None, :]")
    match = _matching(found)
    ci = "first + ci" if found.turned else "ci"
    co = "within" if found.turned else "co"
    known = f"(k < inputs * {found.taps})"
    wanted = f"{known} & {match}" if match else known
    weight = _weight(found, f"{co}[:, None]", f"({ci})[None, :]", "tap[None, :]")
    return [
        f"for k0 in range(0, inputs * {found.taps}, BK):",
        "    k = k0 + step",
        f"    ci = k // {found.taps}",
        f"    tap = k % {found.taps}",
        *(f"    {line}" for line in _split_tap(found, "tap")),
        f"    wanted = {wanted}",
        *(f"    {line}" for line in places),
        f"    both = wanted[:, None] & {inside}",
        f"    v = tl.load(start + (ci * xc)[:, None] + {_offset(found)}, mask=both, other=0.0)",
        *(f"    {line}" for line in value_of(found, "both")),
        f"    w = tl.load(weight + {weight}, mask=known[:, None] & {known}[None, :], other=0.0)",
        "    total = tl.dot(w, v.to(w.dtype), total, input_precision=EXACT)",
    ]


def _ending(found: Convolution) -> list[str]:
    lines = []
    for i, a in enumerate(AXES):
        s = found.stride[i] if found.turned else 1
        lines.append(f"o{a} = j{a} * {s} + f{a}" if s > 1 else f"o{a} = j{a}")
    lines += [
        "at = ((image * channels + co)[:, None] * out_z + oz[None, :]) * out_y",
        "at = (at + oy[None, :]) * out_x + ox[None, :]",
        "there = known[:, None] & (pixel < pixels)[None, :]",
    ]
    return [*lines, *after_of(found, "[:, None]")]


def after_of(found: Convolution, along: str) -> list[str]:
    """Bias, what stands behind the convolution, and the store; ``along`` places channels."""
    lines = []
    if found.bias:
        lines.append(f"total += tl.load(bias + co, mask=known, other=0.0).to(tl.float32){along}")
    given = {found.after.made: "total"}
    for n in found.channelwise:
        lines.append(f"c{n} = tl.load(p{n} + co, mask=known, other=1.0).to(tl.float32){along}")
        given[n] = f"c{n}"
    for n in found.residual:
        lines.append(f"e{n} = tl.load(r{n} + at, mask=there, other=0.0).to(tl.float32)")
        given[n] = f"e{n}"
    given |= {int(name[1:]): name for name in found.numbers if name.startswith("s")}
    texts = Texts(found.after.nodes, given, cpp=False)
    lines += texts.lines([found.after.output])
    return [*lines, f"tl.store(out + at, {texts.name(found.after.output)}, mask=there)"]
