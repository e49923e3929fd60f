"""Where the compilers of kernels are on this machine: NVIDIA's toolkit, MetaX's SDK."""

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DEFAULT_ARCH = "sm_90a"
ARCH = "KERNELSMITH_CUDA_ARCH"
"""The variable that says for which NVIDIA device to build; the device at hand where absent."""
MACA_ARCH, DEFAULT_MACA_ARCH = "MACA_ARCH", "xcore1000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """What there is of NVIDIA's toolkit; each part may be missing."""

    nvcc: Path | None
    nvrtc: Path | None
    includes: tuple[Path, ...]
    """Where ``cuda_fp16.h`` lies, beside what nvcc finds by itself."""
    headers: tuple[Path, ...] = ()
    """Further places of headers, of cuBLAS and the like: torch's own need them."""

    @property
    def folders(self) -> tuple[Path, ...]:
        """All that a sandboxed compiler must be able to read."""
        found = [*self.includes, *self.headers]
        if self.nvcc is not None:
            home = self.nvcc.resolve().parent.parent
            found += [home, self.nvcc.parent]
        if self.nvrtc is not None:
            found.append(self.nvrtc.parent)
        return tuple(dict.fromkeys(found))

    def nvcc_version(self) -> str:
        """Such as ``13.0``; empty where there is no nvcc."""
        if self.nvcc is None:
            return ""
        done = subprocess.run([self.nvcc, "--version"], capture_output=True, text=True)
        found = re.search(r"release ([\d.]+)", done.stdout)
        return found[1] if found else "unknown"

    def nvrtc_version(self) -> str:
        """By the name of its parts: it is not loaded for this; empty where there is none."""
        if self.nvrtc is None:
            return ""
        parts = sorted(self.nvrtc.parent.glob("libnvrtc-builtins.so.*"))
        return parts[-1].name.partition(".so.")[2] if parts else "unknown"

    def missing(self, *, fast: bool) -> str | None:
        """What is missing for NVRTC (``fast``) or nvcc, and where it comes from."""
        if fast and self.nvrtc is None:
            return (
                "NVRTC, which builds CUDA kernels, is not here: pip install nvidia-cuda-nvrtc, or "
                "set CUDA_HOME to a CUDA toolkit"
            )
        if not fast and self.nvcc is None:
            return "nvcc is not on this machine: install the CUDA toolkit, or set CUDA_HOME"
        return None


def find_toolkit() -> Toolkit:
    """Look in ``CUDA_HOME``, on the path, in ``/usr/local/cuda`` and among Python's packages."""
    homes = list(dict.fromkeys(_homes()))
    nvcc = next((home / "bin/nvcc" for home in homes if (home / "bin/nvcc").exists()), None)
    libraries = [
        path
        for home in homes
        for folder in ("lib64", "lib", "targets/x86_64-linux/lib")
        for path in sorted((home / folder).glob("libnvrtc.so.*"), reverse=True)
        if re.fullmatch(r"libnvrtc\.so\.\d+", path.name)
    ]
    includes = [home / "include" for home in homes if (home / "include/cuda_fp16.h").exists()]
    others = [home / "include" for home in homes if any((home / "include").glob("*.h"))]
    return Toolkit(
        nvcc=nvcc,
        nvrtc=libraries[0] if libraries else None,
        includes=tuple(includes[:1]),
        headers=tuple(path for path in others if path not in includes[:1]),
    )


def _homes() -> Iterator[Path]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if value := os.environ.get(name):
            yield Path(value)
    if found := shutil.which("nvcc"):
        real = Path(found).resolve()
        if (real.parent / "ptxas").exists():  # some are scripts that call the real one
            yield real.parent.parent
    yield Path("/usr/local/cuda")
    # Torch's own packages bring NVRTC and headers: of one folder (13) or one each (12).
    yield from sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/*"), reverse=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Maca:
    """What there is of MetaX's SDK."""

    home: Path | None
    """``MACA_PATH``, where it is known."""
    mxcc: Path | None
    cucc: Path | None
    """cu-bridge's compiler for CUDA sources."""
    arch: str

    @property
    def folders(self) -> tuple[Path, ...]:
        """All that a sandboxed compiler must be able to read."""
        tools = [tool.resolve().parent for tool in (self.mxcc, self.cucc) if tool is not None]
        tools += [tool.parent for tool in (self.mxcc, self.cucc) if tool is not None]
        return tuple(dict.fromkeys([*([self.home] if self.home is not None else []), *tools]))

    @property
    def bridge(self) -> Path | None:
        """cu-bridge's folder."""
        if self.home is None:
            return None
        return self.home / "tools" / "cu-bridge"

    def missing(self) -> str | None:
        """What is missing to build for MetaX, and where it comes from."""
        if self.mxcc is not None:
            return None
        where = f"MACA_PATH is {str(self.home)!r} and holds no mxgpu_llvm/bin/mxcc"
        if self.home is None:
            where = "MACA_PATH is not set, /opt/maca does not exist, and mxcc is not on the path"
        return f"the compiler mxcc is missing: {where}; install MetaX's MACA SDK and set MACA_PATH"


def find_maca() -> Maca:
    """Look in ``MACA_PATH``, in ``/opt/maca`` and on the path."""
    given = os.environ.get("MACA_PATH")
    home = Path(given) if given else Path("/opt/maca")
    known = home if given or home.exists() else None
    places = [] if known is None else [known / "mxgpu_llvm/bin/mxcc", known / "bin/mxcc"]
    bridges = [] if known is None else [known / "tools/cu-bridge/bin/cucc"]
    return Maca(
        home=known,
        mxcc=next(filter(Path.exists, places), _on_path("mxcc")),
        cucc=next(filter(Path.exists, bridges), _on_path("cucc")),
        arch=os.environ.get(MACA_ARCH, DEFAULT_MACA_ARCH),
    )


def _on_path(name: str) -> Path | None:
    found = shutil.which(name)
    return Path(found) if found else None
