"""The few calls of the CUDA driver that torch does not offer: sharing memory, reading graphs."""

import ctypes
import os
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

LIBRARY = "KERNELSMITH_DRIVER"
"""The variable that names another driver of the same interface: cu-bridge's, on MetaX GPUs."""
_PAGE = 2 << 20
"""Smaller allocations share a page with others; whoever gets a handle of one would see them."""
_KERNEL_NODE, _EVENT_NODE = 0, 7
_REGISTERS, _LOCAL_BYTES, _SHARED_BYTES = 4, 3, 1
_LAZY_PEER_ACCESS = 1
_PERSISTING_CACHE = 6


class DriverError(RuntimeError):
    """The driver said no."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"{what}: CUDA error {code}")
        self.code = code


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_char * 64),)


class _KernelParams(ctypes.Structure):
    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("arguments", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(os.environ.get(LIBRARY, "libcuda.so.1"))


def _call(name: str, *arguments: object) -> None:
    code = getattr(_library(), name)(*arguments)
    if code:
        raise DriverError(name, int(code))


def allocate(count: int) -> tuple[int, int]:
    """Take memory that nothing else lies in; returns its address and its size."""
    size = -(-max(count, 1) // _PAGE) * _PAGE
    address = ctypes.c_uint64()
    _call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    return address.value, size


def free(address: int) -> None:
    """Give back what ``allocate`` took."""
    _call("cuMemFree_v2", ctypes.c_uint64(address))


def extent(address: int) -> tuple[int, int]:
    """Where the allocation begins that an address lies in, and its size."""
    base, size = ctypes.c_uint64(), ctypes.c_size_t()
    where = ctypes.c_uint64(address)
    _call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), where)
    return base.value, size.value


def export(base: int) -> str:
    """A handle that another process can map this allocation by."""
    handle = _Handle()
    _call("cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(base))
    return bytes(handle).hex()


def open_exported(handle: str) -> tuple[int, int]:
    """Map another process's allocation; returns its address here and its size."""
    raw = _Handle.from_buffer_copy(bytes.fromhex(handle))
    address = ctypes.c_uint64()
    _call("cuIpcOpenMemHandle_v2", ctypes.byref(address), raw, _LAZY_PEER_ACCESS)
    return address.value, extent(address.value)[1]


def close_exported(address: int) -> None:
    """Undo ``open_exported``."""
    _call("cuIpcCloseMemHandle", ctypes.c_uint64(address))


def reset_persisting_cache() -> None:
    """Let go of whatever was pinned in the second-level cache."""
    _call("cuCtxResetPersistingL2Cache")


def persisting_bytes() -> int:
    """How much of the second-level cache this process keeps to itself."""
    value = ctypes.c_size_t()
    _call("cuCtxGetLimit", ctypes.byref(value), _PERSISTING_CACHE)
    return value.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node of a captured graph; ``function`` is 0 for copies and fills."""

    handle: int
    function: int
    module: int
    name: str
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    registers: int = 0
    local_bytes: int = 0
    shared_bytes: int = 0


_KINDS = {1: "memcpy", 2: "memset", 3: "host", 4: "graph", 5: "empty"}


def blocking_stream() -> int:
    """A stream that waits for the legacy default one, and is waited for; torch's own do not."""
    handle = ctypes.c_void_p()
    _call("cuStreamCreate", ctypes.byref(handle), ctypes.c_uint(0))
    assert handle.value is not None
    return handle.value


def record_inside(event: int, stream: int) -> None:
    """Make reading the clock a part of the graph that a stream is being captured into."""
    external = ctypes.c_uint(1)
    _call("cuEventRecordWithFlags", ctypes.c_void_p(event), ctypes.c_void_p(stream), external)


def nodes(graph: int) -> Iterator[Node]:
    """All the work that replaying a graph would do, in the order of creation."""
    for handle in _handles(graph):
        kind = ctypes.c_int()
        _call("cuGraphNodeGetType", ctypes.c_void_p(handle), ctypes.byref(kind))
        if kind.value == _KERNEL_NODE:
            yield _kernel(handle)
        elif kind.value != _EVENT_NODE:
            name = _KINDS.get(kind.value, f"node of type {kind.value}")
            yield Node(handle=handle, function=0, module=0, name=name)


