"""A suite: tasks with stable ids, from wherever the user has them, and those that cannot be had.

Nothing here judges or times. Whatever a suite ships besides tasks (its own comparison, its golden
times from other machines) stays unread: every number comes from our judge, with the reference timed
in the same run.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One task of a suite, with what tables group it by."""

    id: str
    """Stable over runs and machines, for instance ``kernelbench/level1/23``."""
    task: Task
    level: str = ""
    """Level or difficulty in the suite's own words."""
    category: str = ""
    """The suite's own grouping."""
    family: str = ""
    """Ours, the same words for all suites: see ``suites/families.py``."""
    dtype: str = ""
    """Of what is timed; ``float32`` where the source does not say otherwise."""
    note: str = ""
    """What to know before quoting a number. Begins with ``degenerate:`` where the task is known
    to accept kernels that do not do the work, with ``suspect:`` where the tolerance decides."""

    def __post_init__(self) -> None:
        if not self.id or self.id != self.id.strip() or " " in self.id:
            raise ValueError(f"an id is one word; got {self.id!r}")

    @property
    def is_degenerate(self) -> bool:
        """Whether the task is known to accept kernels that do not do the work."""
        return self.note.startswith("degenerate:")

    @property
    def is_suspect(self) -> bool:
        """Whether anything at all is known against the task, degenerate or not."""
        return self.note.startswith(("degenerate:", "suspect:"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """A task that the suite lists and that cannot be judged here, with the reason."""

    id: str
    reason: str
    level: str = ""
    """As of ``Entry``; empty where it cannot be said either."""

    def __post_init__(self) -> None:
        if not self.reason:
            raise ValueError(f"{self.id} is absent for a reason; it was not given")


Wanted = Callable[[str], bool]
"""Whether a task of that id is asked for."""


def every(id: str) -> bool:
    """Want all of them."""
    return True


class Suite(Protocol):
    """Yields tasks in the suite's own order. Never runs a candidate, never judges."""

    @property
    def name(self) -> str:
        """The first part of every id."""
        ...

    def entries(self) -> Iterator[Entry | Absent]:
        """Yield every task of the suite, or why it is not there; each id once."""
        ...


@dataclass(frozen=True, slots=True)
class _Known:
    where: str
    """Module and class, imported when asked for."""
    needs: str
    """What stands behind the colon; empty: nothing does."""
    get: str
    """How a user gets it."""
    runs: bool = False
    """Whether its scripts run, one by one, to say their calls: those that are not wanted do not."""


_CLONE = "git clone https://github.com"
_KNOWN = {
    "builtin": _Known("builtin:Builtin", "", "it comes with kernelsmith's sources"),
    "cuda": _Known("cuda:CudaTasks", "", "it comes with kernelsmith's sources"),
    "cuda-folder": _Known(
        "cuda:CudaFolder", "PATH", "any folder of task files with a constant CUDA, see docs/maca.md"
    ),
    "kernelbench": _Known(
        "kernelbench:KernelBench", "PATH", f"{_CLONE}/ScalingIntelligence/KernelBench"
    ),
    "kernelbench-x": _Known(
        "kernelbench_x:KernelBenchX", "PATH", f"{_CLONE}/BonnieW05/KernelBenchX", runs=True
    ),
    "tritonbench-g": _Known(
        "tritonbench:TritonBenchG", "PATH", f"{_CLONE}/thunlp/TritonBench", runs=True
    ),
    "tritonbench-t": _Known(
        "tritonbench:TritonBenchT", "PATH", f"{_CLONE}/thunlp/TritonBench", runs=True
    ),
    "robust-kbench": _Known(
        "robust_kbench:RobustKBench", "PATH", f"{_CLONE}/SakanaAI/robust-kbench"
    ),
    "flashinfer": _Known(
        "flashinfer:FlashInfer", "PATH",
        "git clone https://huggingface.co/datasets/flashinfer-ai/flashinfer-trace",
    ),
    "multikernelbench": _Known(
        "multikernelbench:MultiKernelBench", "PATH", f"{_CLONE}/wzzll123/MultiKernelBench",
        runs=True,
    ),
    "folder": _Known("folder:Folder", "PATH", "any folder of KernelBench files"),
    "table": _Known(
        "table:Table", "FILE.parquet|FILE.jsonl", "any parquet or jsonl with a column `code`"
    ),
    "aten": _Known("aten:Aten", "", "it is made from the PyTorch that is installed"),
}  # fmt: skip


_HAVE_THEM = (
    "tasks of it that you have as KernelBench files (Model and get_inputs) are read with "
    "folder:PATH, as rows with a column `code` with table:FILE, beside a CUDA kernel with "
    "cuda-folder:PATH"
)
_UNREAD = {
    "cudabench": "its tasks (https://github.com/CUDA-Bench/CUDABench) are CUDA programs that write "
    "files, compared by Python beside them: there is no reference that could run beside a kernel; "
    "write one in PyTorch",
    "tritongym": "it is described at https://tritongym.picasso-lab.com/, and no public source of "
    "its tasks was found; their references are PyTorch, so ask its authors for them",
}
"""Suites that are known and not read, and why."""


def known_suites() -> dict[str, str]:
    """Every suite that can be read, by name: how it is asked for."""
    return {name: f"{name}:{each.needs}" if each.needs else name
            for name, each in sorted(_KNOWN.items())}  # fmt: skip


def is_known(name: str) -> bool:
    """Whether a suite is called so, also one that is not read."""
    return name in _KNOWN or name.lower() in _UNREAD


def settled(spec: str) -> str:
    """What a user wrote, so that it means the same from any folder."""
    name, _, where = spec.partition(":")
    return f"{name}:{Path(where).expanduser().resolve()}" if where else spec


def open_suite(spec: str, wanted: Wanted = every) -> Suite:
    """Find a suite by what the user wrote: a name, or a name and a path, ``kernelbench:PATH``.

    A suite may give more than is wanted; it leaves out what it would have to run in vain.

    Raises:
        UsageError: There is no such suite, or it is not where the user says; the message says
            how to get it.
    """
    name, _, where = spec.partition(":")
    known = _KNOWN.get(name)
    if name.lower() in _UNREAD:
        raise UsageError(f"suite {name!r} is not read: {_UNREAD[name.lower()]}; {_HAVE_THEM}")
    if known is None:
        raise UsageError(f"no suite {name!r}; known are {', '.join(known_suites().values())}")
    if known.needs and not where:
        raise UsageError(
            f"suite {name!r} is read from where you have it: {name}:{known.needs}; "
            f"to get it: {known.get}"
        )
    if where and not known.needs:
        raise UsageError(f"suite {name!r} takes no path; got {where!r}")
    module, _, attribute = known.where.partition(":")
    maker = getattr(import_module(f"kernelsmith.bench.suites.{module}"), attribute)
    if not known.needs:
        suite: Suite = maker()
        return suite
    path = Path(where).expanduser()
    if not path.exists():
        raise UsageError(f"there is no {str(path)!r}; to get suite {name!r}: {known.get}")
    try:
        suite = maker(path, wanted) if known.runs else maker(path)
    except UsageError as error:
        raise UsageError(f"{error}; to get suite {name!r}: {known.get}") from error
    return suite
