"""The functions that a script needs; the command line uses the same ones."""

import asyncio
from pathlib import Path

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.evaluate import tasks
from kernelsmith.evaluate.backend import Backend, load_backend
from kernelsmith.evaluate.backends.here import runs_on_gpu
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.settings import Settings
from kernelsmith.run.config import RunConfig
from kernelsmith.run.progress import Watch
from kernelsmith.run.proposers import make_proposer
from kernelsmith.run.result import Result
from kernelsmith.run.start import start


def load_task(path: str | Path, *, backend: Backend | str = "cpu") -> Task:
    """Read a KernelBench file; where it computes its workloads, that runs in the sandbox.

    Workloads named ``gpu: ...`` are left out where the backend runs on a processor.
    """
    name = backend if isinstance(backend, str) else backend.name

    def run_workloads(task: Task) -> object:
        opened = load_backend(backend) if isinstance(backend, str) else backend
        oracle = opened.oracle(task)
        try:
            return getattr(oracle, "workloads", None)
        finally:
            oracle.close()
            if isinstance(backend, str):
                opened.close()

    return tasks.fitting(tasks.load_task(Path(path), run_workloads), gpu=runs_on_gpu(name))


def load_candidate(path: str | Path, *, backend: str = "cpu") -> Candidate:
    """Read a candidate file."""
    return tasks.load_candidate(Path(path), backend)


def judge(
    task: Task,
    candidate: Candidate,
    *,
    baseline: Candidate | None = None,
    settings: Settings | None = None,
) -> Evaluation:
    """Judge one candidate on this machine; keep a ``LocalEvaluator`` open to judge many."""
    with LocalEvaluator(candidate.backend, settings) as evaluator:
        return evaluator.judge(task, candidate, baseline=baseline)


def optimize(
    task: Task | str | Path,
    folder: str | Path,
    *,
    config: RunConfig | None = None,
    watch: Watch | None = None,
) -> Result:
    """Search for a faster kernel and write what was found to ``folder``.

    Ctrl-C ends it cleanly: the result then says so, and how to go on.

    Raises:
        UsageError: The task cannot be judged, the folder holds a run, or the proposer cannot work.
    """
    config, folder = config or RunConfig(), Path(folder)
    if not isinstance(task, Task):
        task = load_task(task, backend=config.backend)
    proposer = make_proposer(config, folder)
    return asyncio.run(start(task, folder, config, proposer=proposer, watch=watch).go())
