"""Text of the kernel for a matrix and a vector: bound by memory, without tensor cores."""

from kernelsmith.propose.rules.products.epilogue import Bias, Epilogue
from kernelsmith.propose.rules.products.product import Product, Schedule, ceil_div, place
from kernelsmith.propose.rules.products.tiles import LIMIT, Ending


def as_vector(schedule: Schedule, product: Product) -> Schedule:
    """The same with one row or column per tile where there is only one."""
    bm, bn = (1, schedule.bn) if product.m == 1 else (schedule.bm, 1)
    return Schedule(precision="ieee", bm=bm, bn=bn, bk=schedule.bk, warps=schedule.warps,
                    stages=schedule.stages, split_k=schedule.split_k)  # fmt: skip


def vector_text(
    name: str, product: Product, schedule: Schedule, bias: Bias | None, epilogue: Epilogue | None
) -> str:
    """One program per block of rows of the matrix (and share of k)."""
    p, s = product, schedule
    rest = Ending(p, s, bias, epilogue)
    if p.n == 1:
        matrix, by, across, along = "a", p.m, p.a[1], p.a[2]
        vector, step, block = "b", p.b[1], s.bm
    else:
        matrix, by, across, along = "b", p.n, p.b[2], p.b[1]
        vector, step, block = "a", p.a[2], s.bn
    by_batch = {"a": p.a[0], "b": p.b[0]}
    even = p.k % (s.bk * s.split_k) == 0
    wide = ".to(tl.int64)" if by * across + p.k * along >= LIMIT else ""
    masks = [] if by % block == 0 else [f"(row < {by})[:, None]"]
    if not even:
        masks.append("there[None, :]")
    mask = f", mask={' & '.join(masks)}, other=0.0" if masks else ""
    vector_mask = "" if even else ", mask=there, other=0.0"
    share = ceil_div(ceil_div(p.k, s.bk), s.split_k) * s.bk
    single = "tl.arange(0, 1)"
    at = place(("batch", by_batch[matrix]), (f"row{wide}[:, None]", across),
               (f"k{wide}[None, :]", along))  # fmt: skip
    lines = [
        "@triton.jit",
        f"def {name}(a_ptr, b_ptr, {', '.join(rest.pointers)}):",
        "    batch = tl.program_id(1)" + (".to(tl.int64)" if p.batch > 1 else ""),
        f"    row = tl.program_id(0) * {block} + tl.arange(0, {block})",
        f"    k = tl.arange(0, {s.bk})",
        f"    at = {matrix}_ptr + {at}",
        f"    at_vector = {vector}_ptr + {place(('batch', by_batch[vector]), ('k', step))}",
        f"    total = tl.zeros(({block}, {s.bk}), tl.float32)",
    ]
    if s.split_k > 1:
        lines += [
            f"    first = tl.program_id(2) * {share}",
            f"    for k0 in range(first, tl.minimum(first + {share}, {p.k}), {s.bk}):",
        ]
    else:
        lines.append(f"    for k0 in range(0, {p.k}, {s.bk}):")
    if not even:
        bound = f"tl.minimum(first + {share}, {p.k})" if s.split_k > 1 else f"{p.k}"
        lines.append(f"        there = k0 + k < {bound}")
    lines += [
        f"        x = tl.load(at + k0 * {along}{mask}).to(tl.float32)",
        f"        y = tl.load(at_vector + k0 * {step}{vector_mask}).to(tl.float32)",
        "        total += x * y[None, :]",
    ]
    if p.n == 1:
        lines += ["    total = tl.sum(total, axis=1)[:, None]", f"    m, n = row, {single}"]
    else:
        lines += ["    total = tl.sum(total, axis=1)[None, :]", f"    m, n = {single}, row"]
    return "\n".join(lines + [f"    {each}" for each in rest.lines])
