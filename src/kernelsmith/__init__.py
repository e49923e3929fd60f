"""Kernel-Smith turns a PyTorch module into a faster kernel, with proof that it is right.

from kernelsmith import judge, load_candidate, load_task

found = judge(load_task("task.py"), load_candidate("kernel.py"))
print(found.verdict, found.timing and found.timing.speedup)
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from kernelsmith.api import judge, load_candidate, load_task
    from kernelsmith.domain.candidate import Candidate
    from kernelsmith.domain.evaluation import Evaluation, Verdict
    from kernelsmith.domain.task import Task, Workload
    from kernelsmith.domain.timing import Timing

__all__ = [
    "Candidate",
    "Evaluation",
    "Task",
    "Timing",
    "Verdict",
    "Workload",
    "judge",
    "load_candidate",
    "load_task",
]

_HOMES = {
    "Candidate": "kernelsmith.domain.candidate",
    "Evaluation": "kernelsmith.domain.evaluation",
    "Verdict": "kernelsmith.domain.evaluation",
    "Task": "kernelsmith.domain.task",
    "Workload": "kernelsmith.domain.task",
    "Timing": "kernelsmith.domain.timing",
    "judge": "kernelsmith.api",
    "load_candidate": "kernelsmith.api",
    "load_task": "kernelsmith.api",
}


def __getattr__(name: str) -> object:
    """Load a promised name when it is first used, so that importing the package costs nothing."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'kernelsmith' has no attribute {name!r}")
