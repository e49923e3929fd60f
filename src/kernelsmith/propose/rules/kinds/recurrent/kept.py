"""Recurrent layers whose programs keep their weights for all steps.

A step is short: what a program waits for is memory, again and again. Here all weights of a
program's units are one factor of one product, its gates side by side, which Triton leaves in shared
memory from the first step to the last; only states are read anew. float32 goes through tensor cores
as pairs of float16, which take no more room: each column of the weights is scaled by a power of two
once, states in every step, row by row. An element keeps 22 bits and a sign, down to 2^-27
of the largest in its column or row. Infinite states are as in plain float32; a weight that is
infinite makes what it touches NaN.
"""

ROOM = 160 << 10
"""Bytes of weights that a program keeps."""
SHARED = 227 << 10
"""Bytes of shared memory that a program may have on Hopper, for weights and states together."""

PARTS = '''\
@triton.jit
def to_hold(most):
    """The power of two that brings a largest value to [2^13, 2^14); one where it is infinite."""
    exponent = (most.to(tl.int32, bitcast=True) >> 23) & 0xFF
    scale = (tl.minimum(267 - exponent, 254) << 23).to(tl.float32, bitcast=True)
    return tl.where(exponent < 255, scale, 1.0)


@triton.jit
def parts(w, SPLIT: tl.constexpr):
    """Weights as they are multiplied: each column scaled, what is left of it, the way back."""
    rest, back = w, tl.zeros([w.shape[1]], tl.float32)
    if SPLIT:
        scale = to_hold(tl.max(tl.abs(w), axis=0))
        scaled = w * scale[None, :]
        w = scaled.to(tl.float16)
        rest, back = (scaled - w.to(tl.float32)).to(tl.float16), 1.0 / scale
    return w, rest, back


@triton.jit
def product(h, w, rest, back, SPLIT: tl.constexpr):
    """States times weights; float32 as pairs of float16, the smallest products added first."""
    if SPLIT:
        held = to_hold(tl.max(tl.abs(h), axis=1))
        h *= held[:, None]
        high = h.to(tl.float16)
        finite = tl.abs(h) < float("inf")
        low = tl.where(finite, h - high.to(tl.float32), 0.0).to(tl.float16)
        # Side by side: one chain of all three would be three times as long.
        small = tl.dot(tl.where(finite, high, 0.0).to(tl.float16), rest) + tl.dot(low, w)
        found = (tl.dot(high, w) + small) * back[None, :] / held[:, None]
    else:
        found = tl.dot(h, w)
    return found


'''

AHEAD = '''\
@triton.jit
def read_ahead(ahead, place, known, row, line, times, batch, width, step, LAYERS: tl.constexpr):
    """What inputs give the gates in a step; nothing where a layer below gives it, or at the end."""
    there = step < times
    if LAYERS:
        there = there & (line == 0)
        where = step
    else:
        where = tl.where(line == 1, times - 1 - step, step)
    start = ahead + (where * batch + row[:, None]) * width
    return tl.load(start + place[None, :], mask=known & there, other=0.0).to(tl.float32)


'''

BY_GATE = '''\
@triton.jit
def by_gate(x, BB: tl.constexpr, UB: tl.constexpr):
    """The gates of each unit, which lie side by side."""
    even, odd = tl.split(tl.reshape(x, [BB, UB, 2, 2]))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


'''

