"""Recurrent layers as Triton: a program owns some units of a layer, and all wait for each other.

Two ways to wait. ``grid``: one launch for the sequence. Programs are at most as many as the device
has multiprocessors and are launched together (a cooperative launch), so that all run at once and
none waits for one that has not begun. The waiting is counted, and whoever gives up opens the way
for all, so that a device that broke that promise would hang for some seconds at most. ``step``: one
launch per step.
"""

from kernelsmith.propose.rules.graph import Kind, Node, Shape
from kernelsmith.propose.rules.kinds.around import DTYPES
from kernelsmith.propose.rules.kinds.recurrent import helpers, kept
from kernelsmith.propose.rules.kinds.texts import triton_functions
from kernelsmith.propose.rules.space import Parameters

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
KEPT = "fp16x3"
"""The precision in which programs keep their weights."""

WAIT = '''\
@triton.jit
def wait(counter, goal):
    """Until all programs have come here; for at most a second or so."""
    tl.debug_barrier()
    seen = tl.atomic_add(counter, 1, sem="acq_rel") + 1
    tries = 0
    while (seen < goal) & (tries < 4000000):
        seen = tl.load(counter, volatile=True)  # adding nothing would hold up who still comes
        tries += 1
    if seen < goal:
        tl.atomic_max(counter, 1 << 30, sem="relaxed")
    # What others wrote is read past this one's own cache: there is nothing here to acquire.
    tl.debug_barrier()


@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


'''


def render_kernels(mode: str, chosen: Parameters) -> str:
    """The kernel of one mode and the functions around it."""
    tanh = triton_functions((Node(kind=Kind.UNARY, op="tanh", shape=Shape.FULL),))
    keeps = kept.render(mode, _GATES[mode]) if chosen["precision"] == KEPT else ""
    text = tanh + WAIT + keeps + _kernel(mode) + _launch(mode, chosen)
    layers = helpers.LAYERS % "nonlinear"
    inner = "".join(f"    {line}\n" for line in layers.splitlines())
    text += helpers.HEAD % DTYPES + helpers.WAVE + inner + helpers.TAIL
    return text + helpers.WRITTEN % DTYPES


def _kernel(mode: str) -> str:
    many = _GATES[mode]
    lines = [
        "@triton.jit",
        "def cells(",
        "    ahead, inward, near, across, far, held, cell, counter, times, batch, size, plane,",
        "    begin, end, BB: tl.constexpr, UB: tl.constexpr, BK: tl.constexpr,",
        "    LAYERS: tl.constexpr, EXACT: tl.constexpr, GRID: tl.constexpr, RELU: tl.constexpr,",
        "):",
        '    """Some units of one layer (or direction) for steps ``begin`` to ``end``."""',
        "    unit = tl.program_id(0) * UB + tl.arange(0, UB)",
        "    row = tl.program_id(1) * BB + tl.arange(0, BB)",
        "    line = tl.program_id(2)",
        "    there = (row < batch)[:, None] & (unit < size)[None, :]",
        "    at = row[:, None] * size + unit[None, :]",
        "    from_k = tl.arange(0, BK)",
        f"    across += line * ({many} * size * size)",
        f"    far += line * {many} * size",
        "    held += line * ((times + 1) * plane)",
    ]
    for g in range(many):
        lines.append(f"    far_{g} = tl.load(far + {_gate(g)}unit, mask=unit < size, other=0.0)")
    if mode == "LSTM":
        lines.append(
            "    c = tl.load(cell + line * batch * size + at, mask=there, other=0.0).to(tl.float32)"
        )
    lines += [
        "    if LAYERS:",
        f"        inward += tl.maximum(line - 1, 0) * ({many} * size * size)",
    ]
    for g in range(many):
        lines += [f"        near_{g} = tl.load(near + (line * {many} + {g}) * size + unit, "
                  "mask=unit < size, other=0.0)"]  # fmt: skip
    lines += [
        "    else:",
        f"        ahead += line * (times * batch * {many} * size)",
        "    for step in range(begin, end):",
        "        time = step - line if LAYERS else step",
        "        if (time >= 0) & (time < times):",
        *[f"            {each}" for each in _step(mode, many)],
        "        if GRID:",
        "            wait(counter, (step - begin + 1) * tl.num_programs(0) * tl.num_programs(1) "
        "* tl.num_programs(2))",
    ]
    if mode == "LSTM":
        lines.append("    tl.store(cell + line * batch * size + at, c, mask=there)")
    return "\n".join(lines) + "\n\n\n"


def _gate(g: int) -> str:
    return f"{g} * size + " if g > 1 else "size + " if g else ""


def _step(mode: str, many: int) -> list[str]:
    """One step of the units of a program."""
    below = [
        "below = old - times * plane  # what the layer below has just given",
        *[f"i{g} = tl.zeros([BB, UB], tl.float32) + near_{g}[None, :]" for g in range(many)],
        *_products("below", "inward", "i", many),
    ]
    given = [
        f"start = ahead + (where * batch + row[:, None]) * ({many} * size) + unit[None, :]",
        *[
            f"i{g} = tl.load(start + {g} * size, mask=there, other=0.0).to(tl.float32)"
            for g in range(many)
        ],
    ]
    return [
        "old = held + time * plane",
        *[f"a{g} = tl.zeros([BB, UB], tl.float32)" for g in range(many)],
        *_products("old", "across", "a", many),
        "if LAYERS:",
        "    if line > 0:",
        *[f"        {line}" for line in below],
        "    else:",
        *[f"        {line}".replace("where", "time") for line in given],
        "else:",
        "    where = tl.where(line == 1, times - 1 - time, time)",
        *[f"    {line}" for line in given],
        *_cell(mode),
        "tl.store(old + plane + at, new, mask=there)",
    ]


