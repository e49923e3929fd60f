"""``torch.compile`` beside eager: under the judge, or in a process of its own.

The judge never lets a candidate compile; an entrant of ours may (``kernelsmith.bench.compiled``),
and is held to all else: inputs, comparison, interleaving and clocks are any candidate's. Where the
compiler cannot run inside the sandbox, both sides run in one plain process, interleaved; the
record says which it was. Records whose ``how`` is ``judge`` are
older and had it the other way round: eager as the candidate beside a compiled baseline.
"""

import json
from pathlib import Path
from typing import Any

from benchmarks.report import without_paths
from benchmarks.rules_process import bounded
from kernelsmith.bench import compiled
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import Ratio
from kernelsmith.errors import EvaluationLost, SmithError

OURS = {"default": "compile", "max-autotune": "max-autotune"}
MODES = {name: compiled.MODES[ours] for name, ours in OURS.items()}
ENTRANT = "entrant"
"""How it was measured where the judge did: as a candidate of our own."""
TIMEOUT_S = 240.0
"""How long the compiler may take over its first call."""


def judged(compilers: compiled.Compilers, task: Task, mode: str) -> dict[str, Any]:
    """Eager over compiled under the judge; ``said`` is a verdict, or why there is none."""
    try:
        found = compilers.judge(task, OURS[mode])
    except EvaluationLost as error:
        return {"said": "lost", "message": without_paths(str(error)), "how": ENTRANT}
    except SmithError as error:
        return {"said": "usage", "message": without_paths(str(error)), "how": ENTRANT}
    return {"how": ENTRANT, **kept(found)}


def kept(found: Evaluation) -> dict[str, Any]:
    """What the benchmark keeps of it."""
    said: dict[str, Any] = {"said": found.verdict.value, "message": without_paths(found.message)}
    said |= taken(found)
    if found.timing is None:
        return said
    said |= named(found.timing.speedup)
    if found.timing.call is not None:
        said["call"] = named(found.timing.call)
    timed = found.timing.workloads[0]
    return said | {
        "eager_us": round(timed.baseline_us, 3),
        "compiled_us": round(timed.median_us, 3),
        "samples": timed.samples,
        "pairs": len(timed.pairs),
        "mode": timed.mode,
    }


def taken(found: Evaluation) -> dict[str, Any]:
    """Where the seconds of an evaluation went: by stage, by part of the timing, by question."""
    said: dict[str, Any] = {}
    if found.spent:
        said["spent"] = _stages(found.spent)
    log = dict(found.device_log)
    for kept_as, name in (("timing", "seconds"), ("asked", "asked")):
        if name in log:
            said[kept_as] = log[name]
    if "judged again" in log:
        said["short"] = without_paths(log["judged again"])
    return said


def _stages(spent: tuple[tuple[str, float], ...]) -> dict[str, float]:
    """Seconds by stage; one that came several times has their sum."""
    found: dict[str, float] = {}
    for stage, seconds in spent:
        found[stage] = round(found.get(stage, 0.0) + seconds, 3)
    return found


def named(ratio: Ratio) -> dict[str, float]:
    """A ratio as records have it."""
    each = {"ratio": ratio.value, "low": ratio.low, "high": ratio.high}
    return {name: round(value, 5) for name, value in each.items()}


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
