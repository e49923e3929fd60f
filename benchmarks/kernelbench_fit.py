"""Which candidates and tasks KernelBench's harness can be asked about, with the reason if not."""

import re

from kernelsmith.domain.task import Task, Tolerance, Weights, Workload

_NUMBERS = {
    "B5": "reads the memory of other processes",
    "C14": "leaves processes behind",
    "C15": "takes the cores from everybody",
    "D5": "writes files for later runs",
    "D6": "writes into build caches",
    "F6": "writes where others import from",
    "F8": "exhausts or kills what it finds",
    "F9": "uses the network or installs packages",
}
_TEXT = (
    (r"os\.(kill|fork|system|_exit|popen|exec\w*|spawn\w*|remove|unlink|rename)\b", "os calls"),
    (r"\bsubprocess\b|\bfork\(|(?<!\.)\bclone\(|\bkill\(", "starts or ends processes"),
    (r"while True", "may never end"),
    (r"setpriority|sched_set", "changes how others are scheduled"),
    (r"AF_INET|import socket", "uses the network"),
    (r"open\([^)]*[\"'](w|a|x|r\+)b?[\"']", "writes files"),
)
_AT_OUR_JUDGE = (
    (r"kernelsmith\.evaluate", "patches Kernel-Smith's worker"),
    (r"S_ISSOCK|sendmsg", "speaks on Kernel-Smith's socket"),
)


def danger(number: str, source: str) -> str:
    """Return why a file is not run under KernelBench, empty if it is."""
    if number in _NUMBERS:
        return _NUMBERS[number]
    return _first(_TEXT, source)


def extras(task: Task) -> str:
    """Return what the task asks for that KernelBench's form cannot say, empty if nothing."""
    asked = {
        "a function": task.is_function,
        "workloads": task.workloads != (Workload(),),
        "a tolerance": task.tolerance != Tolerance(),
        "compute_dtype": task.compute_dtype is not None,
        "static weights": task.weights is Weights.STATIC,
        "train mode": task.training,
        "structure": bool(task.structure),
        "a baseline": task.baseline is not None,
    }
    return ", ".join(name for name, is_asked in asked.items() if is_asked)


def at_our_judge(source: str) -> str:
    """Return in what way a file is aimed at Kernel-Smith's own worker, empty if it is not."""
    return _first(_AT_OUR_JUDGE, source)


def _first(rules: tuple[tuple[str, str], ...], source: str) -> str:
    return next((reason for pattern, reason in rules if re.search(pattern, source)), "")
