"""NVRTC through its C interface: CUDA kernels in, machine code out, in a tenth of a second."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = "kernel.cu"
_TYPES = """\
#ifndef KERNELSMITH_TYPES
#define KERNELSMITH_TYPES
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef long int int64_t; typedef unsigned long int uint64_t;
typedef long int intptr_t; typedef unsigned long int uintptr_t;
#endif
"""
_FLOATS = """\
#ifndef FLT_MAX
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif
"""
_HEADERS = {
    "stdint.h": _TYPES, "cstdint": _TYPES, "stddef.h": "", "cstddef": "", "math.h": "",
    "cmath": "", "float.h": _FLOATS, "cfloat": _FLOATS, "limits.h": _FLOATS, "climits": _FLOATS,
    "cuda_runtime.h": "", "device_launch_parameters.h": "", "cuda.h": "",
}  # fmt: skip
"""What host sources include out of habit; NVRTC has all of it built in, or no use for it."""
PRELUDE = f'{_TYPES}{_FLOATS}#line 1 "{FILE}"\n'


class NvrtcError(RuntimeError):
    """The compiler refused the source; the text is the compiler's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What came out."""

    cubin: bytes
    ptx: str
    log: str
    """The compiler's words: registers, spills and shared memory of each kernel, warnings."""


def version(library: ctypes.CDLL) -> str:
    """Such as ``13.0``."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def load(path: Path) -> ctypes.CDLL:
    """Open the library, with the part of it that it looks for by name alone."""
    for part in path.parent.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(part), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(path))


def compiled(
    library: ctypes.CDLL, source: str, *, arch: str, flags: Sequence[str], include: Sequence[Path]
) -> Compiled:
    """Compile kernels for one architecture.

    Raises:
        NvrtcError: The source does not compile.
    """
    program = ctypes.c_void_p()
    names = [name.encode() for name in _HEADERS]
    texts = [text.encode() for text in _HEADERS.values()]
    array = ctypes.c_char_p * len(names)
    text = (PRELUDE + source).encode()
    status = library.nvrtcCreateProgram(
        ctypes.byref(program), text, FILE.encode(), len(names), array(*texts), array(*names)
    )
    if status:
        raise NvrtcError(f"NVRTC does not take the source: error {status}")
    try:
        options = [f"--gpu-architecture={arch}", "--ptxas-options=-v", *_standard(flags)]
        options += [f"--include-path={path}" for path in include]
        given = (ctypes.c_char_p * len(options))(*(each.encode() for each in options))
        status = library.nvrtcCompileProgram(program, len(options), given)
        log = _read(library, program, "ProgramLog").decode(errors="replace").rstrip("\0")
        if status:
            raise NvrtcError(log.strip() or f"NVRTC: error {status}")
        cubin = _read(library, program, "CUBIN")
        ptx = _read(library, program, "PTX").decode(errors="replace").rstrip("\0")
        return Compiled(cubin=cubin, ptx=ptx, log=log)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _standard(flags: Sequence[str]) -> list[str]:
    """Flags as NVRTC knows them; what only concerns host code is left out."""
    kept = [flag for flag in flags if not flag.startswith(("-l", "-O", "--expt", "-expt"))]
    return kept if any(flag.startswith("-std") for flag in kept) else ["-std=c++17", *kept]


def _read(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    getattr(library, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw[: size.value]
