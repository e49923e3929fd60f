"""C++ given as text, returned as functions that take tensors."""

import ctypes
import json
from collections.abc import Callable, Mapping, Sequence

from kernelsmith.kernels import building
from kernelsmith.kernels.building import BuildRequest
from kernelsmith.kernels.signatures import Signature, signatures

PRELUDE = """#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#line 1 "kernel.cpp"
"""


class Library:
    """Functions of one shared object; tensors are passed as pointers to their first element."""

    def __init__(self, path: str, signatures: Mapping[str, Signature]) -> None:
        self._library = ctypes.CDLL(path)
        self._signatures = signatures

    def __getattr__(self, name: str) -> Callable[..., object]:
        known = self.__dict__.get("_signatures", {})  # absent while one is being copied
        signature = known.get(name)
        if signature is None:
            raise AttributeError(
                f'no extern "C" function {name!r}; the source defines {", ".join(known) or "none"}'
            )
        if signature.unknown:
            raise TypeError(
                f"{name} cannot be called from Python: no C type known for "
                f"{signature.unknown[0]!r}; use pointers and plain numbers"
            )
        function = getattr(self._library, name)
        function.argtypes, function.restype = signature.arguments, signature.result
        count = len(signature.arguments)

        def call(*arguments: object) -> object:
            if signature.takes_stream and len(arguments) == count - 1:
                arguments = (*arguments, current_stream())
            if len(arguments) != count:
                raise TypeError(f"{name} takes {count} arguments; got {len(arguments)}")
            return function(*[a.data_ptr() if hasattr(a, "data_ptr") else a for a in arguments])

        setattr(self, name, call)
        return call


def cpp(source: str, *, flags: Sequence[str] = ()) -> Library:
    """Build C++17 (OpenMP on, tuned for this machine) and return its ``extern "C"`` functions.

    Args:
        source: Needs no includes for cmath, cstdint, cstring and algorithm.
        flags: Added after ``DEFAULT_FLAGS``; code generation flags only.
    """
    request = BuildRequest(kind="cpp", source=PRELUDE + source, flags=tuple(flags))
    return Library(building.built(request), signatures(source))


def cuda_library(source: str, *, flags: Sequence[str] = ()) -> Library:
    """Build CUDA C++ with nvcc and return its ``extern "C"`` host functions, which launch kernels.

    Pointers are tensors; a last parameter ``cudaStream_t`` may be left out: it is then the current
    stream.
    """
    return _device_library("cuda", source, flags)


def maca(source: str, *, flags: Sequence[str] = ()) -> Library:
    """Build MACA C++ with mxcc and return its ``extern "C"`` host functions, which launch kernels.

    A last parameter ``mcStream_t`` may be left out: it is then the current stream.
    """
    return _device_library("maca", source, flags)


def _device_library(kind: str, source: str, flags: Sequence[str]) -> Library:
    request = BuildRequest(kind=kind, source=source, flags=tuple(flags))
    library = Library(building.built(request), signatures(source))
    if building.on_load is not None:
        building.on_load(library)
    return library


def current_stream() -> int:
    """The stream that torch would launch on now."""
    import torch

    return int(torch.cuda.current_stream().cuda_stream)


def extension_request(
    name: str,
    sources: Sequence[str],
    *,
    functions: Sequence[str] | Mapping[str, str],
    flags: Sequence[str] = (),
    device_sources: Sequence[str] = (),
    device_flags: Sequence[str] = (),
) -> BuildRequest:
    """Compose what torch's ``load_inline`` would compile: sources and their pybind11 bindings."""
    named = functions if isinstance(functions, Mapping) else {f: f for f in functions}
    if isinstance(functions, str):
        named = {functions: functions}
    bindings = "\n".join(
        f'm.def("{each}", torch::wrap_pybind_function({each}), {json.dumps(note)});'
        for each, note in named.items()
    )
    parts = ["#include <torch/extension.h>", *sources]
    if named:
        parts.append(f"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{\n{bindings}\n}}")
    text = "\n".join(parts)
    if not device_sources:
        return BuildRequest(kind="extension", source=text, flags=tuple(flags), name=name)
    return BuildRequest(
        kind="cuda_extension", source=text, flags=tuple(flags), name=name,
        device_source="\n".join(device_sources), device_flags=tuple(device_flags),
    )  # fmt: skip
