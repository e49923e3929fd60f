"""Texts of kernels that split float32 once, multiply the planes on tensor cores, and repair.

A float32 number is written as a sum of numbers that tensor cores take, exactly or nearly so:

* ``bf16x6``: three bfloat16 planes hold all 24 bits. Six of the nine products of planes are
  formed; the three below 2^-24 of the result are left out.
* ``fp16x3``: two float16 planes hold 22 bits and a sign, after each row was multiplied, step of k
  by step of k, by a power of two that brings its largest element to [2^14, 2^15). Three products;
  the fourth, below 2^-22, is left out. An element is off by 2^-23 of itself at most while it is
  larger than 2^-17 of the largest of its row within that step, and by 2^-40 of that largest at
  most if it is smaller.

Tensor cores truncate their sums, so every step of k has a sum of its own, smallest terms first;
the steps are added in float32 with rounding. Infinities, NaN, and rows whose largest element lies
outside [2^-48, 2^64] (``bf16x6``: below 2^-100) do not get through planes: their blocks are marked,
and tiles of C that depend on a marked block are computed again in plain float32 by the last kernel.
"""

from kernelsmith.propose.rules.products.epilogue import Bias, Epilogue
from kernelsmith.propose.rules.products.finish import finish_lines, given
from kernelsmith.propose.rules.products.product import (
    Product,
    Schedule,
    ceil_div,
    place,
    power_above,
)
from kernelsmith.propose.rules.products.tiles import LIMIT, Ending, working_lines

ROWS = 64
"""Rows that one program splits; also the side of a repaired tile."""
_SPLITS = {
    "fp16x3": "Rows of x as (high + low) / 2^e; what does not fit is marked for the last kernel.",
    "bf16x6": "x = high + middle + low; what does not fit is marked for the last kernel.",
}


class Layout:
    """Sizes of what lies between the kernels."""

    def __init__(self, product: Product, schedule: Schedule) -> None:
        p, s = product, schedule
        self.steps = ceil_div(p.k, s.bk)
        self.width = self.steps * s.bk
        self.rows_a = ceil_div(p.m, s.bm) * s.bm
        self.rows_b = ceil_div(p.n, s.bn) * s.bn
        self.batch_a = 1 if p.a[0] == 0 else p.batch
        self.batch_b = 1 if p.b[0] == 0 else p.batch
        self.blocks_a, self.blocks_b = ceil_div(p.m, ROWS), ceil_div(p.n, ROWS)
        self.programs_a = self.batch_a * self.blocks_a * self.steps
        self.programs_b = self.batch_b * self.blocks_b * self.steps


def _indented(lines: list[str], by: int) -> list[str]:
    return [f"{' ' * by}{each}" for each in lines]


def split_text(name: str, product: Product, schedule: Schedule, sides: str = "ab") -> str:
    """The kernel that writes planes (and scales) of operands, and marks bad blocks."""
    p, s, layout = product, schedule, Layout(product, schedule)
    parts = ("", "p", "s", "f") if s.precision == "fp16x3" else ("", "p", "f")
    given = [f"{part}{side}_ptr" for part in parts for side in sides]
    lines = [
        "@triton.jit",
        f"def {name}({', '.join(given)}):",
        f'    """{_SPLITS[s.precision]}"""',
        "    block = tl.program_id(0)",
    ]
    of_a = _split("a", p.m, layout.rows_a, (p.a[0], p.a[1], p.a[2]), p, s)
    of_b = _split("b", p.n, layout.rows_b, (p.b[0], p.b[2], p.b[1]), p, s)
    if len(sides) == 1:
        return "\n".join(lines + _indented(of_a if sides == "a" else of_b, 4))
    lines += [
        f"    if block < {layout.programs_a}:",
        *_indented(of_a, 8),
        "    else:",
        f"        block = block - {layout.programs_a}",
        *_indented(of_b, 8),
    ]
    return "\n".join(lines)


