"""Products of float32 as Triton makes them for Hopper, for its interpreter, which rounds nothing.

Read from what Triton 3.7 compiles: ``tf32x3`` splits a factor into two numbers of TF32, ``bf16x6``
into three of bfloat16. All products but the last go first, smallest first; where they are NaN they
are dropped (an infinity less itself is), the last one is added, and that to the sum so far.
"""

from dataclasses import replace

import numpy as np

PRECISIONS = ("tf32", "tf32x3", "bf16x6", "ieee")


def install() -> None:
    """Make this process's interpreter multiply so."""
    from triton.runtime import interpreter

    builder = interpreter.interpreter_builder
    builder.options = replace(builder.options, allowed_dot_input_precisions=PRECISIONS)
    plain = builder.create_dot

    def create_dot(a, b, d, input_precision, imprecise):  # type: ignore[no-untyped-def]
        name = str(input_precision).rpartition(".")[2].lower()
        if a.data.dtype != np.float32 or name == "ieee":
            return plain(a, b, d, input_precision, imprecise)
        with np.errstate(all="ignore"):
            made = product(a.data, b.data, name) + d.data
        return interpreter.TensorHandle(made, d.dtype.scalar)

    builder.create_dot = create_dot


def product(a: np.ndarray, b: np.ndarray, precision: str) -> np.ndarray:
    """One product of tiles."""
    if precision == "tf32":
        return _cut(a) @ _cut(b)
    split, pairs = _SPLITS[precision]
    left, right = split(a), split(b)
    small = np.zeros((), np.float32)
    for i, j in pairs:
        small = small + left[i] @ right[j]
    small = np.where(np.isnan(small), np.float32(0), small)
    return small + left[0] @ right[0]


def in_tf32(x: np.ndarray) -> list[np.ndarray]:
    """The nearest number of TF32, and what is left, as far as tensor cores read it."""
    bits = x.view(np.uint32) + np.uint32(0x1000)
    high = np.where(np.isfinite(x), _cut(bits.view(np.float32)), x)
    return [high, _cut(x - high)]


def in_bf16(x: np.ndarray) -> list[np.ndarray]:
    """Three numbers of bfloat16, each the nearest to what the ones before leave."""
    parts: list[np.ndarray] = []
    for _ in range(3):
        bits = x.view(np.uint32)
        near = bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)
        part = (near & np.uint32(0xFFFF0000)).view(np.float32)
        parts.append(np.where(np.isfinite(x), part, x))
        x = x - parts[-1]
    return parts


def _cut(x: np.ndarray) -> np.ndarray:
    """Without the bits that tensor cores do not read; NaN stays NaN."""
    return np.where(np.isnan(x), x, (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32))


_SPLITS = {
    "tf32x3": (in_tf32, ((1, 0), (0, 1))),
    "bf16x6": (in_bf16, ((1, 1), (2, 0), (0, 2), (1, 0), (0, 1))),
}