def _products(state: str, weights: str, into: str, many: int) -> list[str]:
    """Sums over a state that other programs wrote: not from this one's own cache."""
    lines = [
        "for k0 in range(0, size, BK):",
        "    k = k0 + from_k",
        f"    h = tl.load({state} + row[:, None] * size + k[None, :], "
        "mask=(row < batch)[:, None] & (k < size)[None, :], other=0.0, "
        'cache_modifier=".cg")',
        "    inside = (k < size)[:, None] & (unit < size)[None, :]",
    ]
    for g in range(many):
        lines += [
            f"    w = tl.load({weights} + ({_gate(g)}unit)[None, :] * size + k[:, None], "
            "mask=inside, other=0.0)",
            f"    {into}{g} = tl.dot(h, w, {into}{g}, input_precision=EXACT)",
        ]
    return lines


def _cell(mode: str) -> list[str]:
    if mode == "LSTM":
        return [
            *[f"g{g} = a{g} + i{g} + far_{g}[None, :]" for g in range(4)],
            "c = sigmoid(g1) * c + sigmoid(g0) * tanh(g2)",
            "new = sigmoid(g3) * tanh(c)",
        ]
    if mode == "GRU":
        return [
            "reset = sigmoid(a0 + i0 + far_0[None, :])",
            "keep = sigmoid(a1 + i1 + far_1[None, :])",
            "value = tanh(i2 + reset * (a2 + far_2[None, :]))",
            "before = tl.load(old + at, mask=there, other=0.0, "
            'cache_modifier=".cg").to(tl.float32)',
            "new = (1.0 - keep) * value + keep * before",
        ]
    return [
        "new = a0 + i0 + far_0[None, :]",
        "if RELU:",
        "    new = tl.maximum(new, 0.0, tl.PropagateNan.ALL)",
        "else:",
        "    new = tanh(new)",
    ]


_FITTED = (
    "    most = processors(held.device) if held.is_cuda else 1 << 30",
    "    while max(BB, UB) < 64 and triton.cdiv(size, UB) * triton.cdiv(batch, BB) * lines > most:",
    "        # Larger shares, so that all programs run at once.",
    "        BB, UB = (BB * 2, UB) if BB < batch else (BB, UB * 2)",
)


def _launch(mode: str, chosen: Parameters) -> str:
    precision = "tf32x3" if chosen["precision"] == KEPT else chosen["precision"]
    exact = f'"{precision}" if held.dtype is torch.float32 else "ieee"'
    lines = [
        "def steps(mode, nonlinear, ahead, across, far, first, cell, inward=None, near=None):",
        '    """States of all layers (or directions) after each step, and the last cells."""',
        "    lines, batch, size = first.shape",
        "    times = ahead.shape[1]",
        "    # What a step writes shares no cache line with what was read before it.",
        "    plane = triton.cdiv(batch * size, 64) * 64",
        "    held = first.new_empty((lines, times + 1, plane))[..., : batch * size]",
        "    held = held.unflatten(-1, (batch, size))",
        "    held[:, 0] = first",
        "    cell = cell.clone(memory_format=torch.contiguous_format)",
        '    cell = cell.float() if mode == "LSTM" else cell',
        "    counter = torch.zeros(1, dtype=torch.int32, device=held.device)",
        f"    BB = min({chosen['rows']}, max(16, triton.next_power_of_2(batch)))",
        f"    UB = {chosen['units']}",
        f"    BK = min({chosen['block']}, max(16, triton.next_power_of_2(size)))",
        *(_FITTED if chosen["launch"] == "grid" else ()),
        "    grid = (triton.cdiv(size, UB), triton.cdiv(batch, BB), lines)",
        "    layers = inward is not None",
        "    last = times + lines - 1 if layers else times",
        "    given = (ahead, inward if layers else across, near if layers else far, across, far,",
        "             held, cell, counter, times, batch, size, plane)",
        '    fixed = dict(BB=BB, UB=UB, BK=BK, LAYERS=layers, RELU=nonlinear == "relu",',
        f"                 num_warps={chosen['warps']})",
        f"    run, precise = cells, dict(EXACT={exact})",
    ]
    if chosen["precision"] == KEPT:
        lines += [
            "    KEPT = max(16, triton.next_power_of_2(size))",
            *[f"    {line}" for line in kept.fits(mode)],
            "    if fits:",
            "        # All that a program multiplies by stays with it.",
            "        run, precise = keeping, dict(BK=KEPT, SPLIT=held.dtype is torch.float32)",
        ]
    lines.append("    fixed |= precise")
    steps = [
        "for step in range(last):",
        "    run[grid](*given, step, step + 1, GRID=False, **fixed)",
    ]
    if chosen["launch"] == "grid":
        lines += [
            "    if held.is_cuda and grid[0] * grid[1] * grid[2] <= most:",
            "        fixed |= dict(launch_cooperative_grid=True)",
            "        run[grid](*given, 0, last, GRID=True, **fixed)",
            "    else:",
            *[f"        {line}" for line in steps],
        ]
    else:
        lines += [f"    {line}" for line in steps]
    # What is returned has no gaps: others may view it as one.
    lines.append("    return held.contiguous(), cell.to(held.dtype)")
    text = "\n".join(lines) + "\n\n\n"
    if chosen["launch"] == "grid":
        text += (
            "def processors(device):\n"
            '    """Programs that run at once, one to each."""\n'
            "    return torch.cuda.get_device_properties(device).multi_processor_count\n\n\n"
        )
    return text
