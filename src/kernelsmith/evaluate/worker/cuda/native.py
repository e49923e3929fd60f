"""Which kernels came with code that the judge built for this candidate: cubins and libraries.

Told by the module that a function was loaded with, not by its name: a kernel that is called like a
library's lies in another module. Like all that this process says, it can convict, never acquit;
the judge holds the names against those that it compiled.
"""

import ctypes

from kernelsmith.evaluate.nvcc.report import demangled
from kernelsmith.evaluate.worker.cuda import cute, driver
from kernelsmith.kernels import building
from kernelsmith.kernels.launching import Module
from kernelsmith.kernels.library import Library

_modules: list[Module] = []
_libraries: list[ctypes.CDLL] = []


def listen() -> None:
    """Take note of whatever is loaded from now on."""
    building.on_load = _noted


def _noted(loaded: object) -> None:
    if isinstance(loaded, Module):
        _modules.append(loaded)
    elif isinstance(loaded, Library):
        _libraries.append(loaded._library)
    elif isinstance(loaded, ctypes.CDLL):
        _libraries.append(loaded)


def modules() -> frozenset[int]:
    """The driver's handles of all modules that came with the candidate's own code."""
    found = {module.handle for module in _modules} | cute.modules()
    for _, function in _functions():
        found.add(driver.module_of(function))
    return frozenset(found - {0})


def names() -> frozenset[str]:
    """What a profiler may call their kernels."""
    known = {name for name, _ in _functions()}
    known |= {name for module in _modules for name in module._signatures}
    return frozenset(known | {demangled(name) for name in known})


def _functions() -> list[tuple[str, int]]:
    """Name and handle of each kernel in the libraries; the hook in them knows."""
    found = []
    for library in _libraries:
        ask = getattr(library, "kernelsmith_kernel", None)
        if ask is None:
            continue
        index = 0
        while True:
            name, function = ctypes.c_char_p(), ctypes.c_void_p()
            status = ask(index, ctypes.byref(name), ctypes.byref(function))
            if status == -1:
                break
            if status == 0 and function.value:
                found.append(((name.value or b"").decode(errors="replace"), int(function.value)))
            index += 1
    return found
