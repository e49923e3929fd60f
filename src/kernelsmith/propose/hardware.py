"""What is known of a device beyond its name, in lines for a prompt."""

import re

from kernelsmith.domain.device import Device
from kernelsmith.propose.data_sheets import words_of

_HOPPER = re.compile(r"\b(G?H(100|200|20|800)|G?B[12]00|GH200)\b")


def facts(device: Device | None) -> tuple[str, ...]:
    """One fact a line, the name first; nothing is said that the name does not settle."""
    if device is None:
        return ()
    lines = [f"device: {device}"]
    # Of a device that stands in for another, what counts is the other one.
    sheet = words_of(device.name.rpartition(" standing in for ")[2])
    if sheet:
        lines.append(f"data sheet: {sheet}")
    if device.versions:
        lines.append("versions: " + ", ".join(f"{name} {said}" for name, said in device.versions))
    return tuple(lines)


def is_hopper_or_later(device: Device | None) -> bool:
    """Whether it copies tiles asynchronously by descriptor (TMA)."""
    return device is not None and _HOPPER.search(device.name) is not None
