"""Text of the kernel that computes several small products in one program, in plain float32.

Sides below 32 or a short k leave tensor cores little to do: such products are bound by memory, so
they are read in one piece, multiplied exactly as eager does, and finished where they are. Sizes are
padded to powers of two by zeros, which add nothing.
"""

from kernelsmith.propose.rules.products.epilogue import Bias, Epilogue
from kernelsmith.propose.rules.products.finish import flat_finish_lines, given
from kernelsmith.propose.rules.products.product import Product, Schedule, ceil_div, place
from kernelsmith.propose.rules.products.tiles import LIMIT


def several_text(
    name: str, product: Product, schedule: Schedule, bias: Bias | None, epilogue: Epilogue | None
) -> str:
    """One program per tile of as many products as ``together``."""
    p, s = product, schedule
    tiles_n = ceil_div(p.n, s.bn)
    tiles = ceil_div(p.m, s.bm) * tiles_n
    there = [
        *([] if p.batch % s.together == 0 else [f"(batch < {p.batch})"]),
        *([] if p.m % s.bm == 0 else [f"(m < {p.m})"]),
        *([] if p.n % s.bn == 0 else [f"(n < {p.n})"]),
    ]
    even_k = p.k % s.bk == 0
    at_a, mask_a = ("batch", "m", "k[None, None, :]"), [e for e in there if "n <" not in e]
    at_b, mask_b = ("batch", "k[None, :, None]", "n"), [e for e in there if "m <" not in e]
    if not even_k:
        mask_a.append(f"(k < {p.k})[None, None, :]")
        mask_b.append(f"(k < {p.k})[None, :, None]")
    tile = "number" if p.batch <= s.together else f"number % {tiles}"
    group = "number * 0" if p.batch <= s.together else f"number // {tiles}" if tiles > 1 else (
        "number"
    )  # fmt: skip
    down = f"{tile} // {tiles_n}" if tiles_n > 1 else tile
    across = f"{tile} % {tiles_n}" if tiles_n > 1 else "0"
    down, across = (down, across) if tiles > 1 else ("0", "0")
    loads = [
        f"a = tl.load(a_ptr + {_at(at_a, p.a)}{_masked(mask_a)}).to(tl.float32)",
        f"b = tl.load(b_ptr + {_at(at_b, p.b)}{_masked(mask_b)}).to(tl.float32)",
    ]
    lines = [
        f"number = tl.program_id(0){_wide(p)}",
        f"batch = ({group} * {s.together} + tl.arange(0, {s.together}))[:, None, None]",
        f"m = ({down} * {s.bm} + tl.arange(0, {s.bm}))[None, :, None]",
        f"n = ({across} * {s.bn} + tl.arange(0, {s.bn}))[None, None, :]",
    ]
    if p.k <= s.bk:
        lines += [
            f"k = tl.arange(0, {s.bk})", *loads,
            'total = tl.dot(a, b, input_precision="ieee")',
        ]  # fmt: skip
    else:
        lines += [
            f"total = tl.zeros(({s.together}, {s.bm}, {s.bn}), tl.float32)",
            f"for k0 in range(0, {p.k}, {s.bk}):",
            f"    k = k0 + tl.arange(0, {s.bk})",
            *(f"    {each}" for each in loads),
            '    total += tl.dot(a, b, input_precision="ieee")',
        ]
    lines.append(f"xindex = (batch * {p.m} + m) * {p.n} + n")
    if there:
        count = p.batch * p.m * p.n
        lines.append(f"xindex = tl.where({' & '.join(there)}, xindex, {count})")
    lines += flat_finish_lines(p, bias, epilogue)
    head = [
        "@triton.jit",
        f"def {name}(a_ptr, b_ptr, {', '.join(given(bias, epilogue))}):",
        f'    """{s.together} products of {p.m} x {p.k} by {p.k} x {p.n} at a time."""',
    ]
    return "\n".join(head + [f"    {each}" for each in lines])


def programs(product: Product, schedule: Schedule) -> int:
    """How many there are."""
    p, s = product, schedule
    return ceil_div(p.m, s.bm) * ceil_div(p.n, s.bn) * ceil_div(p.batch, s.together)


def _at(axes: tuple[str, str, str], strides: tuple[int, int, int]) -> str:
    return place(*zip(axes, strides, strict=True))


def _masked(bounds: list[str]) -> str:
    return f", mask={' & '.join(bounds)}, other=0.0" if bounds else ""


def _wide(product: Product) -> str:
    """A conversion where places exceed 32 bits; everything follows the program's number."""
    p = product
    sides = ((p.m, p.k, p.a), (p.k, p.n, p.b), (p.m, p.n, p.c))
    far = max(p.batch * by[0] + one * by[1] + two * by[2] for one, two, by in sides)
    return ".to(tl.int64)" if max(far, p.batch * p.m * p.n) + LIMIT // 64 >= LIMIT else ""