def _split(
    side: str, rows: int, padded: int, strides: tuple[int, int, int], p: Product, s: Schedule
) -> list[str]:
    """Lines that split one block of an operand, seen as rows along k."""
    steps = ceil_div(p.k, s.bk)
    width, blocks, plane = steps * s.bk, ceil_div(rows, ROWS), padded * steps * s.bk
    bounds = [*([] if rows % ROWS == 0 else [f"(row < {rows})[:, None]"]),
              *([] if p.k % s.bk == 0 else [f"(k < {p.k})[None, :]"])]  # fmt: skip
    mask = f", mask={' & '.join(bounds)}, other=0.0" if bounds else ""
    at = place(("batch", strides[0]), ("row[:, None]", strides[1]),
               ("k.to(tl.int64)[None, :]", strides[2]))  # fmt: skip
    scaled = s.precision == "fp16x3"
    lowest, highest = (79, 191) if scaled else (27, 254)
    lines = [
        f"step = block % {steps}",
        f"batch = (block // {steps * blocks}).to(tl.int64)",
        f"row = (block // {steps} % {blocks} * {ROWS} + tl.arange(0, {ROWS})).to(tl.int64)",
        f"k = step * {s.bk} + tl.arange(0, {s.bk})",
        f"at = {side}_ptr + {at}",
        f"x = tl.load(at{mask})",
        "top = tl.max(x.to(tl.int32, bitcast=True) & 0x7FFFFFFF, axis=1)",
        "exponent = top >> 23",
        f"bad = (exponent > {highest}) | ((exponent < {lowest}) & (top > 0))",
        f"tl.store(f{side}_ptr + block, tl.max(bad.to(tl.int32), axis=0).to(tl.int8))",
        f"at = p{side}_ptr + (batch * {s.planes_each * padded} + row[:, None]) * {width} "
        "+ k[None, :]",
    ]
    if scaled:
        return [
            *lines,
            "up = tl.minimum(tl.maximum(268 - exponent, 77), 189)",
            "x = x * (up << 23).to(tl.float32, bitcast=True)[:, None]",
            "high = x.to(tl.float16)",
            "low = (x - high.to(tl.float32)).to(tl.float16)",
            "tl.store(at, high)",
            f"tl.store(at + {plane}, low)",
            "down = ((254 - up) << 23).to(tl.float32, bitcast=True)",
            f"tl.store(s{side}_ptr + (batch * {steps} + step) * {padded} + row, down)",
        ]
    return [
        *lines,
        "high = tl.clamp(x, -3.3895313892515355e38, 3.3895313892515355e38).to(tl.bfloat16)",
        "rest = x - high.to(tl.float32)",
        "middle = rest.to(tl.bfloat16)",
        "low = (rest - middle.to(tl.float32)).to(tl.bfloat16)",
        "tl.store(at, high)",
        f"tl.store(at + {plane}, middle)",
        f"tl.store(at + {2 * plane}, low)",
    ]


def planes_text(
    name: str, product: Product, schedule: Schedule, bias: Bias | None, epilogue: Epilogue | None
) -> str:
    """The kernel that multiplies planes."""
    p, s, layout = product, schedule, Layout(product, schedule)
    rest = Ending(p, s, bias, epilogue)
    scales = "sa_ptr, sb_ptr, " if s.precision == "fp16x3" else ""
    tiles = ceil_div(p.m, s.bm) * ceil_div(p.n, s.bn)
    head = [
        "@triton.jit",
        f"def {name}(pa_ptr, pb_ptr, {scales}{', '.join(rest.pointers)}):",
        '    """Small terms first; each step has its own sum, as tensor cores truncate theirs."""',
        f"    BM: tl.constexpr = {s.bm}",
        f"    BN: tl.constexpr = {s.bn}",
        f"    BK: tl.constexpr = {s.bk}",
        f"    ROWS_A: tl.constexpr = {layout.rows_a}",
        f"    ROWS_B: tl.constexpr = {layout.rows_b}",
        f"    WIDTH: tl.constexpr = {layout.width}",
        f"    STEPS: tl.constexpr = {layout.steps}",
        "    batch = tl.program_id(1)" + (".to(tl.int64)" if p.batch > 1 else ""),
    ]
    if s.descriptors:
        head += _indented(_descriptors(s, layout), 4)
    if s.persistent:
        head.append(f"    for tile in tl.range(tl.program_id(0), {tiles}, tl.num_programs(0)):")
        return "\n".join(head + _indented(_tile(p, s, layout, "tile", rest), 8))
    return "\n".join(head + _indented(_tile(p, s, layout, "tl.program_id(0)", rest), 4))


