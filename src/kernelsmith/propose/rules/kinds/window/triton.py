"""Windows as Triton: a program takes a patch of one plane, taps are unrolled."""

from kernelsmith.propose.rules.kinds.around import DTYPES
from kernelsmith.propose.rules.kinds.candidate import Parts
from kernelsmith.propose.rules.kinds.texts import Texts, triton_functions
from kernelsmith.propose.rules.kinds.window.graph import Window
from kernelsmith.propose.rules.space import Parameters

_LARGER = """\
@triton.jit
def larger(a, b):
    return tl.maximum(a, b, tl.PropagateNan.ALL)  # NaN wins, as in torch


"""
_START = {"max": 'float("-inf")', "mean": "0.0", "conv": "0.0"}
_GIVEN = ("depth", "height", "width", "depths", "heights", "widths", "tall", "wide")


def render_triton(window: Window, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    spread = chosen.get("taps") == "spread"
    rows = 1 if spread else int(chosen.get("rows", "1"))
    text = triton_functions(window.nodes) + (_LARGER if window.op == "max" else "")
    arguments = [*window.tensors, "out", "channels", *_GIVEN, *(f"s{n}" for n in window.numbers)]
    arguments += [f"{each}: tl.constexpr" for each in ("HIGH", "BLOCK")]
    lines = ["@triton.jit", f"def windows({', '.join(arguments)}):"]
    lines += [f"    {line}" for line in _kernel(window, chosen, rows=rows, spread=spread)]
    given = [*window.tensors, "out", "channels", *_GIVEN[:3], "*sizes", *_GIVEN[6:],
             *window.numbers.values()]  # fmt: skip
    block = f"min({chosen['block']}, triton.next_power_of_2(sizes[2]))"
    if spread:
        block = f"max(1, {block} // 4)"  # lanes are four times as many, or more
    high = "1" if spread else f"min({chosen['block']} // block, triton.next_power_of_2(sizes[1]))"
    launch = [
        f"block = {block}",
        f"high = {high}",
        f"tall = triton.cdiv(sizes[1], high{f' * {rows}' if rows > 1 else ''})",
        "wide = triton.cdiv(sizes[2], block)",
        "grid = (batch * channels * sizes[0] * tall * wide,)",
        f"windows[grid]({', '.join(given)}, HIGH=high, BLOCK=block, num_warps={chosen['warps']})",
    ]
    return Parts(
        kernel=text + "\n".join(lines), fits=window.fits(DTYPES),
        launch=(*window.prepared(), *launch, "return out"),
    )  # fmt: skip


def _power(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _kernel(window: Window, chosen: Parameters, *, rows: int, spread: bool) -> list[str]:
    down = f" * {rows}" if rows > 1 else ""
    lines = [
        "number = tl.program_id(0)",
        "left = number % wide * BLOCK",
        "rest = number // wide",
        "top = rest % tall * HIGH" + down,
        "rest = rest // tall",
        "plane = (rest // depths).to(tl.int64)",
        "cz = rest % depths",
        f"cx = left + tl.arange(0, BLOCK)[{':, None' if spread else 'None, :'}]",
    ]
    if spread:
        lines += ["cy = top", f"tap = tl.arange(0, {_power(window.size[2])})[None, :]"]
    else:
        lines.append(f"cy = top + tl.arange(0, HIGH)[:, None]{down}")
    lines.append(f"start = {window.x} + plane * depth * height * width")
    if window.op == "conv":
        lines.append("channel = plane % channels")
    start = "tl.load(bias + channel).to(tl.float32)" if window.bias else _START[window.op]
    shape = f"[BLOCK, {_power(window.size[2])}]" if spread else "[HIGH, BLOCK]"
    if window.bias and spread:
        lines.append(f"base = {start}")
        start = "0.0"
    lines += [f"a{r} = tl.zeros({shape}, tl.float32) + {start}" for r in range(rows)]
    if _counts(window):
        lines += [f"n{r} = tl.zeros({shape}, tl.float32)" for r in range(rows)]
    if spread:
        lines += _spread(window, chosen)
    elif rows > 1 or window.taps <= 32:
        lines += _unrolled(window, chosen, rows)
    else:
        lines += _looped(window, chosen)
    return lines + _ending(window, rows, spread=spread)


def _counts(window: Window) -> bool:
    return window.op == "mean" and not window.divisor and not window.whole and window.padded


def _place(name: str, stride: int, off: int) -> str:
    text = name if stride == 1 else f"{name} * {stride}"
    return text if not off else f"{text} {'+' if off > 0 else '-'} {abs(off)}"


def _load(window: Window, chosen: Parameters, z: str, y: str, x: str) -> list[str]:
    """One tap of a patch: where it lies, whether it lies inside, its value."""
    inside = ["(cx < widths) & (cy < heights)"]
    shared = int(chosen.get("rows", "1")) > 1
    for i, place, size in ((0, z, "depth"), (1, y, "height"), (2, x, "width")):
        if window.before[i]:
            inside.append(f"({place} >= 0)")
        # Rows that share a patch may go beyond the last one.
        beyond = window.behind[i] or window.beyond
        if window.before[i] or beyond or (i == 1 and shared):
            inside.append(f"({place} < {size})")
    evict = ', eviction_policy="evict_first"' if chosen["evict"] == "first" else ""
    return [
        f"inside = {' & '.join(inside)}",
        f"v = tl.load(start + (({z}) * height + {y}) * width + {x}, mask=inside, "
        f"other={_START[window.op]}{evict}).to(tl.float32)",
    ]


def _join(window: Window, r: int, tap: str) -> list[str]:
    if window.op == "max":
        return [f"a{r} = larger(a{r}, v)"]
    if window.op == "conv":
        return [f"a{r} += v * {tap}"]
    return [f"a{r} += v"] + ([f"n{r} += inside.to(tl.float32)"] if _counts(window) else [])


def _weight(window: Window, tap: str) -> str:
    return f"tl.load(weight + channel * {window.taps} + {tap}).to(tl.float32)"


def _unrolled(window: Window, chosen: Parameters, rows: int) -> list[str]:
    """Every input that the rows of a patch need is read once."""
    lines = []
    if window.op == "conv":
        lines = [f"w{tap} = {_weight(window, str(tap))}" for tap in range(window.taps)]
    kz, ky, kx = window.size
    needed: dict[int, list[tuple[int, int]]] = {}
    for r in range(rows):
        for k in range(ky):
            needed.setdefault(r * window.stride[1] + k * window.step[1], []).append((r, k))
    for dz in range(kz):
        z = _place("cz", window.stride[0], dz * window.step[0] - window.before[0])
        lines.append(f"at_z = {z}")
        for off, users in sorted(needed.items()):
            lines.append(f"at_y = {_place('cy', window.stride[1], off - window.before[1])}")
            for dx in range(kx):
                x = _place("cx", window.stride[2], dx * window.step[2] - window.before[2])
                lines += [f"at_x = {x}", *_load(window, chosen, "at_z", "at_y", "at_x")]
                for r, k in users:
                    lines += _join(window, r, f"w{(dz * ky + k) * kx + dx}")
    return lines


def _looped(window: Window, chosen: Parameters) -> list[str]:
    z, y, x = (
        f"{_place(f'c{name}', window.stride[i], -window.before[i])} + k{name} * {window.step[i]}"
        for i, name in enumerate("zyx")
    )
    tap = f"((kz * {window.size[1]} + ky) * {window.size[2]} + kx)"
    return [
        f"for kz in range({window.size[0]}):",
        f"    at_z = {z}",
        f"    for ky in range({window.size[1]}):",
        f"        at_y = {y}",
        f"        for kx in tl.static_range({window.size[2]}):",
        f"            at_x = {x}",
        *[f"            {line}" for line in _load(window, chosen, "at_z", "at_y", "at_x")],
        *[f"            {line}" for line in _join(window, 0, _weight(window, tap))],
    ]


def _spread(window: Window, chosen: Parameters) -> list[str]:
    """Lanes lie across a window's row, so that neighbours read neighbours."""
    z, y = (
        f"{_place(f'c{name}', window.stride[i], -window.before[i])} + k{name} * {window.step[i]}"
        for i, name in enumerate("zy")
    )
    x = f"{_place('cx', window.stride[2], -window.before[2])} + tap"
    weight = f"tl.load(weight + channel * {window.taps} + (kz * {window.size[1]} + ky) * "
    weight += f"{window.size[2]} + tap, mask=tap < {window.size[2]}, other=0.0).to(tl.float32)"
    load = _load(window, chosen, "at_z", "at_y", "at_x")
    load[0] += f" & (tap < {window.size[2]})"
    return [
        f"at_x = {x}",
        f"for kz in range({window.size[0]}):",
        f"    at_z = {z}",
        f"    for ky in range({window.size[1]}):",
        f"        at_y = {y}",
        *[f"        {line}" for line in load],
        *[f"        {line}" for line in _join(window, 0, weight)],
    ]


def _ending(window: Window, rows: int, *, spread: bool) -> list[str]:
    lines = ["to = out + ((plane * depths + cz) * heights) * widths"]
    for r in range(rows):
        if spread:
            how = "tl.reduce(a0, 1, larger, keep_dims=True)"
            if window.op != "max":
                how = "tl.sum(a0, axis=1, keep_dims=True)" + (" + base" * window.bias)
            lines.append(f"a0 = {how}")
            if _counts(window):
                lines.append("n0 = tl.sum(n0, axis=1, keep_dims=True)")
        if window.op == "mean":
            by = f"n{r}" if _counts(window) else f"{window.divisor or window.taps}.0"
            lines.append(f"a{r} = a{r} / {by}")
        texts = Texts(window.nodes, {window.made: f"a{r}"} | {n: f"s{n}" for n in window.numbers},
                      cpp=False)  # fmt: skip
        lines += texts.lines([window.output])
        y = f"cy + {r}" if r else "cy"
        lines.append(
            f"tl.store(to + ({y}) * widths + cx, {texts.name(window.output)}, "
            f"mask=(cx < widths) & ({y} < heights))"
        )
    return lines
