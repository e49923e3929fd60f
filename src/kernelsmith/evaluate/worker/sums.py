"""Sums along an axis in Triton's interpreter: by halves, as on a GPU.

Numpy adds one number after the other along all but the last axis, with errors that grow with their
count; and a sum of bfloat16 is rounded on a GPU whenever two are put together.
"""

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from kernelsmith.evaluate.worker.bfloat16 import narrowed, widened


def by_halves(
    values: "np.ndarray[Any, Any]", axis: int | None, *, keep: bool, bfloat16: bool = False
) -> "np.ndarray[Any, Any]":
    """The sum along an axis, or of all; numbers of bfloat16 come and go as their bits."""
    shape, along = values.shape, 0 if axis is None else axis % values.ndim
    left = values.reshape(-1) if axis is None else np.moveaxis(values, along, 0)
    while len(left) > 1:
        half = len(left) // 2  # Triton's sizes are powers of two
        first, second = left[:half], left[half:]
        left = narrowed(widened(first) + widened(second)) if bfloat16 else first + second
    found = left[0]
    if not keep:
        return np.asarray(found)
    kept = [1] * len(shape) if axis is None else [*shape[:along], 1, *shape[along + 1 :]]
    return np.asarray(found).reshape(kept)


def install() -> None:
    """Let this process's interpreter add so."""
    scans = interpreter.ReduceOps
    own = scans.sum

    def add(self: Any, given: Any) -> Any:
        kind = given.dtype.scalar
        if not kind.is_floating() or kind.is_fp8():
            return own(self, given)
        found = by_halves(
            given.handle.data, self.axis, keep=self.keep_dims, bfloat16=kind == tl.bfloat16
        )
        return self.to_tensor(found, given.dtype)

    scans.sum = add
