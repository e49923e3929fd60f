"""An argmax as Triton: a tile keeps the best of each lane, then lanes are compared."""

from kernelsmith.propose.rules.graph import Kind
from kernelsmith.propose.rules.kinds.around import DTYPES
from kernelsmith.propose.rules.kinds.candidate import Parts
from kernelsmith.propose.rules.kinds.pick.graph import Pick
from kernelsmith.propose.rules.kinds.texts import Texts, triton_functions
from kernelsmith.propose.rules.space import Parameters


def render_triton(pick: Pick, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    last = pick.around.last
    evict = ', eviction_policy="evict_first"' if chosen["evict"] == "first" else ""
    inputs, numbers = pick.of(Kind.INPUT), pick.of(Kind.NUMBER)
    given = {n: f"v{n}" for n in inputs} | {n: f"s{n}" for n in numbers}
    texts = Texts(pick.nodes, given, cpp=False)
    inside = texts.lines([pick.output])
    value = texts.name(pick.output) if pick.largest else f"-{texts.name(pick.output)}"
    if last:
        head = [
            "row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]",
            "there = row < outer",
        ]
        at, place, across = "tl.arange(0, BLOCK)[None, :]", "row * length + at", 1
        shape, stride, to = "[ROWS, BLOCK]", "BLOCK", "row"
    else:
        head = [
            "number = tl.program_id(0).to(tl.int64)",
            "column = number % strips * BLOCK + tl.arange(0, BLOCK)[None, :]",
            "there = column < inner",
            "first = number // strips * length * inner",
        ]
        at, place, across = "tl.arange(0, ROWS)[:, None]", "first + at * inner + column", 0
        shape, stride, to = "[ROWS, BLOCK]", "ROWS", "number // strips * inner + column"
    arguments = [*inputs.values(), "out", "outer", "length", "inner", "strips"]
    arguments += [f"s{n}" for n in numbers] + ["ROWS: tl.constexpr", "BLOCK: tl.constexpr"]
    lines = [
        "@triton.jit",
        f"def pick({', '.join(arguments)}):",
        *[f"    {line}" for line in [
            *head,
            f'best = tl.full({shape}, float("-inf"), tl.float32)',
            f"place = tl.full({shape}, 2147483647, tl.int32)",
            f"for start in range(0, length, {stride}):",
            f"    at = (start + {at}).to(tl.int64)",
            "    inside = there & (at < length)",
            *[f"    v{n} = tl.load({text} + {place}, mask=inside, other=0.0{evict})"
              ".to(tl.float32)" for n, text in inputs.items()],
            *[f"    {line}" for line in inside],
            f"    value = {value}",
            "    # NaN is best of all; the first of equal ones stays, even where that is -inf.",
            "    more = (value > best) | ((value != value) & (best == best)) | "
            "(place == 2147483647)",
            "    more = more & inside",
            "    best = tl.where(more, value, best)",
            "    place = tl.where(more, at.to(tl.int32), place)",
            "# Integers in the order of the floats, to compare lanes by.",
            "bits = tl.where(best != best, 0x7fc00000, (best + 0.0).to(tl.int32, bitcast=True))",
            "key = bits ^ ((bits >> 31) & 0x7fffffff)",
            "key = tl.where(place == 2147483647, -2147483648, key)",
            f"most = tl.max(key, axis={across}, keep_dims=True)",
            f"where = tl.min(tl.where(key == most, place, 2147483647), axis={across}, "
            "keep_dims=True)",
            f"tl.store(out + {to}, where.to(tl.int64), mask=there)",
        ]],
    ]  # fmt: skip
    passed = ", ".join([*inputs.values(), "out", "outer", "length", "inner", "strips",
                        *numbers.values()])  # fmt: skip
    if last:
        launch = [
            f"block = min({chosen['block']}, triton.next_power_of_2(length))",
            f"strips, grid = 1, (triton.cdiv(outer, {chosen['rows']}),)",
            f"pick[grid]({passed}, ROWS={chosen['rows']}, BLOCK=block, "
            f"num_warps={chosen['warps']})",
        ]
    else:
        launch = [
            f"strips = triton.cdiv(inner, {chosen['block']})",
            f"pick[(outer * strips,)]({passed}, ROWS={chosen['steps']}, BLOCK={chosen['block']}, "
            f"num_warps={chosen['warps']})",
        ]
    fits = (*pick.around.fits(DTYPES), f"{pick.around.like}.shape[axis] < 2**31 - 1")
    return Parts(
        kernel=triton_functions(pick.nodes) + "\n".join(lines), fits=fits,
        setup=pick.around.setup(), launch=(*pick.prepared(), *launch, "return out"),
    )  # fmt: skip
