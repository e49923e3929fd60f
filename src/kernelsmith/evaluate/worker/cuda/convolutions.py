"""Convolutions in float64 as sums of matrix products, one for each point of the window.

Right answers are found in float64, and for that precision a device's library has convolutions of no
great speed (most of a judgement's seconds went into them on an H200), while its products run on
tensor cores. The sums have other orders than the library's, which in float64 is nobody's concern.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_LEAST = 1 << 28
"""Products of numbers from which on it is worth the launches."""
_CHUNK = 1 << 25
"""Elements of a temporary tensor: a quarter of a gigabyte."""


class ByProducts(TorchDispatchMode):
    """Inside of it, large float64 convolutions are computed from products."""

    def __init__(self, least: int = _LEAST) -> None:
        super().__init__()
        self._least = least

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Everything else is left to torch."""
        del types
        if func is torch.ops.aten.convolution.default and not kwargs:
            x, w = args[0], args[1]
            if x.dtype is torch.float64 and w.dtype is torch.float64 and x.dim() == w.dim():
                counted = w.numel() * x.shape[0] * _points(args)
                if counted >= self._least:
                    return convolution(*args)
        return func(*args, **(kwargs or {}))


def _points(args: tuple[Any, ...]) -> int:
    """Places of the window: those of the output, or of the input where that is spread out."""
    x, w, _, stride, padding, dilation, transposed = args[:7]
    if transposed:
        return math.prod(x.shape[2:])
    return math.prod(_sizes(x.shape[2:], w.shape[2:], stride, padding, dilation))


def _sizes(
    size: Sequence[int], window: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int],
) -> list[int]:  # fmt: skip
    return [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(size, window, stride, padding, dilation, strict=True)
    ]


def convolution(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool,
    output_padding: Sequence[int], groups: int,
) -> torch.Tensor:  # fmt: skip
    """What ``torch.convolution`` computes, with its arguments."""
    turned = _transposed if transposed else _plain
    stride, padding, dilation, output_padding = (
        list(each) * (x.dim() - 2 if len(each) == 1 else 1)
        for each in (stride, padding, dilation, output_padding)
    )
    shape = _shape(x, w, stride, padding, dilation, output_padding, groups, transposed)
    out = x.new_empty(shape)
    largest = max(math.prod(shape[1:]), math.prod(x.shape[1:]), 1)
    step = max(1, _CHUNK // largest)
    for first in range(0, x.shape[0], step):
        part = turned(x[first : first + step], w, stride, padding, dilation, groups, shape[2:])
        out[first : first + step] = part
    if bias is not None:
        out += bias.view(1, -1, *[1] * (x.dim() - 2))
    return out


def _shape(
    x: torch.Tensor, w: torch.Tensor, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], output_padding: Sequence[int], groups: int, transposed: bool,
) -> list[int]:  # fmt: skip
    if not transposed:
        sizes = _sizes(x.shape[2:], w.shape[2:], stride, padding, dilation)
        return [x.shape[0], w.shape[0], *sizes]
    sizes = [
        (n - 1) * s - 2 * p + d * (k - 1) + o + 1
        for n, k, s, p, d, o in zip(
            x.shape[2:], w.shape[2:], stride, padding, dilation, output_padding, strict=True
        )
    ]
    return [x.shape[0], w.shape[1] * groups, *sizes]


def _plain(
    x: torch.Tensor, w: torch.Tensor, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], groups: int, sizes: Sequence[int],
) -> torch.Tensor:  # fmt: skip
    around = [each for p in reversed(padding) for each in (p, p)]
    padded = torch.nn.functional.pad(x, around) if any(padding) else x
    n, points = x.shape[0], math.prod(sizes)
    out = x.new_zeros(n, groups, w.shape[0] // groups, points)
    for place, weights in _taps(w, groups):
        seen = [slice(i * d, i * d + s * (m - 1) + 1, s)
                for i, d, s, m in zip(place, dilation, stride, sizes, strict=True)]  # fmt: skip
        given = padded[(slice(None), slice(None), *seen)].reshape(n, groups, -1, points)
        _add_product(out, weights, given)
    return out.view(n, w.shape[0], *sizes)


def _transposed(
    x: torch.Tensor, w: torch.Tensor, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], groups: int, sizes: Sequence[int],
) -> torch.Tensor:  # fmt: skip
    n, points = x.shape[0], math.prod(x.shape[2:])
    reach = [
        max((m - 1) * s + d * (k - 1) + 1, p + size)
        for m, s, d, k, p, size in zip(
            x.shape[2:], stride, dilation, w.shape[2:], padding, sizes, strict=True
        )
    ]
    channels = w.shape[1] * groups
    whole = x.new_zeros(n, channels, *reach)
    given = x.reshape(n, groups, -1, points)
    for place, weights in _taps(w, groups, turned=True):
        made = x.new_zeros(n, groups, w.shape[1], points)
        _add_product(made, weights, given)
        into = [
            slice(i * d, i * d + s * (m - 1) + 1, s)
            for i, d, s, m in zip(place, dilation, stride, x.shape[2:], strict=True)
        ]
        whole[(slice(None), slice(None), *into)] += made.view(n, channels, *x.shape[2:])
    kept = [slice(p, p + size) for p, size in zip(padding, sizes, strict=True)]
    return whole[(slice(None), slice(None), *kept)]


def _taps(
    w: torch.Tensor, groups: int, *, turned: bool = False
) -> Iterator[tuple[tuple[int, ...], torch.Tensor]]:
    """Every point of the window, with its weights by group, outputs and inputs."""
    for place in itertools.product(*map(range, w.shape[2:])):
        at = w[(slice(None), slice(None), *place)]
        if turned:
            yield place, at.reshape(groups, -1, at.shape[1]).transpose(1, 2)
        else:
            yield place, at.reshape(groups, -1, at.shape[1])


def _add_product(into: torch.Tensor, weights: torch.Tensor, given: torch.Tensor) -> None:
    """Add weights (group, out, in) times what is given (batch, group, in, points)."""
    n, groups = given.shape[:2]
    if given.shape[2] == 1:  # one number each: no product of matrices
        into.addcmul_(given, weights.unsqueeze(0))
        return
    each = weights.unsqueeze(0).expand(n, -1, -1, -1).reshape(n * groups, *weights.shape[1:])
    flat = into.view(n * groups, *into.shape[2:])
    torch.baddbmm(flat, each, given.reshape(n * groups, *given.shape[2:]), out=flat)
