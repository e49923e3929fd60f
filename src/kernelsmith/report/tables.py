"""Tables and figures, and numbers as people write them."""

from collections.abc import Collection, Sequence

from kernelsmith.report.markup import Markup, tag

Cellular = str | int


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[Cellular]],
    *,
    numeric: Collection[int] = (),
    caption: str = "",
) -> Markup:
    """A table; the columns in ``numeric`` are set flush right."""
    styles = ["n" if column in numeric else None for column in range(len(header))]
    head = tag("tr", *(tag("th", name, class_=s) for name, s in zip(header, styles, strict=True)))
    body = [
        tag("tr", *(tag("td", str_of(each), class_=s) for each, s in zip(row, styles, strict=True)))
        for row in rows
    ]
    titled = [tag("caption", caption)] if caption else []
    return tag("div", tag("table", *titled, tag("thead", head), tag("tbody", *body)), class_="wide")


def facts(*pairs: tuple[str, str]) -> Markup:
    """A few numbers with their names, side by side."""
    return tag(
        "dl", *(tag("div", tag("dt", name), tag("dd", said)) for name, said in pairs),
        class_="facts",
    )  # fmt: skip


def figure(drawn: Markup, said: str = "") -> Markup:
    """A picture with what to see in it."""
    return tag("figure", drawn, *([tag("figcaption", said)] if said else []))


def folded(summary: str, inner: Markup, *, is_open: bool = False) -> Markup:
    """Something that a reader opens on demand."""
    return tag("details", tag("summary", summary), inner, open=is_open)


def str_of(value: Cellular) -> str:
    """Text as it is; numbers in digits."""
    return value if isinstance(value, str) else f"{value:,}"


def count(value: int | None) -> str:
    """A whole number, or a dash where nobody counted."""
    return "-" if value is None else f"{value:,}"


def cents(usd: float | None) -> str:
    """Money, with the digits that its size deserves."""
    if usd is None:
        return "-"
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def minutes(seconds: float) -> str:
    """A length of time in the largest unit that keeps two digits."""
    if seconds == 0:
        return "-"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 90:
        return f"{seconds:.1f} s"
    if seconds < 5400:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"