def _handles(graph: int) -> list[int]:
    count = ctypes.c_size_t()
    _call("cuGraphGetNodes", ctypes.c_void_p(graph), None, ctypes.byref(count))
    found = (ctypes.c_void_p * count.value)()
    _call("cuGraphGetNodes", ctypes.c_void_p(graph), found, ctypes.byref(count))
    return [int(handle or 0) for handle in found]


def _kernel(handle: int) -> Node:
    params = _KernelParams()
    _call("cuGraphKernelNodeGetParams_v2", ctypes.c_void_p(handle), ctypes.byref(params))
    function = params.function
    if not function:
        given = ctypes.c_void_p()
        _call("cuKernelGetFunction", ctypes.byref(given), ctypes.c_void_p(params.kernel))
        function = given.value
    name = ctypes.c_char_p()
    _call("cuFuncGetName", ctypes.byref(name), ctypes.c_void_p(function))
    return Node(
        handle=handle,
        function=int(function or 0),
        module=module_of(int(function or 0)),
        name=(name.value or b"").decode(errors="replace"),
        grid=tuple(params.grid),
        block=tuple(params.block),
        registers=_attribute(_REGISTERS, function),
        local_bytes=_attribute(_LOCAL_BYTES, function),
        shared_bytes=_attribute(_SHARED_BYTES, function) + params.shared_bytes,
    )


def module_of(function: int) -> int:
    """The module that a function was loaded with."""
    module = ctypes.c_void_p()
    _call("cuFuncGetModule", ctypes.byref(module), ctypes.c_void_p(function))
    return int(module.value or 0)


def module_of_library(library: int) -> int:
    """The module that a library is in the current context."""
    module = ctypes.c_void_p()
    _call("cuLibraryGetModule", ctypes.byref(module), ctypes.c_void_p(library))
    return int(module.value or 0)


def _attribute(which: int, function: int | None) -> int:
    value = ctypes.c_int()
    _call("cuFuncGetAttribute", ctypes.byref(value), which, ctypes.c_void_p(function))
    return value.value


@dataclass(frozen=True, slots=True)
class Chain:
    """An executable copy of a graph, or a part of one, in which one node runs after the other."""

    executable: int

    def launch(self, stream: int) -> None:
        """Replay it."""
        _call("cuGraphLaunch", ctypes.c_void_p(self.executable), ctypes.c_void_p(stream))

    def close(self) -> None:
        """Give it back."""
        _call("cuGraphExecDestroy", ctypes.c_void_p(self.executable))


def chained(graph: int, order: Sequence[int], chosen: Container[int]) -> Chain:
    """Copy the chosen nodes of a graph, in this order instead of side by side.

    Copied, not switched off: kernels of cuDNN failed to launch beside nodes that were.
    """
    copy = ctypes.c_void_p()
    _call("cuGraphClone", ctypes.byref(copy), ctypes.c_void_p(graph))
    _unlink(copy)
    kept = []
    for node in order:
        if node in chosen:
            found = ctypes.c_void_p()
            _call("cuGraphNodeFindInClone", ctypes.byref(found), ctypes.c_void_p(node), copy)
            kept.append(int(found.value or 0))
    for handle in set(_handles(int(copy.value or 0))) - set(kept):
        _call("cuGraphDestroyNode", ctypes.c_void_p(handle))
    if len(kept) > 1:
        first = (ctypes.c_void_p * (len(kept) - 1))(*kept[:-1])
        then = (ctypes.c_void_p * (len(kept) - 1))(*kept[1:])
        _call("cuGraphAddDependencies", copy, first, then, ctypes.c_size_t(len(kept) - 1))
    executable = ctypes.c_void_p()
    _call("cuGraphInstantiateWithFlags", ctypes.byref(executable), copy, ctypes.c_uint64(0))
    _call("cuGraphDestroy", copy)
    return Chain(int(executable.value or 0))


def _unlink(graph: ctypes.c_void_p) -> None:
    """Take all edges out of a graph, those of launches that overlap on purpose included."""
    count = ctypes.c_size_t()
    _call("cuGraphGetEdges_v2", graph, None, None, None, ctypes.byref(count))
    if count.value:
        ends = [(ctypes.c_void_p * count.value)() for _ in range(2)]
        kinds = (ctypes.c_uint64 * count.value)()
        _call("cuGraphGetEdges_v2", graph, *ends, kinds, ctypes.byref(count))
        _call("cuGraphRemoveDependencies_v2", graph, *ends, kinds, count)
