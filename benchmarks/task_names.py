"""A task's file in this process: what it defines, and its model."""

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from kernelsmith.domain.task import Task


def opened(task: Task) -> dict[str, Any]:
    """What the task's file defines."""
    module = ModuleType("task")
    sys.modules["task"] = module  # the compiler imports what it looks into
    exec(compile(task.source, "task.py", "exec"), vars(module))
    return vars(module)


def made(model: Any, names: dict[str, Any], init: Mapping[str, object]) -> Any:
    """One of ``model``, from what the task's file passes to its constructor."""
    given = names["get_init_inputs"](**init) if "get_init_inputs" in names else []
    return model(**given) if isinstance(given, dict) else model(*given)
