"""Tensors as the judge sees them: numpy arrays that remember a torch dtype.

The judge never imports torch. bfloat16, which numpy lacks, is carried as uint16 bits.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
Float64 = npt.NDArray[np.float64]

CARRIERS: dict[str, np.dtype[np.generic]] = {
    "float64": np.dtype(np.float64),
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(np.uint16),
    "int64": np.dtype(np.int64),
    "int32": np.dtype(np.int32),
    "int16": np.dtype(np.int16),
    "int8": np.dtype(np.int8),
    "uint8": np.dtype(np.uint8),
    "bool": np.dtype(np.bool_),
}

FLOATS = ("float64", "float32", "float16", "bfloat16")

EPSILON = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}
"""Distance from 1 to the next number: one unit in the last place, relative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Where a tensor's values lie relative to its address."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements, as torch counts them."""

    @property
    def count(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def span_bytes(self) -> int:
        """Bytes from the first element to the end of the last one."""
        if self.count == 0:
            return 0
        last = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return (last + 1) * CARRIERS[self.dtype].itemsize

    @property
    def is_float(self) -> bool:
        """Whether the dtype is a floating one."""
        return self.dtype in FLOATS

    @property
    def is_dense(self) -> bool:
        """Whether the elements fill their span without gap or overlap, in any order."""
        expected = 1
        for stride, size in sorted(
            (s, n) for n, s in zip(self.shape, self.strides, strict=True) if n != 1
        ):
            if stride != expected:
                return self.count == 0
            expected *= size
        return True


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """Values with their torch dtype. ``values`` is never written to once it is here."""

    dtype: str
    values: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """As numpy and torch agree on it."""
        return self.values.shape

    @property
    def is_float(self) -> bool:
        """Whether the dtype is a floating one."""
        return self.dtype in FLOATS

    def float64(self) -> Float64:
        """Return the values exactly, as float64."""
        return widen(self.values, self.dtype)


def widen(values: Array, dtype: str) -> Float64:
    """Turn carried values into float64 without rounding (integers above 2**53 aside)."""
    if dtype == "bfloat16":
        bits = values.astype(np.uint32) << np.uint32(16)
        return bits.view(np.float32).astype(np.float64)
    return values.astype(np.float64)


def from_bytes(raw: bytearray | memoryview, spec: Spec) -> Tensor:
    """Interpret ``span_bytes`` bytes, copied from an address, as the tensor that ``spec`` says."""
    carrier = CARRIERS[spec.dtype]
    if spec.count == 0:
        return Tensor(spec.dtype, np.empty(spec.shape, carrier))
    flat = np.frombuffer(raw, dtype=carrier)
    steps = tuple(stride * carrier.itemsize for stride in spec.strides)
    return Tensor(spec.dtype, np.lib.stride_tricks.as_strided(flat, spec.shape, steps))
