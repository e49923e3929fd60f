"""What torch's compiler asks about a GPU, for one that is not here: its data sheet by name."""

from dataclasses import dataclass

from kernelsmith.domain.device import Device
from kernelsmith.propose.data_sheets import sheet_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the compiler's text depends on."""

    name: str
    architecture: int
    """As in ``sm_90``."""
    processors: int
    shared_bytes: int
    """Shared memory that one program can have."""
    l2_bytes: int


def facts_of(device: Device | None) -> Facts | None:
    """What its name settles; an H200's where none is named, as everywhere in the rules.

    None where the name is not enough to write for it.
    """
    name = device.name if device is not None and device.kind == "cuda" else "NVIDIA H200"
    sheet = sheet_of(name)
    if sheet is None or not (sheet.architecture and sheet.processors):
        return None
    return Facts(
        name=name, architecture=sheet.architecture, processors=sheet.processors,
        shared_bytes=sheet.block_kb << 10, l2_bytes=sheet.l2_mb << 20,
    )  # fmt: skip
