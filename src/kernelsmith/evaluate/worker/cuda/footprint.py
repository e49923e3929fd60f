"""The memory that a task's forward takes: of a real one, or of one on tensors without memory."""

import gc
import warnings
import weakref
from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kernelsmith.evaluate.cuda.peak import Footprint, predicted_peak
from kernelsmith.evaluate.worker.trees import flatten

__all__ = ["Footprint", "footprint", "predicted_peak", "tried"]

_UNABLE = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError,
    OSError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""What a task's source raises where it asks a tensor without memory for its values, or the device
for memory that it has not."""
_OPERATORS = 200_000
"""A forward of more than that many, half a minute of them, is not followed to its end."""


def tried(
    make_model: Callable[[], torch.nn.Module | None],
    function: Callable[..., object] | None,
    make_inputs: Callable[[], object],
    dtype: torch.dtype | None,
) -> Footprint | None:
    """Measure one real forward: at once, where ``footprint`` takes seconds to load what it needs.

    ``None`` where the device has no room for it, or the source needs what only a host has.
    """
    try:
        with (
            torch.random.fork_rng(), warnings.catch_warnings(action="ignore"),
            torch.device("cuda"), torch.no_grad(),
        ):  # fmt: skip
            found = _measured(make_model, function, make_inputs, dtype, _Allocated())
            torch.cuda.synchronize()  # what went wrong on the device shows here
            return found
    except _UNABLE:
        return None
    finally:
        torch.cuda.empty_cache()


def footprint(
    make_model: Callable[[], torch.nn.Module | None],
    function: Callable[..., object] | None,
    make_inputs: Callable[[], object],
    dtype: torch.dtype | None,
) -> Footprint | None:
    """Measure one forward without allocating any of it.

    Runs the task on the device's own rules where there is one, and else on the CPU's: what an
    attention leaves behind differs. ``None`` where the source needs values: control flow on data,
    ``item()``, numpy; and where it takes more operators than are worth following.

    Args:
        make_model: Constructs the module, or returns ``None`` where the task is a function.
        function: The task where it is one.
        make_inputs: The task's ``get_inputs``.
        dtype: What floating-point weights and inputs are converted to; ``None`` leaves them.
    """
    for device in ("cuda", "cpu") if torch.cuda.is_available() else ("cpu",):
        try:
            with torch.random.fork_rng(devices=[]), warnings.catch_warnings(action="ignore"):
                return _traced(make_model, function, make_inputs, dtype, device=device)
        except _UNABLE:
            continue
    return None


def _traced(
    make_model: Callable[[], torch.nn.Module | None],
    function: Callable[..., object] | None,
    make_inputs: Callable[[], object],
    dtype: torch.dtype | None,
    *,
    device: str,
) -> Footprint:
    # A mode of its own each time: what another mode made is not taken for one's own.
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    with torch.device(device), fake, _Live() as live, torch.no_grad():
        return _measured(make_model, function, make_inputs, dtype, live)


def _measured(
    make_model: Callable[[], torch.nn.Module | None],
    function: Callable[..., object] | None,
    make_inputs: Callable[[], object],
    dtype: torch.dtype | None,
    memory: "_Live | _Allocated",
) -> Footprint:
    model = make_model()
    if model is not None:
        _convert(model, dtype)
    weights = memory.settled()
    values = make_inputs()
    leaves: list[torch.Tensor] = []
    flatten(values, leaves)
    chosen = {id(leaf): _own(leaf, dtype) for leaf in leaves}
    rows = leaves[0].shape[:1] if leaves else torch.Size()
    arguments, keywords = _arguments(values, chosen)
    del values, leaves
    inputs = memory.settled() - weights
    held = memory.storages()
    memory.forget_peak()
    target = function if model is None else model
    assert target is not None
    found: list[torch.Tensor] = []
    flatten(target(*arguments, **keywords), found)
    outputs = _kept_bytes(found, held)
    beyond = max(0, memory.peak - weights - inputs - outputs)
    batched = bool(rows) and bool(found) and all(each.shape[:1] == rows for each in found)
    return Footprint(
        inputs=inputs, weights=weights, outputs=outputs, activations=beyond, batched=batched
    )


def _convert(model: torch.nn.Module, dtype: torch.dtype | None) -> None:
    """Do what ``model.to(dtype)`` does, which tensors without memory do not support."""
    if dtype is None:
        return
    done: dict[int, torch.Tensor] = {}
    for module in model.modules():
        for registry in (module._parameters, module._buffers):
            for name, old in registry.items():
                if old is None or not old.is_floating_point():
                    continue
                if id(old) not in done:
                    new = old.detach().to(dtype)
                    done[id(old)] = (
                        torch.nn.Parameter(new, requires_grad=old.requires_grad)
                        if isinstance(old, torch.nn.Parameter)
                        else new
                    )
                registry[name] = done[id(old)]


def _own(leaf: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    leaf = leaf.detach()
    return (leaf.to(dtype) if dtype is not None and leaf.is_floating_point() else leaf).clone()


def _arguments(
    values: object, chosen: dict[int, torch.Tensor]
) -> tuple[list[object], dict[str, object]]:
    """Put each tensor's own copy in its place."""

    def replaced(value: object) -> object:
        if isinstance(value, torch.Tensor):
            return chosen[id(value)]
        if isinstance(value, list | tuple):
            return type(value)(replaced(each) for each in value)
        if isinstance(value, dict):
            return {key: replaced(each) for key, each in value.items()}
        return value

    if isinstance(values, dict):
        return [], {str(key): replaced(each) for key, each in values.items()}
    if isinstance(values, list | tuple):
        return [replaced(each) for each in values], {}
    return [replaced(values)], {}


