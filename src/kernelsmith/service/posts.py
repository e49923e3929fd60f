"""Which devices this machine has, and where workers stand."""

from collections.abc import Sequence

from kernelsmith.errors import BackendUnavailable, UsageError
from kernelsmith.evaluate.backend import known_backends
from kernelsmith.evaluate.backends.here import usual_backend
from kernelsmith.evaluate.backends.triton import has_gpu
from kernelsmith.evaluate.cuda.nvml import LIBRARY, Nvml
from kernelsmith.evaluate.hardware import Hardware, hardware_of
from kernelsmith.service.process import Post


def chosen_backends(asked: Sequence[str]) -> list[str]:
    """What was asked for; the GPU's where there is one and nothing was, else the processor's.

    Raises:
        UsageError: There is no such backend.
    """
    known = known_backends()
    for name in asked:
        if name not in known:
            raise UsageError(
                f"no backend {name!r}; this installation knows {', '.join(sorted(known))}"
            )
    return list(dict.fromkeys(asked)) or [usual_backend()]


def posts_for(backends: Sequence[str], judges: int, *, library: str = LIBRARY) -> list[Post]:
    """One post per device and judge: a GPU each for those on NVIDIA's, else this machine.

    Several backends on one GPU take turns there: whoever times owns it.

    Raises:
        BackendUnavailable: The driver does not answer.
    """
    posts = []
    for backend in backends:
        places: list[dict[str, str]] = [{}]
        if hardware_of(backend) is Hardware.NVIDIA and has_gpu():
            places = [{"CUDA_VISIBLE_DEVICES": uuid} for uuid in _gpus(library)]
        posts += [(backend, place) for place in places for _ in range(judges)]
    return [
        Post(backend=backend, number=number, environment=place)
        for number, (backend, place) in enumerate(posts)
    ]


def _gpus(library: str) -> list[str]:
    nvml = Nvml(library)
    try:
        found = [gpu.uuid for gpu in nvml.devices()]
    finally:
        nvml.close()
    if not found:
        raise BackendUnavailable("the driver answers, and names no GPU")
    return found
