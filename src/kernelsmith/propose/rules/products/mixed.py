"""Text of the kernel that takes planes of the smaller operand and splits the larger one itself.

For products with few rows or columns: the larger operand is read once, as it is, and its planes
are never stored. Each tile of it is the left factor, so that tensor cores take it from registers.
"""

from kernelsmith.propose.rules.products.epilogue import Bias, Epilogue
from kernelsmith.propose.rules.products.planes import Layout, split_in_tile
from kernelsmith.propose.rules.products.product import Product, Schedule, ceil_div, place
from kernelsmith.propose.rules.products.tiles import LIMIT, Ending, place_lines


def mixed_text(
    name: str, product: Product, schedule: Schedule, bias: Bias | None, epilogue: Epilogue | None
) -> str:
    """One program per tile of C (and share of k)."""
    p, s, layout = product, schedule, Layout(product, schedule)
    left = split_in_tile(p, s)
    turned = left == "b"
    rest = Ending(p, s, bias, epilogue, turned=turned)
    if turned:
        right, rows, axis, other = "a", layout.rows_a, "n", "m"
        sizes, strides, batch = ("BN", "BM"), (p.b[0], p.b[2], p.b[1]), layout.batch_a
        count, block = p.n, s.bn
    else:
        right, rows, axis, other = "b", layout.rows_b, "m", "n"
        sizes, strides, batch = ("BM", "BN"), (p.a[0], p.a[1], p.a[2]), layout.batch_b
        count, block = p.m, s.bm
    wide = ".to(tl.int64)" if count * strides[1] + p.k * strides[2] >= LIMIT else ""
    at = place(("batch", strides[0]), (f"{axis}{wide}[:, None]", strides[1]),
               (f"k{wide}[None, :]", strides[2]))  # fmt: skip
    scaled = s.precision == "fp16x3"
    scales = f"s{right}_ptr, " if scaled else ""
    tiles = ceil_div(count, block)
    tile = f"{axis}0 // {block}"
    mark = f"({'batch * ' + str(tiles) + ' + ' if p.batch > 1 else ''}{tile}) * {s.split_k}"
    many = s.planes_each * rows
    moved = f"batch * {many} + " if batch > 1 else ""
    wide_rows = ".to(tl.int64)" if many * layout.width >= LIMIT else ""
    lines = [
        f"BM: tl.constexpr = {s.bm}",
        f"BN: tl.constexpr = {s.bn}",
        f"BK: tl.constexpr = {s.bk}",
        "batch = tl.program_id(1)" + (".to(tl.int64)" if p.batch > 1 else ""),
        *place_lines(p, s, "tl.program_id(0)"),
        "m = m0 + tl.arange(0, BM)",
        "n = n0 + tl.arange(0, BN)",
        "k = tl.arange(0, BK)",
        f"at = {left}_ptr + {at}",
        f"at_p = p{right}_ptr + ({moved}{other}{wide_rows}[:, None]) * {layout.width} + k[None, :]",
        f"total = tl.zeros(({sizes[0]}, {sizes[1]}), tl.float32)",
        f"highest = tl.zeros(({sizes[0]},), tl.int32)",
        f"lowest = tl.full(({sizes[0]},), 0x7F000000, tl.int32)",
    ]
    if scaled:
        moved = f"batch * {layout.steps * rows} + " if batch > 1 else ""
        lines.append(f"at_s = s{right}_ptr + {moved}{other}")
    if s.split_k > 1:
        share = ceil_div(layout.steps, s.split_k)
        lines += [
            f"first = tl.program_id(2) * {share}",
            f"for step in range(first, tl.minimum(first + {share}, {layout.steps})):",
        ]
    else:
        lines.append(f"for step in range({layout.steps}):")
    bounds = [
        *([] if count % block == 0 else [f"({axis} < {count})[:, None]"]),
        *([] if p.k % s.bk == 0 else [f"(step * BK + k < {p.k})[None, :]"]),
    ]
    mask = f", mask={' & '.join(bounds)}, other=0.0" if bounds else ""
    ahead = "step * BK" if strides[2] == 1 else f"step * {s.bk * strides[2]}"
    plane = rows * layout.width
    inner = [
        f"x = tl.load(at + {ahead}{mask})",
        *(
            f"r{n} = tl.load(at_p{f' + {n * plane}' if n else ''} + step * BK)"
            for n in range(s.planes_each)
        ),
        "top = tl.max(x.to(tl.int32, bitcast=True) & 0x7FFFFFFF, axis=1)",
        "highest = tl.maximum(highest, top)",
        "lowest = tl.minimum(lowest, tl.where(top > 0, top, 0x7F000000))",
        *(_three(rows) if scaled else _six()),
    ]
    low, high = (79, 191) if scaled else (27, 254)
    end = [
        f"bad = ((highest >> 23) > {high}) | ((lowest >> 23) < {low})",
        f"at_mark = f{left}_ptr + {mark} + tl.program_id(2)",
        "tl.store(at_mark, tl.max(bad.to(tl.int32), axis=0).to(tl.int8))",
    ]
    head = [
        "@triton.jit",
        f"def {name}({left}_ptr, p{right}_ptr, {scales}f{left}_ptr, {', '.join(rest.pointers)}):",
        '    """Small terms first; each step has its own sum, as tensor cores truncate theirs."""',
    ]
    body = [*lines, *(f"    {each}" for each in inner), *end, *rest.lines]
    return "\n".join(head + [f"    {each}" for each in body])


def _three(rows: int) -> list[str]:
    return [
        "up = tl.minimum(tl.maximum(268 - (top >> 23), 77), 189)",
        "x = x * (up << 23).to(tl.float32, bitcast=True)[:, None]",
        "high = x.to(tl.float16)",
        "low = (x - high.to(tl.float32)).to(tl.float16)",
        "down = ((254 - up) << 23).to(tl.float32, bitcast=True)",
        f"scale = tl.load(at_s + step * {rows})",
        "part = tl.dot(low, r0.T)",
        "part = tl.dot(high, r1.T, part)",
        "part = tl.dot(high, r0.T, part)",
        "total += part * (down[:, None] * scale[None, :])",
    ]


def _six() -> list[str]:
    return [
        "high = tl.clamp(x, -3.3895313892515355e38, 3.3895313892515355e38).to(tl.bfloat16)",
        "rest = x - high.to(tl.float32)",
        "middle = rest.to(tl.bfloat16)",
        "low = (rest - middle.to(tl.float32)).to(tl.bfloat16)",
        "part = tl.dot(low, r0.T)",
        "part = tl.dot(high, r2.T, part)",
        "part = tl.dot(middle, r1.T, part)",
        "part = tl.dot(middle, r0.T, part)",
        "part = tl.dot(high, r1.T, part)",
        "part = tl.dot(high, r0.T, part)",
        "total += part",
    ]