def _kept_bytes(found: Iterable[torch.Tensor], held: set[int]) -> int:
    """What keeping the outputs costs: their memory if it is new, a copy where it is not."""
    new: dict[int, int] = {}
    copies = 0
    for leaf in found:
        storage, size = leaf.untyped_storage(), leaf.numel() * leaf.element_size()
        if storage._cdata in held:
            copies += size
        else:
            new[storage._cdata] = max(new.get(storage._cdata, 0), size, storage.nbytes())
    return copies + sum(new.values())


class _Live(TorchDispatchMode):
    """Watches memory come and go, operator by operator."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, tuple[weakref.ref[torch.UntypedStorage], int]] = {}
        self._bytes = 0
        self._operators = 0
        self.peak = 0
        """The most bytes that were alive after any operator since ``forget_peak``."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self._operators += 1
        if self._operators > _OPERATORS:
            raise RuntimeError(f"more than {_OPERATORS} operators")
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided:
                self._see(leaf.untyped_storage())
        self.peak = max(self.peak, self._bytes)
        return result

    def settled(self) -> int:
        """Bytes alive once nothing is left over from construction."""
        gc.collect()
        return self._bytes

    def storages(self) -> set[int]:
        """Numbers of the storages alive."""
        return set(self._known)

    def forget_peak(self) -> None:
        """Start anew."""
        self.peak = 0

    def _see(self, storage: torch.UntypedStorage) -> None:
        number, size = storage._cdata, storage.nbytes()
        if number in self._known:  # it may have grown
            reference, before = self._known[number]
        else:
            # The Python object of a storage lives as long as the storage itself.
            reference, before = weakref.ref(storage, partial(self._gone, number)), 0
        self._known[number] = (reference, size)
        self._bytes += size - before

    def _gone(self, number: int, _: object) -> None:
        self._bytes -= self._known.pop(number)[1]


class _Allocated:
    """What torch's allocator on the device says of the same, workspaces of libraries included."""

    def __init__(self) -> None:
        gc.collect()
        self._before = torch.cuda.memory_allocated()

    def settled(self) -> int:
        """Bytes alive once nothing is left over from construction."""
        gc.collect()
        return torch.cuda.memory_allocated() - self._before

    def storages(self) -> set[int]:
        """It knows none: an output that is an input counts as new, which it would be as a copy."""
        return set()

    def forget_peak(self) -> None:
        """Start anew."""
        torch.cuda.reset_peak_memory_stats()

    @property
    def peak(self) -> int:
        """The most bytes that were alive since ``forget_peak``."""
        return torch.cuda.max_memory_allocated() - self._before
