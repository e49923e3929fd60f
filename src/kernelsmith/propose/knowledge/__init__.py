"""Notes on how to write fast kernels, by backend: what goes into a prompt beside the task."""

from kernelsmith.domain.device import Device
from kernelsmith.propose.hardware import is_hopper_or_later
from kernelsmith.propose.knowledge import common, cpu, cuda, maca, triton
from kernelsmith.propose.knowledge.notes import Notes

_NOTES: dict[str, Notes] = {
    "cpu": cpu.NOTES,
    "triton": triton.NOTES,
    "cuda": cuda.NOTES,
    "maca": maca.NOTES,
    "maca-emulated": maca.NOTES,
}


def language(backend: str) -> str:
    """How a program for ``backend`` is written, with a small example; empty: nothing is known."""
    return _NOTES[backend].language if backend in _NOTES else ""


def tips(backend: str, device: Device | None = None) -> tuple[str, ...]:
    """What tends to make kernels fast, most useful first."""
    notes = _NOTES.get(backend)
    if notes is None:
        return common.TIPS
    hopper = notes.hopper if is_hopper_or_later(device) else ()
    return (*common.TIPS, *notes.tips, *hopper)
