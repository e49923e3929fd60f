"""How much of a device one kernel can keep busy, from its data sheet and the compiler's report."""

from dataclasses import dataclass

from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Kernel
from kernelsmith.propose.data_sheets import sheet_of

_WARP = 32
_REGISTERS = 65536
_BLOCKS = 32
_THREADS = {75: 1024, 86: 1536, 89: 1536}
"""Threads that a multiprocessor holds, where it is not 2048, by architecture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one multiprocessor holds, and how many there are."""

    processors: int
    shared_bytes: int
    threads: int = 2048
    registers: int = _REGISTERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """How many of a kernel's blocks fit on one multiprocessor at a time."""

    blocks: int
    share: float
    """Threads in flight, of those that it could hold."""
    by: str
    """What runs out first: ``registers``, ``shared memory`` or ``threads``."""


def limits_of(device: Device | None) -> Limits | None:
    """The limits that the device's name settles; nothing is guessed."""
    if device is None or device.kind != "cuda":
        return None
    sheet = sheet_of(device.name)
    if sheet is None or not sheet.processors:
        return None
    threads = _THREADS.get(sheet.architecture, 2048)
    return Limits(
        processors=sheet.processors, shared_bytes=sheet.shared_kb << 10, threads=threads
    )  # fmt: skip


def occupancy(kernel: Kernel, limits: Limits) -> Occupancy | None:
    """What the compiler's report allows; none where it says too little."""
    threads = 1
    for extent in kernel.block:
        threads *= extent
    if not kernel.block or not kernel.registers:
        return None
    warps = -(-threads // _WARP)
    per_warp = -(-kernel.registers * _WARP // 256) * 256  # handed out in pieces of 256
    fits = {
        "threads": min(_BLOCKS, limits.threads // (warps * _WARP)),
        "registers": limits.registers // (per_warp * warps),
    }
    if kernel.shared_bytes:
        fits["shared memory"] = limits.shared_bytes // kernel.shared_bytes
    by, blocks = min(fits.items(), key=lambda each: each[1])
    return Occupancy(blocks=blocks, share=min(1.0, blocks * threads / limits.threads), by=by)


def programs(kernel: Kernel) -> int:
    """Programs of one launch; 0 where the report does not say."""
    count = 1 if kernel.grid else 0
    for extent in kernel.grid:
        count *= extent
    return count
