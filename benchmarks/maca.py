"""The 45 CUDA references judged, and their mechanical translations to MACA under emulation.

``python -m benchmarks.maca --part cuda`` judges each task's CUDA kernel on the GPU beside eager;
``--part maca`` builds what ``rules`` make of it for MetaX and judges that on the emulated backend:
right or not, waves of 64 included, and no time at all. Rows are on disk after every evaluation, and
a second run goes on from there. Speed under emulation is measured by nobody and shown nowhere.
"""

import argparse
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from benchmarks.resumed import RESULTS, Resumed
from kernelsmith.api import load_task
from kernelsmith.domain.candidate import Candidate
from kernelsmith.errors import EvaluationLost, SmithError
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.settings import effort
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.maca.family import cuda_of
from kernelsmith.propose.rules.maca.translation import to_maca

TASKS = Path(__file__).parents[1] / "tasks" / "cuda"
BACKENDS = {"cuda": "cuda", "maca": "maca-emulated"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=tuple(BACKENDS), required=True)
    parser.add_argument("--out", type=Path, default=RESULTS / "maca-h200.json")
    parser.add_argument("--budget-s", type=float, default=540.0)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--retry", action="store_true", help="judge again what did not pass")
    args = parser.parse_args()
    kept = Resumed(args.out, budget_s=args.budget_s)
    backend = BACKENDS[args.part]
    settings = replace(effort("quick", "cuda"), timeout_s=60.0)
    with LocalEvaluator(backend, settings) as evaluator:
        for path in sorted(TASKS.glob("*.py")):
            key = f"{args.part}: {path.stem}"
            known = kept.rows.get(key)
            if known and not (args.retry and known["verdict"] != "passed"):
                continue
            if kept.is_over or (args.only and path.stem not in args.only):
                continue
            row = judged(evaluator, path, backend, args.part)
            kept.add(key, **row)
            print(f"{key:32s} {row['verdict']:13s} {row.get('speedup', '')} {row['s']} s "
                  f"{str(row['message'])[:200]!r}", flush=True)  # fmt: skip
    mine = {key: row for key, row in kept.rows.items() if key.startswith(args.part)}
    print(Counter(str(row["verdict"]) for row in mine.values()), f"of {len(mine)}")


def judged(evaluator: LocalEvaluator, path: Path, backend: str, part: str) -> dict[str, object]:
    begun = time.monotonic()
    row: dict[str, object] = {"verdict": "no verdict", "message": "", "labels": []}
    try:
        task = load_task(path, backend=backend)
        source = cuda_of(task) or ""
        source = to_maca(source) if part == "maca" else source
        found = evaluator.judge(task, Candidate(backend=backend, source=source))
        row |= {
            "verdict": found.verdict.value,
            "message": found.message[:600],
            "labels": [f"{label.name.value}: {label.reason}"[:160] for label in found.labels],
            "device": str(found.device),
            "kernels": [kernel.name for kernel in found.kernels if kernel.own],
            "error": max((each.error for each in found.accuracy), default=None),
        }
        if found.timing is not None:
            assert part == "cuda", "an emulated evaluation has no timing"
            row["speedup"] = str(found.timing.speedup)
    except NotRecognised as error:
        row |= {"verdict": "not translated", "message": str(error)}
    except (SmithError, EvaluationLost) as error:
        row["message"] = str(error)[:600]
    return {**row, "s": round(time.monotonic() - begun, 2)}


if __name__ == "__main__":
    main()
