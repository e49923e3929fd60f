"""Texts of kernels that multiply tiles as they come: half precision, or Triton's own precisions."""

from kernelsmith.propose.rules.products.epilogue import Bias, Epilogue
from kernelsmith.propose.rules.products.finish import finish_lines, flat_finish_lines, given
from kernelsmith.propose.rules.products.product import Product, Schedule, ceil_div, place
from kernelsmith.propose.rules.products.triangles import triangle_lines, works_lines

LIMIT = 2**31


def tile_text(
    name: str, product: Product, schedule: Schedule, bias: Bias | None, epilogue: Epilogue | None
) -> str:
    """A tile of C (and share of k) after the other; finishes each, or leaves a partial sum."""
    p, s = product, schedule
    rest = Ending(p, s, bias, epilogue)
    lines = [
        "@triton.jit",
        f"def {name}(a_ptr, b_ptr, {', '.join(rest.pointers)}):",
        f"    M: tl.constexpr = {p.m}",
        f"    N: tl.constexpr = {p.n}",
        f"    K: tl.constexpr = {p.k}",
        f"    BM: tl.constexpr = {s.bm}",
        f"    BN: tl.constexpr = {s.bn}",
        f"    BK: tl.constexpr = {s.bk}",
        "    batch = tl.program_id(1)" + (".to(tl.int64)" if p.batch > 1 else ""),
    ]
    if s.descriptors:
        lines += [f"    {each}" for each in _described(p)]
    if s.persistent:
        tiles = ceil_div(p.m, s.bm) * ceil_div(p.n, s.bn)
        lines.append(f"    for tile in tl.range(tl.program_id(0), {tiles}, tl.num_programs(0)):")
        inner = [*_tile(p, s, "tile"), *rest.lines]
        return "\n".join(lines + [f"        {each}" for each in inner])
    inner = [*_tile(p, s, "tl.program_id(0)"), *rest.lines]
    return "\n".join(lines + [f"    {each}" for each in inner])


def _tile(p: Product, s: Schedule, number: str) -> list[str]:
    """Lines that multiply one tile."""
    lines = [
        *working_lines(p, s, number),
        "m = m0 + tl.arange(0, BM)",
        "n = n0 + tl.arange(0, BN)",
        *_k_range(p, s),
        *([] if p.kept is None else ["last = tl.where(works, last, first)"]),
    ]
    how = "" if s.precision == "native" else f', input_precision="{s.precision}"'
    if s.descriptors:
        turned_a, turned_b = p.a[2] != 1, p.b[2] != 1
        return [
            *lines,
            "total = tl.zeros((BM, BN), tl.float32)",
            "for k0 in range(first, last, BK):",
            f"    a = from_a.load([{'k0, m0' if turned_a else 'm0, k0'}]){'.T' * turned_a}",
            f"    b = from_b.load([{'n0, k0' if turned_b else 'k0, n0'}]){'.T' * turned_b}",
            f"    total = tl.dot(a, b, total{how})",
        ]
    at_a = place(("batch", p.a[0]), (f"m{_wide(p.m * p.a[1])}[:, None]", p.a[1]),
                 (f"k{_wide(p.k * p.a[2])}[None, :]", p.a[2]))  # fmt: skip
    at_b = place(("batch", p.b[0]), (f"k{_wide(p.k * p.b[1])}[:, None]", p.b[1]),
                 (f"n{_wide(p.n * p.b[2])}[None, :]", p.b[2]))  # fmt: skip
    lines += [
        "k = first + tl.arange(0, BK)",
        f"at_a = a_ptr + {at_a}",
        f"at_b = b_ptr + {at_b}",
        "total = tl.zeros((BM, BN), tl.float32)",
        "for k0 in range(first, last, BK):",
    ]
    masks_a = [] if p.m % s.bm == 0 else ["(m < M)[:, None]"]
    masks_b = [] if p.n % s.bn == 0 else ["(n < N)[None, :]"]
    if p.k % (s.bk * s.split_k) != 0:
        bound = "last" if s.split_k > 1 else "K"
        lines.append(f"    there = k0 + tl.arange(0, BK) < {bound}")
        masks_a.append("there[None, :]")
        masks_b.append("there[:, None]")
    return [
        *lines,
        f"    a = tl.load(at_a{_masked(masks_a)})",
        f"    b = tl.load(at_b{_masked(masks_b)})",
        *([_nearest("a"), _nearest("b")] if s.precision == "tf32" else ()),
        f"    total = tl.dot(a, b, total{how})",
        f"    at_a += {s.bk * p.a[2]}",
        f"    at_b += {s.bk * p.b[1]}",
    ]


def describable(product: Product) -> bool:
    """Whether operands of half precision can be fetched by descriptor, where they begin aligned.

    Their rows or columns must be dense, and all else a multiple of 16 bytes away.
    """
    return all(
        min(one, other) == 1 and max(one, other) % 8 == 0 and batch % 8 == 0
        for batch, one, other in (product.a, product.b)
    )


