"""CUDA kernels given as text, returned as kernels that are launched on tensors.

    lib = cuda(source)
    lib.row_sum[rows, 256](x, y, columns)            # grid, block
    lib.row_sum[(rows, 2), (32, 8), 4096](x, y, n)   # and bytes of dynamic shared memory

They are built by NVRTC, loaded by the driver and launched on torch's current stream.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from kernelsmith.kernels import building
from kernelsmith.kernels.building import BuildRequest
from kernelsmith.kernels.signatures import Signature, signatures

_SHARED_WITHOUT_ASKING = 48 << 10
_DYNAMIC_SHARED_BYTES = 8
Size = int | Sequence[int]


class DeviceError(RuntimeError):
    """The driver refused to load or to launch."""


class Module:
    """The kernels of one source, loaded when the first of them is launched."""

    def __init__(self, path: str, found: dict[str, Signature]) -> None:
        self.image = Path(path).read_bytes()
        self.handle = 0
        """The driver's, once it is loaded."""
        self._signatures = found

    def __getattr__(self, name: str) -> "Kernel":
        known = self.__dict__.get("_signatures", {})  # absent while one is being copied
        signature = known.get(name)
        if signature is None:
            raise AttributeError(
                f'no extern "C" kernel {name!r}; the source defines {", ".join(known) or "none"}'
            )
        if signature.unknown:
            raise TypeError(
                f"{name} cannot be launched from Python: no C type known for "
                f"{signature.unknown[0]!r}; use pointers and plain numbers"
            )
        kernel = Kernel(self, name, signature)
        setattr(self, name, kernel)
        return kernel

    def function(self, name: str) -> int:
        """The driver's handle of a kernel; loads the module where that was not done."""
        if not self.handle:
            handle = ctypes.c_void_p()
            _call("cuModuleLoadData", ctypes.byref(handle), ctypes.c_char_p(self.image))
            self.handle = int(handle.value or 0)
            if building.on_load is not None:
                building.on_load(self)
        found = ctypes.c_void_p()
        module = ctypes.c_void_p(self.handle)
        _call("cuModuleGetFunction", ctypes.byref(found), module, name.encode())
        return int(found.value or 0)


class Kernel:
    """One kernel; subscribe it with a grid and a block, then call it with its arguments."""

    def __init__(self, module: Module, name: str, signature: Signature) -> None:
        self.name, self._module = name, module
        self._function: ctypes.c_void_p | None = None
        self._shared = _SHARED_WITHOUT_ASKING
        self._places = [kind() for kind in signature.arguments]
        addresses = [ctypes.addressof(place) for place in self._places]
        self._arguments = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        self._launches: dict[object, Callable[..., None]] = {}

    def __getitem__(self, key: tuple[object, ...]) -> Callable[..., None]:
        """A launch of that shape: ``[grid, block]`` or ``[grid, block, shared_bytes]``."""
        known = self._launches.get(key)
        if known is None:
            known = self._launches[key] = self._launch(key)
        return known

    def __call__(self, *arguments: object) -> None:
        """Say what is missing."""
        raise TypeError(f"say how many blocks and threads: {self.name}[grid, block](...)")

    def _launch(self, key: object) -> Callable[..., None]:
        if not isinstance(key, tuple) or len(key) not in (2, 3):
            raise TypeError(f"{self.name}[grid, block] or {self.name}[grid, block, shared_bytes]")
        grid, block = _three(key[0], "grid"), _three(key[1], "block")
        shared = int(key[2]) if len(key) == 3 else 0
        sizes = [ctypes.c_uint(each) for each in (*grid, *block, shared)]
        places, given, launch = self._places, self._arguments, _driver().cuLaunchKernel
        empty = 0 in grid

        def launched(*arguments: object) -> None:
            if len(arguments) != len(places):
                raise TypeError(f"{self.name} takes {len(places)} arguments; got {len(arguments)}")
            if empty:
                return  # the driver refuses a grid of none
            for place, value in zip(places, arguments, strict=True):
                place.value = value.data_ptr() if hasattr(value, "data_ptr") else value
            if self._function is None:
                self._function = ctypes.c_void_p(self._module.function(self.name))
            if shared > self._shared:
                self._allow(shared)
            code = launch(self._function, *sizes, ctypes.c_void_p(_stream()), given, None)
            if code:
                raise DeviceError(f"launching {self.name}{[*grid, *block, shared]}: {_said(code)}")

        return launched

    def _allow(self, shared: int) -> None:
        size = ctypes.c_int(shared)
        _call("cuFuncSetAttribute", self._function, _DYNAMIC_SHARED_BYTES, size)
        self._shared = shared


def cuda(source: str, *, flags: Sequence[str] = ()) -> Module:
    """Build CUDA kernels (C++17, for the device at hand) and return them, to be launched.

    Args:
        source: Kernels are ``extern "C" __global__`` and take pointers and plain numbers. There
            is no host code in it: for ``<<<...>>>`` use ``cuda_library``.
        flags: ``-D``, ``-use_fast_math``, ``-maxrregcount=N`` and the like.
    """
    request = BuildRequest(kind="cubin", source=source, flags=tuple(flags))
    return Module(building.built(request), signatures(source))


def _three(size: object, what: str) -> tuple[int, int, int]:
    given = (size,) if isinstance(size, int) else size
    if not isinstance(given, Sequence) or isinstance(given, str) or not 1 <= len(given) <= 3:
        raise TypeError(f"a {what} is a number or up to three of them; got {size!r}")
    whole = [int(each) for each in given]
    if min(whole) < (0 if what == "grid" else 1):
        raise ValueError(f"a {what} is not negative, and a block not empty; got {size!r}")
    x, y, z = (*whole, 1, 1)[:3]
    return x, y, z


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _stream() -> int:
    import torch

    device = torch.cuda.current_device()
    return int(torch._C._cuda_getCurrentRawStream(device))


def _call(name: str, *arguments: object) -> None:
    code = getattr(_driver(), name)(*arguments)
    if code:
        raise DeviceError(f"{name}: {_said(code)}")


def _said(code: int) -> str:
    text = ctypes.c_char_p()
    _driver().cuGetErrorString(code, ctypes.byref(text))
    return (text.value or b"unknown error").decode(errors="replace")
