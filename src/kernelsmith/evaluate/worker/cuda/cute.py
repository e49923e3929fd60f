"""Which kernels CuTe DSL compiled and loaded in this process. It never ran on a GPU: untested.

The package keeps each compiled function in a library of the CUDA runtime, whose module the
candidate's kernels are told by. Like all that this process says, it can convict, never acquit.
"""

from importlib import import_module
from typing import Any

from kernelsmith.evaluate.worker.cuda import driver

_EXECUTOR = "cutlass.cutlass_dsl.cuda_jit_executor"
_libraries: list[int] = []


def watch() -> None:
    """Take note of each library from the moment it is loaded onto the device.

    Raises:
        ImportError: The package is not here, or of a version that loads otherwise.
    """
    compiled: Any = getattr(import_module(_EXECUTOR), "CudaDialectJitCompiledFunction", None)
    loading = getattr(compiled, "_load_cuda_library", None)
    if loading is None:
        raise ImportError(
            "this version of nvidia-cutlass-dsl loads kernels in a way that the judge does not "
            "know, so it could not tell whose they are; 4.8.1 is known",
            name=_EXECUTOR,
        )
    if getattr(loading, "watched", False):
        return

    def noted(self: Any, *arguments: Any, **keywords: Any) -> Any:
        found = loading(self, *arguments, **keywords)
        _libraries.extend(int(each) for each in found)
        return found

    noted.watched = True  # type: ignore[attr-defined]
    compiled._load_cuda_library = noted


def libraries() -> tuple[int, ...]:
    """Handles of all that was loaded so far."""
    return tuple(_libraries)


def modules() -> frozenset[int]:
    """The driver's handles of the modules in them."""
    return frozenset(driver.module_of_library(each) for each in _libraries)
