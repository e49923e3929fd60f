"""What the processor says about itself, and what it cannot do all the same."""

import os
import platform
from functools import cache
from pathlib import Path

_INFO = Path("/proc/cpuinfo")
_PALETTES = 0x1D
"""The leaf of CPUID that describes tiles (AMX)."""
_WITHOUT_TILES = "AVX512_CORE_FP16"
_ISA = "ONEDNN_MAX_CPU_ISA"


def processor() -> str:
    """The processor's name, as its maker gives it."""
    return field("model name") or platform.machine()


def instructions() -> str:
    """What ``-march=native`` means here."""
    return field("flags") or field("Features")


@cache
def field(name: str) -> str:
    """One field of the first processor; empty where it has none of that name."""
    return _field(name, _INFO.read_text())


def onednn_limit() -> dict[str, str]:
    """The environment in which torch's library for products does not die, where that takes one.

    Some hypervisors advertise AMX and end CPUID before the leaf that describes its tiles. oneDNN
    then multiplies bfloat16 with tiles of no size, and the process dies of SIGILL: any bfloat16
    product of PyTorch does. What the user chose goes before what is known of the processor.
    """
    chosen = os.environ.get(_ISA, "")
    if not chosen and hides_tiles(_INFO.read_text()):
        chosen = _WITHOUT_TILES
    return {_ISA: chosen} if chosen else {}


def hides_tiles(info: str) -> bool:
    """Whether AMX is advertised without a word on its tiles.

    Args:
        info: What ``/proc/cpuinfo`` holds.
    """
    level = _field("cpuid level", info)
    has_tiles = "amx_tile" in _field("flags", info).split()
    return has_tiles and level.isdecimal() and int(level) < _PALETTES


def _field(name: str, info: str) -> str:
    for line in info.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
