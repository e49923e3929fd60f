"""How much of the device's memory a workload will take, before any of it is kept."""

from dataclasses import asdict
from functools import partial
from types import ModuleType
from typing import Any, cast

import torch

from kernelsmith.evaluate.worker.reference import Message


def predicted(module: ModuleType, entry: str, message: Message, *, training: bool) -> Message:
    """What one forward of the task takes, and what the device has free and in all."""
    arguments, init = message["arguments"], message["init"]
    assert isinstance(arguments, dict)
    assert isinstance(init, dict)
    dtype = getattr(torch, str(message["dtype"])) if message["dtype"] else None
    target = getattr(module, entry)
    is_module = entry == "Model"

    def make_model() -> torch.nn.Module | None:
        values: Any = getattr(module, "get_init_inputs", list)(**init)
        made = target(**values) if isinstance(values, dict) else target(*values)
        return cast(torch.nn.Module, made.train(training))

    free, total = torch.cuda.mem_get_info()
    # It brings a symbolic algebra along: not for a process that others are forked from.
    from kernelsmith.evaluate.worker.cuda.footprint import footprint, tried

    made = make_model if is_module else lambda: None
    function = None if is_module else target
    inputs = partial(module.get_inputs, **arguments)
    # Libraries take scratch by what is free, up to most of a device, which others are using.
    torch.cuda.set_per_process_memory_fraction(float(str(message["share"])))
    try:
        found = tried(made, function, inputs, dtype)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    found = found or footprint(made, function, inputs, dtype)
    said = None if found is None else asdict(found)
    return {"footprint": said, "free": free, "total": total}
