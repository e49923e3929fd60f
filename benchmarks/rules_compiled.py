"""``torch.compile`` beside eager: as a baseline of the judge, or in a process of its own.

The judge never lets a candidate compile; a baseline may. So the reference itself, run eagerly, is
judged as the candidate against a baseline that wraps ``torch.compile``: the same processes, inputs,
interleaving and clocks as for any candidate. The ratio is turned round afterwards. Where the
compiler cannot run inside the sandbox, both sides run in one plain process, interleaved; the
record says which it was.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.report import without_paths
from benchmarks.rules_process import bounded
from kernelsmith.bench import compiled
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Library, Task
from kernelsmith.domain.timing import Ratio
from kernelsmith.errors import EvaluationLost, SmithError

OURS = {"default": "compile", "max-autotune": "max-autotune"}
MODES = {name: compiled.MODES[ours] for name, ours in OURS.items()}
TIMEOUT_S = 240.0
"""How long the compiler may take over its first call."""


def judged(compilers: compiled.Compilers, task: Task, mode: str, backend: str) -> dict[str, Any]:
    """Eager over compiled under the judge; ``said`` is ``passed``, or what went wrong."""
    free = replace(task, library=Library.ANY)
    candidate = Candidate(backend=backend, source=compiled.eager(task))
    try:
        found = compilers.judge_beside(free, candidate, OURS[mode])
    except EvaluationLost as error:
        return {"said": "lost", "message": without_paths(str(error)), "how": "judge"}
    except SmithError as error:
        return {"said": "usage", "message": without_paths(str(error)), "how": "judge"}
    return {"how": "judge", **turned(found)}


def turned(found: Evaluation) -> dict[str, Any]:
    """Compiled over eager becomes eager over compiled."""
    said: dict[str, Any] = {"said": found.verdict.value, "message": without_paths(found.message)}
    if found.timing is None:
        return said
    said |= _inverse(found.timing.speedup)
    if found.timing.call is not None:
        said["call"] = _inverse(found.timing.call)
    timed = found.timing.workloads[0]
    return said | {
        "eager_us": round(timed.median_us, 3),
        "compiled_us": round(timed.baseline_us, 3),
        "samples": timed.samples,
        "mode": timed.mode,
    }


def _inverse(ratio: Ratio) -> dict[str, float]:
    named = {"ratio": 1 / ratio.value, "low": 1 / ratio.high, "high": 1 / ratio.low}
    return {name: round(value, 5) for name, value in named.items()}


def in_a_plain_process(
    path: Path, mode: str, *, device: str, limit_s: float, gpu: str = ""
) -> dict[str, Any]:
    """The same ratio without a sandbox: one process, both sides in turns.

    Args:
        path: The task.
        mode: One of ``MODES``.
        device: As torch names it.
        limit_s: What it may take.
        gpu: The one that judges share by its lock, if any do.
    """
    asked = json.dumps({"task": str(path), "mode": mode, "device": device, "gpu": gpu})
    done = bounded("benchmarks.rules_plain", [asked], limit_s=limit_s)
    lines = done.output.strip().splitlines()
    if done.error or not lines:
        said = "no answer" if done.cut_short else "died"
        return {"said": said, "message": done.error, "how": "plain"}
    return {"how": "plain", **json.loads(lines[-1])}
