"""Tiles of a product of which only a triangle is kept: those that do work, in front of all others.

Nothing is multiplied for a tile that lies wholly outside; it is finished like any other, since what
is kept of it does not depend on the product. Square tiles are counted row by row, those with work
first, so that programs that stay and take every so-manyth tile have equally many of them.
"""

from dataclasses import dataclass

from kernelsmith.propose.rules.products.product import Product, Schedule, ceil_div


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stairs:
    """The tiles (i, j) of a grid with ``j <= i + ahead``, row by row."""

    rows: int
    columns: int
    ahead: int

    @property
    def empty(self) -> int:
        """Rows in front that have none."""
        return min(self.rows, max(0, -self.ahead))

    @property
    def begin(self) -> int:
        """Tiles of the first row that has any."""
        return min(self.columns, max(1, 1 + self.ahead))

    @property
    def rising(self) -> int:
        """Rows that have one more than the row before, up to where all columns are there."""
        return min(self.rows - self.empty, self.columns - self.begin)

    @property
    def risen(self) -> int:
        """Tiles of the rising rows."""
        return self.rising * (self.rising + 2 * self.begin - 1) // 2

    @property
    def count(self) -> int:
        """All of them."""
        return self.risen + (self.rows - self.empty - self.rising) * self.columns

    def lines(self, number: str) -> list[str]:
        """Lines that find row ``i`` and column ``j`` of a tile by its number."""
        odd = 2 * self.begin - 1
        rising = [
            # The root is off by one step at most, and put right.
            f"i = ((tl.sqrt(tl.cast(8 * {number} + {odd * odd}, tl.float32)) - {odd}) / 2)"
            ".to(tl.int32)",
            f"i = tl.where(i * (i + {odd}) // 2 > {number}, i - 1, i)",
            f"i = tl.where((i + 1) * (i + {odd + 1}) // 2 <= {number}, i + 1, i)",
            f"j = {number} - i * (i + {odd}) // 2",
        ]
        past = number if not self.risen else f"({number} - {self.risen})"
        above = f" + {self.rising}" if self.rising else ""
        full = [f"i = {past} // {self.columns}{above}", f"j = {past} % {self.columns}"]
        if not self.risen or self.risen == self.count:
            found = rising if self.risen else full
        else:
            found = [f"if {number} < {self.risen}:", *(f"    {each}" for each in rising),
                     "else:", *(f"    {each}" for each in full)]  # fmt: skip
        return [*found, *([f"i = i + {self.empty}"] if self.empty else [])]


def _stairs(product: Product, schedule: Schedule) -> tuple[_Stairs, _Stairs, bool]:
    """Tiles with work and tiles without; of each pair one is counted from the last corner.

    The flag says that it is the tiles with work.
    """
    p, side = product, schedule.bm
    assert p.kept is not None
    rows, columns = ceil_div(p.m, side), ceil_div(p.n, side)
    if p.kept.lower:
        ahead = (side - 1 + p.kept.by) // side
        rest = columns - rows - ahead - 1
    else:
        behind = -((side - 1 - p.kept.by) // side)
        ahead, rest = columns - rows - behind, behind - 1
    work = _Stairs(rows=rows, columns=columns, ahead=ahead)
    return work, _Stairs(rows=rows, columns=columns, ahead=rest), not p.kept.lower


def triangle_lines(product: Product, schedule: Schedule, number: str) -> list[str]:
    """Lines that give a tile its place, ``m0`` and ``n0``, and say whether it ``works``."""
    p, s = product, schedule
    assert p.kept is not None
    assert s.bm == s.bn
    work, rest, turned = _stairs(p, s)
    straight = ["m0 = i * BM", "n0 = j * BN"]
    from_last = [f"m0 = ({work.rows - 1} - i) * BM", f"n0 = ({work.columns - 1} - j) * BN"]
    first = [*work.lines("tile"), *(from_last if turned else straight)]
    then = [*rest.lines("late"), *(straight if turned else from_last)]
    head = [] if number == "tile" else [f"tile = {number}"]
    if not rest.count:
        return [*head, *first, "works = tile >= 0"]
    if not work.count:
        return [*head, "late = tile", *then, "works = tile < 0"]
    return [
        *head,
        f"works = tile < {work.count}",
        "if works:",
        *(f"    {each}" for each in first),
        "else:",
        f"    late = tile - {work.count}",
        *(f"    {each}" for each in then),
    ]


def works_lines(product: Product) -> list[str]:
    """The same of a tile whose place is known, square or not."""
    kept = product.kept
    assert kept is not None
    if kept.lower:
        return [f"works = m0 + (BM - 1 + {kept.by}) >= n0"]
    return [f"works = n0 + (BN - 1) >= m0 + {kept.by}"]
