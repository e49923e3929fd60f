"""Numbers of bfloat16 in Triton's interpreter, which takes their bits for whole numbers.

A GPU calculates in float32 and rounds to the nearest; so does the interpreter from here on. What is
put together along an axis is rounded once, but for sums (``sums``).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime import interpreter

_BITS = (np.where, np.bitwise_and, np.bitwise_or, np.bitwise_xor)
"""Operators that hand bits on as they are."""
_CALCULATES = (
    "binary_op", "unary_op", "ternary_op", "create_fma", "create_erf", "create_rsqrt", "create_dot",
)  # fmt: skip


def widened(bits: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """As float32, which holds all of them."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrowed(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """The nearest numbers of bfloat16, those in the middle to the even one, by their bits."""
    wide = np.ascontiguousarray(values, dtype=np.float32).reshape(np.shape(values))
    bits = wide.view(np.uint32)
    near = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(wide), 0x7FC0, near).astype(np.uint16)


def _is_one(value: Any) -> bool:
    return isinstance(value, interpreter.TensorHandle) and value.dtype.scalar == tl.bfloat16


def _wide(value: Any) -> Any:
    if not _is_one(value) or value.data.dtype != np.uint16:
        return value
    return interpreter.TensorHandle(widened(value.data), tl.float32)


def _narrow(found: Any) -> Any:
    """A result in place of one of float32; answers to a question stay what they are."""
    if found.data.dtype == np.bool_:
        return interpreter.TensorHandle(found.data, tl.int1)
    return interpreter.TensorHandle(narrowed(found.data), tl.bfloat16)


def _calculating(own: Callable[..., Any]) -> Callable[..., Any]:
    """The builder's own method on wide numbers; the result is as narrow as the last operand."""

    def call(self: Any, *given: Any) -> Any:
        if not any(map(_is_one, given)) or any(each in _BITS for each in given if callable(each)):
            return own(self, *given)
        handles = [each for each in given if isinstance(each, interpreter.TensorHandle)]
        found = own(self, *map(_wide, given))
        return _narrow(found) if _is_one(handles[-1]) else found

    return call


def _casting(own: Callable[..., Any]) -> Callable[..., Any]:
    """Casts from and to bfloat16 by way of float32; the interpreter's own are right for others."""

    def call(self: Any, source: Any, kind: Any, *more: Any) -> Any:
        if _is_one(source):
            source = _wide(source)
            if kind.scalar == tl.float32:
                return source
        if (
            kind.scalar != tl.bfloat16
            or source.dtype.scalar.is_fp8()
            or ir.ROUNDING_MODE.RTZ in more
        ):
            return own(self, source, kind, *more)
        return interpreter.TensorHandle(narrowed(source.data.astype(np.float32)), tl.bfloat16)

    return call


def _retyped(value: Any, found: Any, kind: Any) -> Any:
    """A tensor of another type, with the shape of ``value``."""
    shape = value.type.with_element_ty(kind) if value.type.is_block() else kind
    return tl.tensor(found, shape)


def _along_an_axis(own: Callable[..., Any]) -> Callable[..., Any]:
    """Scans and reductions of wide numbers, rounded once; sums know what they add."""

    def call(self: Any, given: Any) -> Any:
        sums = isinstance(self, interpreter.ReduceOps) and (
            self.combine_fn == tl.standard._sum_combine
        )
        if sums or not isinstance(given, tuple) or not any(_is_one(x.handle) for x in given):
            return own(self, given)
        narrow = [_is_one(each.handle) for each in given]
        wide = (_retyped(x, _wide(x.handle), tl.float32) if one else x
                for x, one in zip(given, narrow, strict=True))  # fmt: skip
        return tuple(
            _retyped(x, _narrow(x.handle), tl.bfloat16) if one else x
            for x, one in zip(own(self, tuple(wide)), narrow, strict=False)
        )

    return call


def _constant(self: Any, value: float) -> Any:
    return interpreter.TensorHandle(narrowed(np.array([value], np.float32)), tl.bfloat16)


def install() -> None:
    """Let this process's interpreter calculate so."""
    builder = interpreter.InterpreterBuilder
    builder.get_bf16 = _constant
    scans = interpreter.ReduceScanOpInterface
    scans.apply = _along_an_axis(scans.apply)
    for name in _CALCULATES:
        setattr(builder, name, _calculating(getattr(builder, name)))
    for name in ("cast_impl", "create_fp_to_fp"):
        setattr(builder, name, _casting(getattr(builder, name)))