def _described(p: Product) -> list[str]:
    """Lines that make both descriptors; what lies outside is read as zeros."""
    found = []
    for side, (batch, down, across), sizes, blocks in (
        ("a", p.a, (p.m, p.k), ("BM", "BK")), ("b", p.b, (p.k, p.n), ("BK", "BN")),
    ):  # fmt: skip
        moved = f" + batch * {batch}" if batch else ""
        if across != 1:
            sizes, blocks, down = sizes[::-1], blocks[::-1], across
        found.append(
            f"from_{side} = tl.make_tensor_descriptor({side}_ptr{moved}, "
            f"[{sizes[0]}, {sizes[1]}], [{down}, 1], [{blocks[0]}, {blocks[1]}])"
        )
    return found


class Ending:
    """How a tile ends: what that takes, and the lines."""

    def __init__(
        self, product: Product, schedule: Schedule, bias: Bias | None,
        epilogue: Epilogue | None, *, turned: bool = False,
    ) -> None:  # fmt: skip
        p, s = product, schedule
        even_m, even_n = p.m % s.bm == 0, p.n % s.bn == 0
        if s.split_k == 1:
            self.pointers = given(bias, epilogue)
            self.lines = finish_lines(
                p, bias, epilogue, even_m=even_m, even_n=even_n, turned=turned
            )
            return
        self.pointers = ("part_ptr",)
        down, across = ("[None, :]", "[:, None]") if turned else ("[:, None]", "[None, :]")
        bounds = [
            *([] if even_m else [f"(m < {p.m}){down}"]),
            *([] if even_n else [f"(n < {p.n}){across}"]),
        ]
        mask = f", mask={' & '.join(bounds)}" if bounds else ""
        self.lines = [
            f"row = (tl.program_id(2).to(tl.int64) * {p.batch} + batch) * {p.m} + m",
            f"tl.store(part_ptr + row{down} * {p.n} + n{across}, total{mask})",
        ]


def reduce_text(
    name: str, product: Product, schedule: Schedule, bias: Bias | None, epilogue: Epilogue | None
) -> str:
    """Partial sums are added in order, always the same, and the result is finished."""
    count = product.batch * product.m * product.n
    pointers = given(bias, epilogue)
    wide = ".to(tl.int64)" if count * schedule.split_k >= LIMIT else ""
    lines = [
        "@triton.jit",
        f"def {name}(part_ptr, {', '.join(pointers)}):",
        f"    xindex = tl.program_id(0){wide} * 1024 + tl.arange(0, 1024)",
        "    total = tl.zeros((1024,), tl.float32)",
        f"    for share in tl.static_range({schedule.split_k}):",
        f"        at = part_ptr + share * {count} + xindex",
        f"        total += tl.load(at, mask=xindex < {count}, other=0.0)",
    ]
    return "\n".join(lines + [f"    {each}" for each in flat_finish_lines(product, bias, epilogue)])


def working_lines(product: Product, schedule: Schedule, number: str) -> list[str]:
    """The same, and whether it ``works`` where only a triangle of C is kept."""
    p, s = product, schedule
    if p.kept is None:
        return place_lines(p, s, number)
    if s.bm == s.bn:
        return triangle_lines(p, s, number)
    return [*place_lines(p, s, number), *works_lines(p)]


def place_lines(product: Product, schedule: Schedule, number: str) -> list[str]:
    """Which tile a program takes: groups of rows share columns of B while they are in cache."""
    p, s = product, schedule
    tiles_m, tiles_n = ceil_div(p.m, s.bm), ceil_div(p.n, s.bn)
    group = min(s.group, tiles_m)
    if group == 1:
        return [f"m0 = {number} // {tiles_n} * BM", f"n0 = {number} % {tiles_n} * BN"]
    if tiles_n == 1:
        return [f"m0 = {number} * BM", f"n0 = {number} * 0"]
    if group == tiles_m:
        return [f"m0 = {number} % {tiles_m} * BM", f"n0 = {number} // {tiles_m} * BN"]
    size = f"tl.minimum({tiles_m} - above, {group})" if tiles_m % group else f"{group}"
    return [
        f"above = {number} // {group * tiles_n} * {group}",
        f"size = {size}",
        f"m0 = (above + {number} % {group * tiles_n} % size) * BM",
        f"n0 = {number} % {group * tiles_n} // size * BN",
    ]


def _nearest(name: str) -> str:
    """To TF32, as the library rounds: tensor cores cut off what is below. NaN stays NaN."""
    bits = f"(({name}.to(tl.uint32, bitcast=True) + 0x1000) & 0xFFFFE000)"
    near = f"{bits}.to(tl.float32, bitcast=True)"
    return f"    {name} = tl.where({name} == {name}, {near}, float('nan'))"


def _k_range(product: Product, schedule: Schedule) -> list[str]:
    if schedule.split_k == 1:
        return ["first = 0", "last = K"]
    share = ceil_div(ceil_div(product.k, schedule.bk), schedule.split_k) * schedule.bk
    return [
        f"first = tl.program_id(2) * {share}",
        f"last = tl.minimum(first + {share}, K)",
    ]


def _masked(masks: list[str]) -> str:
    return f", mask={' & '.join(masks)}, other=0.0" if masks else ""


def _wide(extent: int) -> str:
    return ".to(tl.int64)" if extent >= LIMIT else ""
