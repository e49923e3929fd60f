"""A dimension that several programs share: each reduces a part, and a second kernel joins them.

Where there are few columns, or few more strips of them than fit on a device at once, most of it
would stand still: while the last programs go along all of the dimension, or from the beginning.
"""

from collections.abc import Mapping

from kernelsmith.propose.rules.graph import Kind, Shape
from kernelsmith.propose.rules.kinds.columns.graph import Columns
from kernelsmith.propose.rules.plan import Sweep, plan
from kernelsmith.propose.rules.space import Parameters

MOST = 64
"""Parts of one column."""
_LEAST = 8
"""Steps of a part."""
KEPT = ("kept", "size", "share")
BOUNDS = (
    "begin = tl.program_id(1) * share",
    "end = begin + tl.minimum(share, length - begin)",
)
_PLACE = "(tl.num_programs(0) // strips) + number // strips) * inner + column"


def splits(columns: Columns) -> bool:
    """Whether one walk along the dimension is all, and what is left is one value per column."""
    (*others, last) = plan(columns.graph, keep=False, online=False).sweeps
    return not others and not last.writes and columns.graph.result.shape is not Shape.FULL


def stores(sweep: Sweep) -> list[str]:
    """What a part has found, to its place."""
    at = f"at = (tl.program_id(1).to(tl.int64) * {_PLACE}"
    return [at] + [
        f"tl.store(kept + {place} * size + at, r{n}, mask=column < inner)"
        for place, n in enumerate(sweep.reduces)
    ]


def loads(sweep: Sweep, start: Mapping[int, str]) -> list[str]:
    """What all parts of a column have found."""
    return [
        "part = tl.arange(0, PARTS)[:, None]",
        "inside = (part < parts) & (column < inner)",
        f"at = (part.to(tl.int64) * {_PLACE}",
        *(
            f"a{n} = tl.load(kept + {place} * size + at, mask=inside, other={start[n]})"
            for place, n in enumerate(sweep.reduces)
        ),
    ]


def launch(columns: Columns, chosen: Parameters, run: str) -> list[str]:
    """Lines of ``forward``: in parts where that makes for enough programs, else as ``run``."""
    (sweep,) = plan(columns.graph, keep=False, online=False).sweeps
    numbers = [*columns.of(Kind.NUMBER).values()]
    rest = ["length", "inner", "strips", *numbers]
    parted = ", ".join([*columns.names().values(), "kept", "size", "share", *rest])
    joined = [*(f"p{n}" for n in columns.scalars()), "kept", "size", "parts", "out", *rest]
    tail = f"BLOCK={chosen['block']}, num_warps={chosen['warps']}"
    return [
        f"parts = min({MOST}, triton.cdiv({chosen['split']}, grid[0]), "
        f"length // {_LEAST * int(chosen['steps'])})",
        "if parts > 1:",
        f"    share = triton.cdiv(triton.cdiv(length, parts), {chosen['steps']})"
        f" * {chosen['steps']}",
        "    parts = triton.cdiv(length, share)",
        "    size = parts * outer * inner",
        f"    kept = out.new_empty({len(sweep.reduces)} * size, dtype=torch.float32)",
        f"    parted[(grid[0], parts)]({parted}, STEPS={chosen['steps']}, {tail})",
        f"    joined[grid]({', '.join(joined)}, PARTS=triton.next_power_of_2(parts), {tail})",
        "else:",
        f"    {run}",
    ]