_KERNEL = '''\
@triton.jit
def keeping(
    ahead, inward, near, across, far, held, cell, counter, times, batch, size, plane,
    begin, end, BB: tl.constexpr, UB: tl.constexpr, BK: tl.constexpr,
    LAYERS: tl.constexpr, SPLIT: tl.constexpr, GRID: tl.constexpr, RELU: tl.constexpr,
):
    """Some units of one layer (or direction) for steps ``begin`` to ``end``."""
    unit = tl.program_id(0) * UB + tl.arange(0, UB)
    row = tl.program_id(1) * BB + tl.arange(0, BB)
    line = tl.program_id(2)
    there = (row < batch)[:, None] & (unit < size)[None, :]
    at = row[:, None] * size + unit[None, :]
    k = tl.arange(0, BK)
    column = tl.arange(0, {slots} * UB)
    owner, gate = tl.program_id(0) * UB + column // {slots}, column % {slots}
    filled = (owner < size) & (gate < {many})
    place = gate * size + owner
    inside = (k < size)[:, None] & filled[None, :]
    spot = place[None, :] * size + k[:, None]
    known = (row < batch)[:, None] & filled[None, :]
    states = row[:, None] * size + k[None, :]
    seen = (row < batch)[:, None] & (k < size)[None, :]
    across += line * ({many} * size * size)
    held += line * ((times + 1) * plane)
    w, w_rest, w_back = parts(tl.load(across + spot, mask=inside, other=0.0), SPLIT)
    fixed = tl.load(far + line * {many} * size + place, mask=filled, other=0.0).to(tl.float32)
    given = tl.zeros([{slots} * UB], tl.float32)
{cell}    if LAYERS:
        inward += tl.maximum(line - 1, 0) * ({many} * size * size)
        v, v_rest, v_back = parts(tl.load(inward + spot, mask=inside, other=0.0), SPLIT)
        given += tl.load(
            near + line * {many} * size + place, mask=filled & (line > 0), other=0.0
        ).to(tl.float32)
    else:
        ahead += line * (times * batch * {many} * size)
{before}    coming = read_ahead(
        ahead, place, known, row, line, times, batch, {many} * size, begin, LAYERS
    )
    for step in range(begin, end):
        time = step - line if LAYERS else step
        if (time >= 0) & (time < times):
            old = held + time * plane
            h = tl.load(old + states, mask=seen, other=0.0, cache_modifier=".cg")
            a = product(h, w, w_rest, w_back, SPLIT) + fixed[None, :]
            if LAYERS:
                if line > 0:
                    # What the layer below has just given.
                    b = tl.load(
                        old - times * plane + states, mask=seen, other=0.0, cache_modifier=".cg"
                    )
                    i = product(b, v, v_rest, v_back, SPLIT)
                else:
                    i = coming
                i += given[None, :]
            else:
                i = coming
{body}            tl.store(old + plane + at, new, mask=there)
        if GRID:
            # What does not depend on others is on its way while they are waited for.
            coming = read_ahead(
                ahead, place, known, row, line, times, batch, {many} * size, step + 1, LAYERS
            )
            wait(
                counter,
                (step - begin + 1) * tl.num_programs(0) * tl.num_programs(1) * tl.num_programs(2),
            )
{end}

'''

_CELLS = {
    "LSTM": (
        "g0, g1, g2, g3 = by_gate(a + i, BB, UB)",
        "c = sigmoid(g1) * c + sigmoid(g0) * tanh(g2)",
        "new = sigmoid(g3) * tanh(c)",
    ),
    "GRU": (
        "a0, a1, a2, _a = by_gate(a, BB, UB)",
        "i0, i1, i2, _i = by_gate(i, BB, UB)",
        "keep = sigmoid(a1 + i1)",
        "value = tanh(i2 + sigmoid(a0 + i0) * a2)",
        "new = (1.0 - keep) * value + keep * before",
        "before = new.to(held.dtype.element_ty).to(tl.float32)  # as it is stored",
    ),
    "RNN": (
        "new = a + i",
        "if RELU:",
        "    new = tl.maximum(new, 0.0, tl.PropagateNan.ALL)",
        "else:",
        "    new = tanh(new)",
    ),
}
_SLOTS = {"LSTM": 4, "GRU": 4, "RNN": 1}
"""Columns of a unit: a power of two of them, so that gates can be told apart by halving."""


_BEFORE = """\
    since = begin
    if LAYERS:
        since = tl.minimum(tl.maximum(begin - line, 0), times)
    before = tl.load(held + since * plane + at, mask=there, other=0.0).to(tl.float32)
"""


def render(mode: str, many: int) -> str:
    """The kernel of one mode, of ``many`` gates, and the functions around it."""
    cell = end = ""
    if mode == "LSTM":
        place = "cell + line * batch * size + at"
        cell = f"    c = tl.load({place}, mask=there, other=0.0).to(tl.float32)\n"
        end = f"    tl.store({place}, c, mask=there)\n"
    body = "".join(f"            {line}\n" for line in _CELLS[mode])
    text = _KERNEL.format(
        many=many, slots=_SLOTS[mode], cell=cell, body=body, end=end,
        before=_BEFORE if mode == "GRU" else "",
    )  # fmt: skip
    gates = BY_GATE if _SLOTS[mode] > 1 else ""
    return PARTS + AHEAD + gates + text.rstrip("\n") + "\n\n\n"


def fits(mode: str) -> list[str]:
    """The lines of a launch that ask whether what a program keeps has room, as ``fits``.

    States are multiplied out of shared memory, too: float32 as three factors of float16. By what
    Triton compiles for Hopper that is all a program takes, but for 64 units by 64 rows, where
    telling gates apart takes 64 KiB instead: what ``ROOM`` leaves.
    """
    return [
        f"weights = {_SLOTS[mode]} * UB * KEPT * held.element_size() * (2 if layers else 1)",
        "states = (6 if held.dtype is torch.float32 else 2) * BB * KEPT",
        f"fits = weights <= {ROOM} and weights + states <= {SHARED}",
    ]
