"""What backends meet on this machine, and which one to take where nobody says."""

from kernelsmith.evaluate.backends.triton import has_gpu
from kernelsmith.evaluate.hardware import Hardware, hardware_of
from kernelsmith.evaluate.maca.metax import device_name


def runs_on_gpu(backend: str) -> bool:
    """Whether its candidates meet a GPU here, as far as can be told without opening it."""
    hardware = hardware_of(backend)
    if hardware is Hardware.PROCESSOR:
        return False
    return device_name() != "" if hardware is Hardware.METAX else has_gpu()


def usual_backend() -> str:
    """What to judge with here where nobody says."""
    return "triton" if has_gpu() else "cpu"
