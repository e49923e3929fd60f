"""Which devices this machine has, and where workers stand."""

from collections.abc import Sequence

from kernelsmith.errors import BackendUnavailable, UsageError
from kernelsmith.evaluate.backend import known_backends
from kernelsmith.evaluate.backends.triton import has_gpu
from kernelsmith.evaluate.cuda.nvml import Nvml
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
    return list(dict.fromkeys(asked)) or ["triton" if has_gpu() else "cpu"]


def posts_for(backends: Sequence[str], judges: int) -> list[Post]:
    """One post per device and judge: a GPU each for ``triton``, this machine's cores for others.

    Raises:
        BackendUnavailable: The driver does not answer.
    """
    posts = []
    for backend in backends:
        places: list[dict[str, str]] = [{}]
        if backend == "triton" and has_gpu():
            places = [{"CUDA_VISIBLE_DEVICES": uuid} for uuid in _gpus()]
        posts += [(backend, place) for place in places for _ in range(judges)]
    return [
        Post(backend=backend, number=number, environment=place)
        for number, (backend, place) in enumerate(posts)
    ]


def _gpus() -> list[str]:
    nvml = Nvml()
    try:
        found = [gpu.uuid for gpu in nvml.devices()]
    finally:
        nvml.close()
    if not found:
        raise BackendUnavailable("the driver answers, and names no GPU")
    return found
