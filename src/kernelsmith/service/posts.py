"""Which devices this machine has, and where workers stand."""

from collections.abc import Sequence
from dataclasses import replace

from kernelsmith.errors import BackendUnavailable, UsageError
from kernelsmith.evaluate.backend import known_backends
from kernelsmith.evaluate.backends.here import usual_backend
from kernelsmith.evaluate.backends.triton import has_gpu
from kernelsmith.evaluate.cores import groups
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


def posts_for(
    backends: Sequence[str], judges: int, *, cores: int | None = None, library: str = LIBRARY
) -> list[Post]:
    """One post per device and judge: a GPU each for those on NVIDIA's, else this machine.

    Several backends on one GPU take turns there: whoever times owns it. With ``cores``, each so
    many of a processor's are a device of their own.

    Raises:
        BackendUnavailable: The driver does not answer.
        UsageError: There are fewer cores.
    """
    posts: list[Post] = []
    for backend in backends:
        places = [Post(backend=backend, number=0)]
        if hardware_of(backend) is Hardware.NVIDIA and has_gpu():
            seen = [{"CUDA_VISIBLE_DEVICES": uuid} for uuid in _gpus(library)]
            places = [replace(places[0], environment=each) for each in seen]
        elif cores is not None and backend == "cpu":
            places = [replace(places[0], cores=each) for each in groups(cores)]
        posts += [place for place in places for _ in range(judges)]
    return [replace(post, number=number) for number, post in enumerate(posts)]


def _gpus(library: str) -> list[str]:
    nvml = Nvml(library)
    try:
        found = [gpu.uuid for gpu in nvml.devices()]
    finally:
        nvml.close()
    if not found:
        raise BackendUnavailable("the driver answers, and names no GPU")
    return found
