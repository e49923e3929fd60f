"""The command lines of nvcc, mxcc and cucc, each put together in one place."""

from collections.abc import Sequence
from pathlib import Path

from kernelsmith.kernels.toolkit import Maca

HOOK = "kernelsmith_hook.c"
"""Compiled into every library with kernels: says which kernels it brought."""
HOOK_SOURCE = """\
extern int cudaGetFuncBySymbol(void**, const void*);
extern void __real___cudaRegisterFunction(void**, const char*, char*, const char*, int, void*,
                                          void*, void*, void*, int*);
static struct { const char* host; const char* name; } kernels[4096];
static int count;

void __wrap___cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                                   int limit, void* a, void* b, void* c, void* d, int* size)
{
    if (count < 4096) { kernels[count].host = host; kernels[count].name = name; ++count; }
    __real___cudaRegisterFunction(handle, host, device, name, limit, a, b, c, d, size);
}

int kernelsmith_kernel(int index, const char** name, void** function)
{
    if (index < 0 || index >= count) return -1;
    *name = kernels[index].name;
    return cudaGetFuncBySymbol(function, kernels[index].host);
}
"""
WRAP = ("-Xlinker", "--wrap=__cudaRegisterFunction", "-Xlinker", "-Bsymbolic")
_NVCC = ("-O3", "-std=c++17", "--expt-relaxed-constexpr", "-Xcompiler", "-fPIC")
_HOST_ONLY = ("-l",)


def nvcc_library(
    nvcc: Path, *, arch: str, flags: Sequence[str] = (), include: Sequence[Path] = (),
    extra: Sequence[str] = (), source: str = "kernel.cu", target: str = "built",
) -> list[str]:  # fmt: skip
    """Kernels and the host functions that launch them, as a shared object with the hook in it."""
    return [
        str(nvcc), *_NVCC, *_for(arch), *flags, *extra, *(f"-I{path}" for path in include),
        "-Xptxas", "-v", "--keep", "-shared", "-cudart", "static", *WRAP, source, HOOK,
        "-o", target,
    ]  # fmt: skip


def nvcc_object(
    nvcc: Path, *, arch: str, flags: Sequence[str] = (), include: Sequence[str] = (),
    source: str = "device.cu", target: str = "device.o",
) -> list[str]:  # fmt: skip
    """Kernels as an object file, for a torch extension."""
    kept = [flag for flag in flags if not flag.startswith(_HOST_ONLY)]
    return [
        str(nvcc), *_NVCC, *_for(arch), *kept, *include, "-Xptxas", "-v", "--keep", "-c",
        source, "-o", target,
    ]  # fmt: skip


def _for(arch: str) -> tuple[str, str]:
    """Machine code for one architecture and nothing else; ``-arch`` may add more to it."""
    return "-gencode", f"arch={arch.replace('sm_', 'compute_')},code={arch}"


def mxcc_library(
    maca: Maca, *, flags: Sequence[str] = (), source: str = "kernel.maca", target: str = "built"
) -> list[str]:
    """A shared object from MACA C++, as MetaX's own samples build their programs."""
    assert maca.mxcc is not None
    home = [f"--maca-path={maca.home}"] if maca.home is not None else []
    return [
        str(maca.mxcc), "-x", "maca", "-O3", "-std=c++17", f"--offload-arch={maca.arch}", *home,
        *flags, "-resource-usage", "-shared", "-fPIC", source, "-o", target,
    ]  # fmt: skip


def cucc_library(
    maca: Maca, *, flags: Sequence[str] = (), source: str = "kernel.cu", target: str = "built"
) -> list[str]:
    """A shared object from CUDA C++ by cu-bridge."""
    assert maca.cucc is not None
    bridge = maca.bridge
    found: list[str] = []
    if bridge is not None and maca.home is not None:
        found = [f"-I{bridge}/include", f"-L{bridge}/lib", f"-L{maca.home}/lib", "-lcuda"]
    return [
        str(maca.cucc), "-O3", "-std=c++17", *flags, "-shared", "-fPIC", source, *found,
        "-o", target,
    ]  # fmt: skip