def _descriptors(s: Schedule, layout: Layout) -> list[str]:
    lines = []
    for side, batch, block in (("a", layout.batch_a, "BM"), ("b", layout.batch_b, "BN")):
        rows = f"ROWS_{side.upper()}"
        moved = f" + batch * {s.planes_each} * {rows} * WIDTH" if batch > 1 else ""
        lines.append(
            f"from_{side} = tl.make_tensor_descriptor(p{side}_ptr{moved}, "
            f"[{s.planes_each} * {rows}, WIDTH], [WIDTH, 1], [{block}, BK])"
        )
    return lines


def _tile(p: Product, s: Schedule, layout: Layout, number: str, rest: Ending) -> list[str]:
    """Lines for one tile of C."""
    lines = [
        *working_lines(p, s, number),
        "m = m0 + tl.arange(0, BM)",
        "n = n0 + tl.arange(0, BN)",
        "total = tl.zeros((BM, BN), tl.float32)",
    ]
    sides = (("a", "m", layout.batch_a, layout.rows_a), ("b", "n", layout.batch_b, layout.rows_b))
    if not s.descriptors:
        lines.append("k = tl.arange(0, BK)")
    for side, axis, batch, count in sides:
        rows = f"ROWS_{side.upper()}"
        if not s.descriptors:
            wide = ".to(tl.int64)" if s.planes_each * count * layout.width >= LIMIT else ""
            moved = f"batch * {s.planes_each} * {rows} + " if batch > 1 else ""
            place = f"({moved}{axis}{wide}[:, None]) * WIDTH + k[None, :]"
            lines.append(f"at_{side} = p{side}_ptr + {place}")
        if s.precision == "fp16x3":
            moved = f"batch * STEPS * {rows} + " if batch > 1 else ""
            lines.append(f"at_s{side} = s{side}_ptr + {moved}{axis}")
    if s.split_k > 1:
        share = ceil_div(layout.steps, s.split_k)
        lines += [
            f"first = tl.program_id(2) * {share}",
            f"last = tl.minimum(first + {share}, STEPS)",
            *([] if p.kept is None else ["last = tl.where(works, last, first)"]),
            "for step in range(first, last):",
        ]
    elif p.kept is not None:
        lines += ["last = tl.where(works, STEPS, 0)", "for step in range(last):"]
    else:
        lines.append("for step in range(STEPS):")
    return [*lines, *_indented(_step(s), 4), *rest.lines]


def _step(s: Schedule) -> list[str]:
    """Lines for one step of k."""
    lines = ["k0 = step * BK"]
    for side, at in (("a", "m0"), ("b", "n0")):
        rows = f"ROWS_{side.upper()}"
        for plane in range(s.planes_each):
            if s.descriptors:
                moved = ("", f"{rows} + ", f"2 * {rows} + ")[plane]
                lines.append(f"{side}{plane} = from_{side}.load([{moved}{at}, k0])")
            else:
                moved = ("", f" + {rows} * WIDTH", f" + 2 * {rows} * WIDTH")[plane]
                lines.append(f"{side}{plane} = tl.load(at_{side}{moved} + k0)")
    if s.precision == "fp16x3":
        return [
            *lines,
            "sa = tl.load(at_sa + step * ROWS_A)",
            "sb = tl.load(at_sb + step * ROWS_B)",
            "part = tl.dot(a1, b0.T)",
            "part = tl.dot(a0, b1.T, part)",
            "part = tl.dot(a0, b0.T, part)",
            "total += part * (sa[:, None] * sb[None, :])",
        ]
    return [
        *lines,
        "part = tl.dot(a2, b0.T)",
        "part = tl.dot(a0, b2.T, part)",
        "part = tl.dot(a1, b1.T, part)",
        "part = tl.dot(a1, b0.T, part)",
        "part = tl.dot(a0, b1.T, part)",
        "part = tl.dot(a0, b0.T, part)",
        "total += part",
    ]


