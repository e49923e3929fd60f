"""Runs what sorts beside eager, on rows that are hard to put in order."""

from collections.abc import Callable

import torch

INF, NAN = float("inf"), float("nan")
ODD = torch.tensor([INF, -INF, NAN, 0.0, -0.0, 1e-42, -1e-42, 1.0, -3e38, 3e38])


def rows(sort: str, count: int, length: int) -> torch.Tensor:
    """Rows of one sort."""
    made = torch.Generator().manual_seed(length)
    x = torch.randn(count, length, generator=made)
    many = torch.rand(count, length, generator=made)
    match sort:
        case "ties":
            return (x * 2).round()
        case "odd":
            return ODD[(many * len(ODD)).long()]
        case "zeros":
            return torch.where(many < 0.5, -0.0, 0.0)
        case "nans":
            return torch.where(many < 0.6, NAN, x)
        case "all_nan":
            return torch.full_like(x, NAN)
        case "lowest":
            return torch.full_like(x, -INF)
        case "rising":
            return x.sort().values
        case "falling":
            return -x.sort().values
        case "strided":
            return x.t().contiguous().t()
    return x


SORTS = ("plain", "ties", "odd", "zeros", "nans", "all_nan", "lowest", "rising", "falling",
         "strided")  # fmt: skip


def differences(
    source: str, reference: str, sizes: list[tuple[int, int]], dtypes: list[str],
    load: Callable[[str], object] | None = None,
) -> list[str]:  # fmt: skip
    """On which rows a candidate gives other bits than eager; the reference must not run in it.

    Where a number is none, its bits do not count.
    """
    if load is None:
        from triton_interpreter import loaded as load
    names: dict[str, object] = {}
    exec(reference, names)
    model = names["Model"]()  # type: ignore[operator]
    made = load(source).ModelNew()  # type: ignore[attr-defined]
    made.plain = _forbidden
    wrong = []
    for dtype in dtypes:
        for count, length in sizes:
            for sort in SORTS:
                x = rows(sort, count, length).to(getattr(torch, dtype))
                for at, (a, b) in enumerate(zip(_listed(made(x)), _listed(model(x)), strict=True)):
                    if not _same(a, b):
                        wrong.append(f"{dtype} {sort} {count} x {length}, output {at}")
    return wrong


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.dtype is not b.dtype or a.shape != b.shape:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    kept = ~torch.isnan(a)
    if not torch.equal(kept, ~torch.isnan(b)):
        return False
    return torch.equal(a[kept], b[kept]) and torch.equal(a[kept].signbit(), b[kept].signbit())


def _listed(value: object) -> list[torch.Tensor]:
    return list(value) if isinstance(value, tuple) else [value]  # type: ignore[list-item]


def _forbidden(*_: object) -> None:
    raise AssertionError("the reference was run in place of the kernel")
