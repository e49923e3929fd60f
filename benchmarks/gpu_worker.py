"""A judge that answers requests, one JSON line each, until its input ends.

Not imported by anyone: ``gpu_remote`` starts it as a module, so that a benchmark can begin with
a fresh judge, end one that hangs, and count what starting costs.
"""

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.report import without_paths
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Library
from kernelsmith.domain.timing import Ratio
from kernelsmith.errors import EvaluationLost, SmithError
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.settings import Settings, effort
from kernelsmith.evaluate.tasks import load_task


def chosen(asked: dict[str, Any]) -> Settings:
    """Return the named effort with some of its fields changed, those of ``gpu`` below it."""
    settings = effort(asked["effort"], backend=asked["backend"])
    changes = dict(asked["settings"])
    if switches := asked["gpu"]:
        changes["gpu"] = dataclasses.replace(settings.gpu, **switches)
    return dataclasses.replace(settings, **changes)


def answered(evaluator: LocalEvaluator, asked: dict[str, Any]) -> dict[str, Any]:
    """Judge one candidate and keep what a benchmark may want of it."""
    try:
        task = load_task(Path(asked["task"]))
        if asked["library"]:
            task = dataclasses.replace(task, library=Library(asked["library"]))
        if asked["structure"]:
            task = dataclasses.replace(task, structure=tuple(asked["structure"]))
        candidate = Candidate(backend=evaluator.backend.name, source=asked["source"])
        return kept(evaluator.judge(task, candidate))
    except EvaluationLost as error:
        return {"said": "lost", "message": without_paths(str(error))}
    except SmithError as error:
        return {"said": "usage", "message": without_paths(str(error))}


def kept(found: Evaluation) -> dict[str, Any]:
    device = dataclasses.asdict(found.device) | {"versions": dict(found.device.versions)}
    said: dict[str, Any] = {
        "said": found.verdict.value,
        "message": without_paths(found.message),
        "labels": {label.name.value: without_paths(label.reason) for label in found.labels},
        "spent": dict(found.spent),
        "judge": found.judge,
        "device": device,
    }
    if log := getattr(found, "device_log", ()):
        said["device_log"] = dict(log)
    if found.coverage is not None:
        said["own"] = round(found.coverage.own, 3)
    if found.timing is None:
        return said
    timed = found.timing.workloads[0]
    call = getattr(timed, "call", None)
    return (
        said
        | _ratio(timed.speedup)
        | {
            "call": _ratio(call.speedup) if call else None,
            "mode": str(getattr(timed, "mode", "")),
            "baseline_us": round(timed.baseline_us, 3),
            "candidate_us": round(timed.median_us, 3),
            "launches": timed.launches,
            "samples": timed.samples,
            "dropped": timed.dropped,
            "pairs": [round(pair.ratio, 5) for pair in timed.pairs],
        }
    )


def _ratio(ratio: Ratio) -> dict[str, float]:
    named = {"ratio": ratio.value, "low": ratio.low, "high": ratio.high}
    return {name: round(value, 5) for name, value in named.items()}


def main() -> None:
    asked = json.loads(sys.argv[1])
    # What anyone prints must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with LocalEvaluator(asked["backend"], chosen(asked)) as evaluator:
        for line in sys.stdin:
            print(json.dumps(answered(evaluator, json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
