"""What ``torch.compile`` makes of a reference, made ahead of judging: the files of its caches.

Run as a module, it compiles one task in one mode, in the way in which the judge's program loads and
calls it, and writes the files as JSON. The judge then begins with them: a process of the compiled
side finds everything in its caches, and nothing is compiled while the device is held.
"""

import base64
import functools
import json
import os
import signal
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from threading import Event
from typing import Any

from benchmarks.rules_compiled import OURS
from benchmarks.rules_process import Done, done_by, environment
from benchmarks.rules_tasks import Chosen
from kernelsmith.bench.compiled import compiling
from kernelsmith.domain.task import Task, Workload
from kernelsmith.evaluate.sandbox.channel import FILES_BYTES
from kernelsmith.evaluate.sandbox.syscalls import PR_SET_PDEATHSIG, prctl
from kernelsmith.propose.rules.compiler import nursery

NOTHING = b"{}"
"""No files."""
_LEFT = (".ttir", ".ttgir", ".llir", ".lock")
"""Not read from a cache."""


def seeded(
    chosen: Chosen, mode: str, *, backend: str, lock: Path | None, limit_s: float,
    beside: bool = True, stop: Event | None = None,
) -> tuple[bytes, Done]:  # fmt: skip
    """The files of one task by name, as JSON, from a process of its own; none where it failed.

    Args:
        chosen: The task.
        mode: Of ``torch.compile``.
        backend: Whose device it compiles for.
        lock: The judge's.
        limit_s: What it may take.
        beside: Whether somebody judges meanwhile, who is not to be disturbed by what runs.
        stop: Ends it.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        out = Path(folder, "files.json")
        asked = {
            "task": str(chosen.path), "structure": chosen.structure, "mode": mode,
            "device": "cpu" if backend == "cpu" else "cuda", "lock": str(lock) if lock else None,
            "beside": beside,
            "cache": folder + "/triton", "out": str(out),
        }  # fmt: skip
        ended = nursery.run(
            "benchmarks.rules_seed", [json.dumps(asked)], folder=Path(folder),
            environment=_environment(), gpu=backend != "cpu", timeout_s=limit_s, stop=stop,
        )  # fmt: skip
        done = done_by(ended, limit_s)
        whole = not done.error and out.is_file()
        return out.read_bytes() if whole else NOTHING, done


def _environment() -> dict[str, str]:
    """What is read when the compiler is loaded, which is before the source can say so."""
    ours = environment()
    # Part of what names a graph in the caches, though no C++ is compiled: the judge's have none.
    ours.pop("CXX", None)
    return ours | {"TORCHINDUCTOR_COMPILE_THREADS": "1"}


def files_in(folder: Path) -> dict[str, str]:
    """Every file by its relative name; with too many, the judge's processes compile themselves."""
    paths = [each for each in sorted(folder.rglob("*")) if each.is_file()]
    paths = [each for each in paths if each.suffix not in _LEFT]
    if sum(each.stat().st_size for each in paths) > FILES_BYTES:
        return {}
    return {
        str(each.relative_to(folder)): base64.b64encode(each.read_bytes()).decode()
        for each in paths
    }


def compile_once(task: Task, workload: Workload, mode: str, device: str, turn: Any) -> None:
    """Load what the judge loads and call it, as its program does."""
    import torch

    from kernelsmith.evaluate.worker import inputs
    from kernelsmith.evaluate.worker.program import execute
    from kernelsmith.evaluate.worker.trees import unflatten

    module = execute(compiling(task, mode))
    dtype = getattr(torch, workload.dtype) if workload.dtype else None
    with turn.held(alone=False):
        if task.is_function:
            forward = getattr(module, task.entry)
        else:
            values: Any = getattr(module, "get_init_inputs", list)(**dict(workload.init))
            with torch.device(device) if device != "cpu" else nullcontext():
                built = module.ModelNew
                forward = built(**values) if isinstance(values, dict) else built(*values)
            forward = forward.to(device, dtype) if dtype else forward.to(device)
            forward.train(task.training)
        made = inputs.make(
            module.get_inputs, dict(workload.arguments), dtype, 1, "plain", device
        )  # fmt: skip
        assert made is not None
        given: Any = unflatten(made.tree, made.leaves)
    with torch.no_grad():
        _ = forward(**given[0]) if made.keywords else forward(*given)


def run_alone(device: str, turn: Any) -> None:
    """Let what was compiled run, and be tried in its variants, only while the turn is held.

    Whoever takes the turn for one call leaves nothing on the device; inside of a turn, where calls
    are timed, they are as they would be by themselves.
    """
    import torch
    from torch._inductor.output_code import CompiledFxGraph

    own = CompiledFxGraph.__call__

    @functools.wraps(own)
    def call(self: Any, inputs: Any) -> Any:
        timed = turn.is_held
        with turn.held(alone=True):
            found = own(self, inputs)
            if device != "cpu" and not timed:
                torch.cuda.synchronize()
                torch.cuda.empty_cache()  # a library's scratch may be most of the device
            return found

    CompiledFxGraph.__call__ = call


def main() -> None:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    asked = json.loads(sys.argv[1])
    os.environ["TRITON_CACHE_DIR"] = asked["cache"]
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{asked['cache']}/inductor"
    import torch
    import torch._dynamo
    from torch._inductor.runtime import benchmarking

    from kernelsmith.propose.rules.compiler.turns import Turn, time_alone

    device = asked["device"]
    torch.set_num_threads(len(os.sched_getaffinity(0)) if device == "cpu" else 1)
    turn = Turn(asked["lock"])
    time_alone(benchmarking, turn)
    if asked["beside"]:
        run_alone(device, turn)
    chosen = Chosen(key="", path=Path(asked["task"]), structure=tuple(asked["structure"]))
    task = chosen.task(gpu=device != "cpu")
    for workload in (each for each in task.workloads if not each.held_out):
        compile_once(task, workload, OURS[asked["mode"]], device, turn)
        torch._dynamo.reset()
    Path(asked["out"]).write_text(json.dumps(files_in(Path(asked["cache"]))))
    os._exit(0)  # torch's helpers need not wind down


if __name__ == "__main__":
    main()
