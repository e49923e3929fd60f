"""What the rules count on in a GPU: its data sheet by name, an H200 where nobody says which."""

import re
from dataclasses import dataclass

from kernelsmith.domain.device import Device
from kernelsmith.propose.hardware import facts, is_hopper_or_later

_BYTES, _PLAIN, _TENSOR = 4.8, 67.0, 989.0
"""An H200 by its data sheet: TB/s, and TFLOP/s of float32 and of bfloat16 on tensor cores."""
_KEPT_BACK = {64: 0, 96: 0}
"""KB of a multiprocessor's shared memory that no program gets; 1 but on Volta and Turing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One GPU; speeds relative to an H200's, on which all that the rules expect was measured."""

    processors: int = 132
    shared_bytes: int = 232_448
    """Shared memory that one program can have."""
    descriptors: bool = True
    """Whether it copies tiles by descriptor (TMA)."""
    memory: float = 1.0
    plain: float = 1.0
    """Of float32 without tensor cores."""
    tensor: float = 1.0
    """Of tensor cores."""


H200 = Chip()
"""The default: nothing is known."""


def chip_of(device: Device | None) -> Chip:
    """What the device's name settles; the rest is as on an H200, speeds by its multiprocessors."""
    if device is None or device.kind != "cuda":
        return H200
    sheet = " ".join(each for each in facts(device) if each.startswith("data sheet"))
    processors = int(_number(r"([\d.]+) SMs", sheet) or H200.processors)
    shared = int(_number(r"([\d.]+) KB shared", sheet) or 228)
    share = processors / H200.processors
    return Chip(
        processors=processors, shared_bytes=(shared - _KEPT_BACK.get(shared, 1)) << 10,
        descriptors=is_hopper_or_later(device), memory=_memory(sheet),
        plain=_relative(r"([\d.]+) TFLOP/s float32", sheet, _PLAIN) or share,
        tensor=_relative(r"([\d.]+) TFLOP/s bfloat16", sheet, _TENSOR) or share,
    )  # fmt: skip


def _memory(sheet: str) -> float:
    small = _number(r"([\d.]+) GB/s", sheet)
    if small is not None:
        return small / 1000 / _BYTES
    return _relative(r"([\d.]+) TB/s", sheet, _BYTES) or 1.0


def _relative(pattern: str, sheet: str, of: float) -> float | None:
    found = _number(pattern, sheet)
    return None if found is None else found / of


def _number(pattern: str, sheet: str) -> float | None:
    found = re.search(pattern, sheet)
    return None if found is None else float(found[1])
