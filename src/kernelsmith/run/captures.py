"""Where a run keeps what torch's compiler told the rules, and whose turn it is on the GPU."""

from dataclasses import dataclass
from pathlib import Path

from kernelsmith.errors import BackendUnavailable
from kernelsmith.evaluate.backend import load_backend
from kernelsmith.evaluate.builder import default_cache
from kernelsmith.evaluate.cuda.backend import CudaBackend
from kernelsmith.evaluate.exclusive import DeviceLock
from kernelsmith.propose.rules.compiler.shelf import Shelf
from kernelsmith.run.config import RunConfig

CAPTURES = "captures"
"""The folder's name, in a run's folder and in the user's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capturing:
    """What the rules need to know of the machine before they ask a compiler."""

    shelf: Shelf | None = None
    lock: Path | None = None
    """The judge's own lock of this machine's GPU."""


def capturing(config: RunConfig, folder: Path) -> Capturing:
    """How the run in ``folder`` asks torch's compiler.

    What it says is kept with the run, which is then gone on with without a compiler, and in the
    user's cache for the next run on the task.
    """
    name, lock = _gpu(config.backend)
    if not config.keep_captures:
        return Capturing(lock=lock)
    shelf = Shelf(own=folder / CAPTURES, shared=default_cache() / CAPTURES, device=name)
    return Capturing(shelf=shelf, lock=lock)


def _gpu(backend: str) -> tuple[str, Path | None]:
    """Name and lock of the GPU that a backend works with here; nothing where it has none."""
    if backend != "triton":
        return "", None
    try:
        opened = load_backend(backend)
    except BackendUnavailable:
        return "", None
    try:
        if not isinstance(opened, CudaBackend):
            return "", None  # Triton's interpreter
        return opened.gpu.name, DeviceLock(opened.gpu.uuid).path
    except BackendUnavailable:
        return "", None
    finally:
        opened.close()
