"""Which hardware each backend runs candidates on: the one place that says so."""

from enum import StrEnum


class Hardware(StrEnum):
    """A family of devices."""

    PROCESSOR = "processor"
    NVIDIA = "NVIDIA GPU"
    METAX = "MetaX GPU"
    OTHER = "other"
    """Whatever a backend of somebody else's runs on."""


_HARDWARE = {
    "null": Hardware.PROCESSOR,
    "cpu": Hardware.PROCESSOR,
    "triton": Hardware.NVIDIA,
    "cuda": Hardware.NVIDIA,
    "maca": Hardware.METAX,
    "maca-emulated": Hardware.NVIDIA,
}


def hardware_of(backend: str) -> Hardware:
    """What a backend is for; ``triton`` has an interpreter besides."""
    return _HARDWARE.get(backend, Hardware.OTHER)


def uses_gpu(backend: str) -> bool:
    """Whether it is one of ours for GPUs, whether or not a GPU is here."""
    return hardware_of(backend) in (Hardware.NVIDIA, Hardware.METAX)