def repair_text(
    name: str, product: Product, schedule: Schedule, bias: Bias | None, epilogue: Epilogue | None
) -> str:
    """The kernel that computes tiles of C again where a block of planes was marked."""
    p, layout = product, Layout(product, schedule)
    even_m, even_n, even_k = p.m % ROWS == 0, p.n % ROWS == 0, p.k % 32 == 0
    marks_a, marks_b = (_marks(side, p, schedule, layout) for side in "ab")
    a_masks = [] if even_m else [f"(m < {p.m})[:, None]"]
    b_masks = [] if even_n else [f"(n < {p.n})[None, :]"]
    if not even_k:
        a_masks.append("there[None, :]")
        b_masks.append("there[:, None]")
    a_mask, b_mask = (
        f", mask={' & '.join(each)}, other=0.0" if each else "" for each in (a_masks, b_masks)
    )
    at_a = place(("batch", p.a[0]), ("m[:, None]", p.a[1]), ("k[None, :]", p.a[2]))
    at_b = place(("batch", p.b[0]), ("k[:, None]", p.b[1]), ("n[None, :]", p.b[2]))
    again = [
        f"m = tile_m.to(tl.int64) * {ROWS} + tl.arange(0, {ROWS})",
        f"n = tile_n.to(tl.int64) * {ROWS} + tl.arange(0, {ROWS})",
        "k = tl.arange(0, 32).to(tl.int64)",
        f"at_a = a_ptr + {at_a}",
        f"at_b = b_ptr + {at_b}",
        f"total = tl.zeros(({ROWS}, {ROWS}), tl.float32)",
        f"for k0 in range(0, {p.k}, 32):",
        *([] if even_k else [f"    there = k0 + k < {p.k}"]),
        f"    a = tl.load(at_a{a_mask})",
        f"    b = tl.load(at_b{b_mask})",
        '    total += tl.dot(a, b, input_precision="ieee")',
        f"    at_a += {32 * p.a[2]}",
        f"    at_b += {32 * p.b[1]}",
        *finish_lines(p, bias, epilogue, even_m=even_m, even_n=even_n),
    ]
    lines = [
        "@triton.jit",
        f"def {name}(a_ptr, b_ptr, fa_ptr, fb_ptr, {', '.join(given(bias, epilogue))}):",
        '    """Tiles that planes cannot give, in plain float32."""',
        "    batch = tl.program_id(1).to(tl.int64)",
        f"    tile_m = tl.program_id(0) // {layout.blocks_b}",
        f"    tile_n = tl.program_id(0) % {layout.blocks_b}",
        *_indented([*marks_a, *marks_b], 4),
        "    if (bad_a | bad_b) != 0:",
        *_indented(again, 8),
    ]
    return "\n".join(lines)


def _marks(side: str, p: Product, s: Schedule, layout: Layout) -> list[str]:
    """Lines that find whether any block of rows of one operand is marked."""
    batch, blocks = (
        (layout.batch_a, layout.blocks_a) if side == "a" else (layout.batch_b, layout.blocks_b)
    )
    count, block = layout.steps, f"tile_{'m' if side == 'a' else 'n'}"
    if side == split_in_tile(p, s):
        # Marked by the product itself, once per tile and share of k.
        rows = s.bm if side == "a" else s.bn
        count, batch = s.split_k, p.batch
        blocks, block = ceil_div(p.m if side == "a" else p.n, rows), f"{block} // {rows // ROWS}"
    moved = f"batch * {blocks} + " if batch > 1 else ""
    return [
        f"share = tl.arange(0, {power_above(count)})",
        f"at = f{side}_ptr + ({moved}{block}) * {count} + share",
        f"marks_{side} = tl.load(at, mask=share < {count}, other=0)",
        f"bad_{side} = tl.max(marks_{side}.to(tl.int32), axis=0)",
    ]


def split_in_tile(product: Product, schedule: Schedule) -> str:
    """The operand that has no planes: the larger one where only one is split before."""
    if schedule.planes != "one":
        return ""
    return "a" if product.m >= product.n else "b"
