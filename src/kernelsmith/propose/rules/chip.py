"""What the rules count on in a GPU: its data sheet by name, an H200 where nobody says which."""

from dataclasses import dataclass

from kernelsmith.domain.device import Device
from kernelsmith.propose.data_sheets import H200 as OURS
from kernelsmith.propose.data_sheets import sheet_of
from kernelsmith.propose.hardware import is_hopper_or_later


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
    sheet = sheet_of(device.name)
    if sheet is None:
        return Chip(descriptors=is_hopper_or_later(device))
    processors = sheet.processors or H200.processors
    share = processors / H200.processors
    return Chip(
        processors=processors, shared_bytes=sheet.block_kb << 10,
        descriptors=is_hopper_or_later(device), memory=sheet.memory_tb_s / OURS.memory_tb_s,
        plain=sheet.float32_tflops / OURS.float32_tflops or share,
        tensor=sheet.bfloat16_tflops / OURS.bfloat16_tflops or share,
    )  # fmt: skip
