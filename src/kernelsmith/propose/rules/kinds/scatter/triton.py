"""A scatter as Triton: terms are added to float32 sums by atomics, then the rest is computed."""

from kernelsmith.propose.rules.kinds.around import DTYPES
from kernelsmith.propose.rules.kinds.candidate import Parts
from kernelsmith.propose.rules.kinds.scatter.graph import Scatter
from kernelsmith.propose.rules.kinds.spread.triton import TILE, Offsets, computed, finished
from kernelsmith.propose.rules.kinds.texts import triton_functions
from kernelsmith.propose.rules.space import Parameters


def render_triton(scatter: Scatter, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    grid, inner, numbers = scatter.grid, scatter.inner, scatter.numbers()
    offsets = Offsets(grid, lanes=inner, rows=range(inner))
    offsets.names = scatter.names
    lines = [
        "row = tl.program_id(0).to(tl.int64) // strips * ROWS + tl.arange(0, ROWS)[:, None]",
        "there = row < rows",
        *offsets.decoded(range(inner), "row"),
        "at = (tl.program_id(0) % strips * BLOCK + tl.arange(0, BLOCK)[None, :]).to(tl.int64)",
        "within = at < inner",
        *computed(offsets, scatter.nodes, scatter.output, numbers, chosen),
    ]
    read, offset, masks = offsets.place(scatter.target)
    masks = [*dict.fromkeys(["there", "within", *masks])]
    lines += [
        *read,
        f"far = {' + '.join(offset)} + tl.zeros([ROWS, BLOCK], tl.int64)",
        "term = value + tl.zeros([ROWS, BLOCK], tl.float32)",
        f"tl.atomic_add(held + far, term, mask={' & '.join(masks)}, sem='relaxed')",
    ]
    used = [*scatter.names.values()]
    arguments = [*used, "rows", "inner", "strips", *offsets.integers.values(), *numbers]
    kernel = ["@triton.jit",
              f"def scatter({', '.join(arguments)}, ROWS: tl.constexpr, BLOCK: tl.constexpr):",
              *[f"    {line}" for line in lines]]  # fmt: skip
    lengths = [grid.length(g) for g in range(len(grid.groups))]
    launch = TILE.format(
        rows=" * ".join(lengths[:inner]) or "1", inner=lengths[inner], tile=chosen["tile"]
    ).splitlines()
    passed = [*used, "rows", "inner", "triton.cdiv(inner, block)", *offsets.integers,
              *numbers.values()]  # fmt: skip
    launch += [
        f"scatter[grid]({', '.join(passed)}, ROWS=many, BLOCK=block, num_warps={chosen['warps']})"
    ]
    text, more = finished(scatter.after, chosen, names=scatter.names, numbers=numbers)
    if scatter.plain:
        more = ["if out is held:", "    return out", *more]
    functions = triton_functions((*scatter.nodes, *scatter.after.nodes))
    return Parts(
        kernel=functions + "\n".join(kernel) + "\n\n\n" + text, fits=scatter.fits(DTYPES),
        launch=(*scatter.prepared("zeros"), *launch, *more),
    )  # fmt: skip
