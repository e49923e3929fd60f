"""What the compiler says of each kernel: registers, spills, shared memory, and the precision used.

This is the judge's own knowledge: it was present when the kernels were built.
"""

import ctypes
import re
from functools import lru_cache

from kernelsmith.domain.evaluation import Kernel
from kernelsmith.evaluate.guards.opcodes import precisions

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+) bytes smem")
_PTX_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(")
_NOISE = re.compile(r"^(ptxas\b.*|\s+\d+ bytes stack frame.*|\s*)$")


def built_kernels(log: str, ptx: str = "") -> tuple[Kernel, ...]:
    """Read ``ptxas -v``; kernels are named as the device names them."""
    found, name, stack = [], None, 0
    computes = _precisions(ptx)
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            name, stack = match[1], 0
        elif name is not None and (match := _SPILLS.search(line)):
            stack = int(match[1])
        elif name is not None and (match := _USED.search(line)):
            shared = _SHARED.search(match[2])
            found.append(
                Kernel(
                    name=name, own=True, launches=1, registers=int(match[1]), spills=stack,
                    shared_bytes=int(shared[1]) if shared else 0,
                    precision=computes.get(name, ""),
                )
            )  # fmt: skip
            name = None
    return tuple(found)


def warnings(log: str) -> str:
    """What else the compiler said."""
    return "\n".join(line for line in log.splitlines() if not _NOISE.match(line)).strip()


def table(kernels: tuple[Kernel, ...]) -> str:
    """One line a kernel, for whoever reads the output of a failed candidate."""
    return "\n".join(
        demangled(each.name)
        if each.registers is None
        else f"{demangled(each.name)}: {each.registers} registers, {each.spills} bytes of stack, "
        f"{each.shared_bytes} bytes of static shared memory"
        for each in kernels
    )


def _precisions(ptx: str) -> dict[str, str]:
    """By kernel; functions that are called and not inlined count for all of them."""
    if not ptx:
        return {}
    marks = list(_PTX_ENTRY.finditer(ptx))
    shared = ptx[: marks[0].start()] if marks else ""
    ends = [mark.start() for mark in marks[1:]] + [len(ptx)]
    return {
        mark[1]: ", ".join(sorted(precisions(shared + ptx[mark.start() : end])))
        for mark, end in zip(marks, ends, strict=True)
    }


@lru_cache(maxsize=4096)
def demangled(name: str) -> str:
    """A kernel's name as its author wrote it."""
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return name
    library.__cxa_demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    found = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not found:
        return name
    text = ctypes.string_at(found).decode(errors="replace")
    ctypes.CDLL(None).free(ctypes.c_void_p(found))
    return text
