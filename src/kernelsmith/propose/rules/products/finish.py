"""The function that stores a tile of C: bias, epilogue, and the place of each element."""

import re

from kernelsmith.propose.rules.products.epilogue import Bias, Compute, Epilogue, Load
from kernelsmith.propose.rules.products.product import TRITON_TYPES, Product, place

_MODULO = re.compile(r"xindex % (\d+)")
_FLOOR = re.compile(r"xindex // (\d+)")
_BETWEEN = re.compile(r"xindex // (\d+) % (\d+)")
_LIMIT = 2**31


def given(bias: Bias | None, epilogue: Epilogue | None) -> tuple[str, ...]:
    """The tensor parameters that finishing needs."""
    return (*(("bias_ptr",) if bias else ()), *(epilogue.pointers if epilogue else ("c_ptr",)))


def finish_lines(
    product: Product, bias: Bias | None, epilogue: Epilogue | None, *,
    even_m: bool = False, even_n: bool = False, turned: bool = False,
) -> list[str]:  # fmt: skip
    """Lines that store ``total``, a tile of C, given ``batch``, rows ``m`` and columns ``n``.

    The tile is (m, n), or (n, m) where it is ``turned``.
    """
    p, wide = product, _wide(product)
    lines = ["value = total", "rows = m[:, None]", "columns = n[None, :]"]
    if turned:
        lines[1:] = ["rows = m[None, :]", "columns = n[:, None]"]
    inside_m, inside_n = f"rows < {p.m}", f"columns < {p.n}"
    bounds = [t for t, even in ((inside_m, even_m), (inside_n, even_n)) if not even]
    if bounds:
        lines.append("inside = " + " & ".join(f"({each})" for each in bounds))
    masks = {
        "m": "" if even_m else f", mask={inside_m}",
        "n": "" if even_n else f", mask={inside_n}",
        "mn": ", mask=inside" if bounds else "",
    }
    if bias:
        uses = "".join(axis for axis, by in zip("mn", bias.strides[1:], strict=True) if by)
        lines += _biased(bias, ("batch", "rows", "columns"), masks.get(uses, ""))
    if epilogue is None:
        axes = ("batch" + wide, "rows" + wide, "columns" + (wide if p.c[2] != 1 else ""))
        cast = "" if p.out == "float32" else f".to({TRITON_TYPES[p.out]})"
        at = place(*zip(axes, p.c, strict=True))
        return [*lines, f"tl.store(c_ptr + {at}, value{cast}{masks['mn']})"]
    lines.append("row = rows" if p.batch == 1 else f"row = batch * {p.m} + rows")
    needed, axes_of = _variables(epilogue), {}
    for variable, text in epilogue.indices:
        if variable in needed:
            found, axes_of[variable] = _of_tile(text, p.n, wide)
            lines.append(f"{variable} = {found}")
    return lines + _body(epilogue, axes_of, masks)


def flat_finish_lines(product: Product, bias: Bias | None, epilogue: Epilogue | None) -> list[str]:
    """The same for flat places ``xindex`` in C."""
    p = product
    lines = ["value = total", f"inside = xindex < {p.batch * p.m * p.n}"]
    mask = ", mask=inside"
    axes = ("batch", "rows", "columns")
    if bias or (epilogue is None and not p.flat):
        lines += [
            f"columns = xindex % {p.n}",
            f"rows = xindex // {p.n} % {p.m}",
            f"batch = xindex // {p.n * p.m}",
        ]
    if bias:
        lines += _biased(bias, axes, mask)
    if epilogue is None:
        cast = "" if p.out == "float32" else f".to({TRITON_TYPES[p.out]})"
        at = "xindex" if p.flat else place(*zip(axes, p.c, strict=True))
        return [*lines, f"tl.store(c_ptr + {at}, value{cast}{mask})"]
    needed = _variables(epilogue)
    lines += [f"{name} = {text}" for name, text in epilogue.indices if name in needed]
    axes_of = {name: "mn" for name, _ in epilogue.indices}
    body = _body(epilogue, axes_of, {"m": mask, "n": mask, "mn": mask})
    return lines + [each.replace("tl.full([1, 1],", "tl.full([1],") for each in body]


def _biased(bias: Bias, axes: tuple[str, str, str], mask: str) -> list[str]:
    if not any(bias.strides):
        mask = ""  # one number for all, where a mask of many has no place
    other = ", other=0.0" if mask else ""
    lines = [] if bias.alpha == 1 else [f"value = value * {bias.alpha!r}"]
    beta = "" if bias.beta == 1 else f"{bias.beta!r} * "
    at = f"bias_ptr + {place(*zip(axes, bias.strides, strict=True))}"
    return [*lines, f"value += {beta}tl.load({at}{mask}{other}).to(tl.float32)"]


def _body(epilogue: Epilogue, axes: dict[str, str], masks: dict[str, str]) -> list[str]:
    lines = []
    for line in epilogue.lines:
        if isinstance(line, Compute):
            lines.append(f"{line.target} = {line.text}")
            continue
        uses = {axis for each in _names(line.index) for axis in axes[each]}
        mask = masks.get("".join(axis for axis in "mn" if axis in uses), "")
        if isinstance(line, Load):
            other = ", other=0.0" if mask else ""
            place = f" + ({line.index})" if line.index else ""
            lines.append(
                f"{line.target} = tl.load({line.pointer}{place}{mask}{other}){line.suffix}"
            )
        else:
            lines.append(f"tl.store({line.pointer} + ({line.index}), {line.value}{mask})")
    return lines


def _variables(epilogue: Epilogue) -> set[str]:
    """Index variables that some line, or another variable, needs."""
    needed: set[str] = set()
    for line in epilogue.lines:
        needed |= set(_names(line.text if isinstance(line, Compute) else line.index))
    for name, text in reversed(epilogue.indices):
        if name in needed:
            needed |= set(_names(text))
    return needed


def _names(text: str) -> list[str]:
    return re.findall(r"\bx\d+\b", text)


def _of_tile(text: str, columns: int, wide: str) -> tuple[str, str]:
    """An expression of the flat index by row and column, and the axes that it depends on."""
    text = text.replace("(", "").replace(")", "") if text.count("(") <= 1 else text
    if found := _MODULO.fullmatch(text):
        by = int(found[1])
        if columns % by == 0:
            return ("columns" if by == columns else f"columns % {by}"), "n"
    if found := _FLOOR.fullmatch(text):
        by = int(found[1])
        if by % columns == 0:
            return ("row" if by == columns else f"row // {by // columns}"), "m"
    if found := _BETWEEN.fullmatch(text):
        by, over = int(found[1]), int(found[2])
        if by % columns == 0:
            return (f"row % {over}" if by == columns else f"row // {by // columns} % {over}"), "m"
        if columns % (by * over) == 0:
            return f"columns // {by} % {over}", "n"
    flat = f"(row{wide} * {columns} + columns)"
    return (flat[1:-1] if text == "xindex" else text.replace("xindex", flat)), "mn"


def _wide(product: Product) -> str:
    """A conversion where places in C exceed 32 bits."""
    last = (product.batch - 1) * product.c[0] + product.m * product.c[1] + product.n * product.c[2]
    return ".to(tl.int64)" if last >= _LIMIT else ""
