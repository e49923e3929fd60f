"""Compiles a candidate's Triton kernels ahead of the judge, where there is no device.

The candidate runs on tensors without memory, and each launch only compiles. What Triton leaves in
its cache then is what a launch on the device looks for: the same source, types, divisibilities,
options and target. Whatever goes wrong here is nobody's fault: the judge will see for itself.
"""

import os
import socket
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from kernelsmith.evaluate.sandbox.channel import receive, send
from kernelsmith.evaluate.worker import builds, inputs
from kernelsmith.evaluate.worker.cuda import cached
from kernelsmith.evaluate.worker.program import Message, execute, explain
from kernelsmith.evaluate.worker.reference import FILE as TASK_FILE
from kernelsmith.evaluate.worker.trees import unflatten

_WARP = 32
_BASE = 1 << 40
"""Where memory would begin: every allocator there is gives out multiples of 256 bytes."""


class Over(BaseException):
    """The time for it is over; no candidate takes it for an error of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """One workload: what the module is made with, and what it is called with."""

    init: Any
    """Arguments of the constructor: a list, or a dict where they are named."""
    dtype: torch.dtype | None
    sets: list[inputs.InputSet]


class _StandIn:
    """All that Triton asks of a tensor: its type, and whether its address divides by 16."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.dtype, self.shape = tensor.dtype, tensor.shape
        self._strides = tensor.stride()
        self._address = _BASE + tensor.storage_offset() * tensor.element_size()

    def data_ptr(self) -> int:
        """Where it would lie."""
        return self._address

    def stride(self) -> tuple[int, ...]:
        """As the tensor's."""
        return self._strides

    def ptr_range(self) -> int:
        """Bytes behind the address; other devices' compilers ask."""
        return 0


class _Driver:
    """Stands where Triton's driver would: knows the device's name and numbers, reaches none."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self._target = GPUTarget("cuda", 10 * facts["major"] + facts["minor"], _WARP)
        known = {"warpSize": _WARP}
        if processors := facts.get("multi_processor_count"):
            known["multiprocessor_count"] = processors
        self.utils = SimpleNamespace(get_device_properties=lambda _: known)

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def get_current_stream(self, _: object = None) -> int:
        """None in particular."""
        return 0

    def get_current_target(self) -> GPUTarget:
        """What is compiled for."""
        return self._target

    def get_active_torch_device(self) -> torch.device:
        """The only one."""
        return torch.device("cuda", 0)


def rehearse(message: Message) -> None:
    """Run the candidate's forward on every workload; what is compiled lies in Triton's cache.

    Ends with the first thing that goes wrong, and raises whatever that raised.
    """
    facts = message["facts"]
    assert isinstance(facts, dict)
    # Torch built without CUDA cannot copy to tensors that pretend to be on a device.
    device = "cuda" if torch.backends.cuda.is_built() else "cpu"
    torch.set_num_threads(1)
    _compile_only(time.monotonic() + float(str(message["seconds"])))
    driver.set_active(_Driver(facts))
    _pretend(facts)
    torch.nn.Module._apply = _apply  # type: ignore[method-assign]
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        scenes = _scenes(message, device)  # before any of the candidate's code runs
        target = getattr(execute(str(message["source"])), str(message["entry"]))
        for scene in scenes:
            forward = target if message["function"] else _module(target, scene, message, device)
            for each in scene.sets:
                _call(forward, each)


def _compile_only(until: float) -> None:
    """Make each launch a compilation, and no autotuner choose."""
    launch, tune = JITFunction.run, Autotuner.run

    def compiled(self: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        del warmup
        if time.monotonic() > until:
            raise Over
        options = {name: _stand_in(value) for name, value in options.items()}
        return launch(self, *map(_stand_in, arguments), grid=grid, warmup=True, **options)

    def chosen(self: Any, *arguments: Any, **options: Any) -> Any:
        return tune(self, *arguments, **options) if len(self.configs) == 1 else None

    JITFunction.run, Autotuner.run = compiled, chosen


def _stand_in(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _StandIn(value)
    if isinstance(value, tuple):
        parts = map(_stand_in, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _pretend(facts: dict[str, Any]) -> None:
    """Answer what candidates ask about the device; what is not known raises, which ends it."""
    torch.cuda.current_device = lambda: 0
    torch.cuda.set_device = torch.cuda.synchronize = lambda *_: None
    torch.cuda.device = torch.cuda.device_of = nullcontext  # type: ignore[misc, assignment]
    torch.cuda.get_device_name = lambda *_: facts["name"]
    torch.cuda.get_device_capability = lambda *_: (facts["major"], facts["minor"])
    torch.cuda.get_device_properties = lambda *_: SimpleNamespace(**facts, warp_size=_WARP)


def _apply(self: torch.nn.Module, change: Callable[..., Any], recurse: bool = True) -> Any:
    """Convert a module by new tensors: those without memory cannot be exchanged in place."""
    if recurse:
        for child in self.children():
            child._apply(change)
    for registry in (self._parameters, self._buffers):
        for name, old in registry.items():
            if old is not None and (new := change(old)) is not old:
                is_parameter = isinstance(old, torch.nn.Parameter)
                registry[name] = torch.nn.Parameter(new, old.requires_grad) if is_parameter else new
    return self


def _scenes(message: Message, device: str) -> list[_Scene]:
    """Draw inputs by the task's recipe: of all workloads, then of the first in other forms."""
    task = ModuleType("task")
    exec(compile(str(message["task"]), TASK_FILE, "exec"), task.__dict__)
    workloads = message["workloads"]
    assert isinstance(workloads, list)
    scenes = []
    for each in workloads:
        dtype = getattr(torch, each["dtype"]) if each["dtype"] else None
        drawn = inputs.plain(task.get_inputs, each["arguments"], dtype, device)
        makes = getattr(task, "get_init_inputs", list)
        init: Any = [] if message["function"] else makes(**each["init"])
        scenes.append(_Scene(init=init, dtype=dtype, sets=[drawn]))
    first = scenes[0]
    formed = [inputs.reshaped(first.sets[0], form) for form in inputs.FORMS]
    others = [made for made in formed if made is not None]
    return [*scenes, replace(first, sets=others)]


def _module(target: Any, scene: _Scene, message: Message, device: str) -> torch.nn.Module:
    """Construct it as the judge's own processes do."""
    init = scene.init
    with torch.device(device) if device != "cpu" else nullcontext():
        model: torch.nn.Module = target(**init) if isinstance(init, dict) else target(*init)
    model = model.to(device)
    if scene.dtype is not None:
        model = model.to(scene.dtype)
    model.train(bool(message["training"]))
    if message["prepare"] and hasattr(model, "prepare"):
        model.prepare()
    return model


def _call(forward: Callable[..., object], chosen: inputs.InputSet) -> None:
    arguments = unflatten(chosen.tree, chosen.leaves)
    assert isinstance(arguments, list)
    if chosen.keywords:
        forward(**arguments[0])
    else:
        forward(*arguments)


def serve(control: socket.socket, fds: list[int]) -> None:
    """Rehearse once, and hand over what was compiled until it ended, however it did."""
    del fds
    message, _ = receive(control)
    os.environ["TRITON_CACHE_DIR"] = str(cached.folder())
    builds.install(control, str(message["source"]))
    said = ""
    try:
        rehearse(message)
    except BaseException as error:
        said = explain(error)
    send(control, {"cache": cached.compiled(), "said": said})
