"""Does the paper's claim hold in miniature? base, SFT, and SFT+GRPO on best, all and initial steps.

    python -m benchmarks.training_run --runs TEACHER --work FOLDER [--budget-s 540]

From a teacher's journals: data for each selection, one student, its imitation, one reinforcement
per selection with evaluations as reward, and all of them measured on tasks held out. Each stage is
a verb of ``kernelsmith train`` and goes on where it stopped: run it again until all is done. With
``--data FOLDER`` (one folder of ``train data`` per selection) no journals are needed.
"""

import argparse
import dataclasses
import json
import os
import shutil
import tarfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu_ledger import smi
from benchmarks.report import command, commit, say
from benchmarks.rules_process import bounded
from benchmarks.training_figure import rewards
from kernelsmith.evaluate.backend import load_backend
from kernelsmith.training.data.build import HELD_OUT, SFT
from kernelsmith.training.data.rows import read_rows
from kernelsmith.training.recipes.config import load_config, preset

SELECTIONS = ("best", "all", "initial")
_LEAST_S = 20.0
"""With less time than this, nothing is begun."""
_END_S = 12.0
"""What saving takes after the last step."""
_CURVES = ("step", "loss", "eval_loss", "mean_reward", "correct", "readable", "faster", "gain",
           "judged", "entropy", "completions/mean_length", "seconds_generating",
           "seconds_judging", "seconds_waiting", "seconds_updating")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One verb, and the file that is there once it is done."""

    name: str
    arguments: tuple[str, ...]
    done: Path
    may_stop: bool = False
    """Whether it saves and stops when told how many seconds it has."""


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, nargs="+", metavar="FOLDER", help="of a teacher")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="made before; or a .tar.xz")
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER", help="all that comes")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the JSON (work/training.json)")
    parser.add_argument("--model", metavar="FOLDER", help="the student (one made from nothing)")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML instead of a preset")
    parser.add_argument("--select", nargs="+", default=list(SELECTIONS), metavar="NAME")
    parser.add_argument("--most", type=int, metavar="N", help="samples a file, balanced")
    parser.add_argument("--samples", type=int, default=4, help="answers a held-out question (4)")
    parser.add_argument("--limit", type=int, default=40, help="held-out questions (40)")
    parser.add_argument("--evolve", type=int, default=10, help="steps on held-out tasks (10)")
    parser.add_argument("--in-flight", type=int, default=4)
    parser.add_argument("--evaluator", metavar="WHERE", help="as of kernelsmith train: cores:2 ...")
    parser.add_argument("--budget-s", type=float, default=540.0, metavar="S")
    parser.add_argument("--commit", help="what is measured, where there is no git to ask")
    return parser


def stages(args: argparse.Namespace) -> list[Stage]:
    """Everything that is to be done, in order."""
    work: Path = args.work
    recipe = ["--config", str(args.config)] if args.config else ["--preset", args.preset]
    judged = ["--store", str(work / "evaluations.jsonl"), "--in-flight", str(args.in_flight)]
    judged += ["--evaluator", args.evaluator] if args.evaluator else []
    first = work / f"data-{args.select[0]}"
    base = Path(args.model) if args.model else work / "base"
    sft = work / "sft"
    found = [
        Stage(name="sft", done=sft / "model" / "config.json", may_stop=True,
              arguments=("sft", "--data", str(first), "--model", str(base), "--out", str(sft),
                         *recipe)),
    ]  # fmt: skip
    models = {"base": base, "sft": sft / "model"}
    for name in args.select:
        out = work / f"grpo-{name}"
        models[f"sft+grpo({name})"] = out / "model"
        found.append(
            Stage(name=f"grpo {name}", done=out / "model" / "config.json", may_stop=True,
                  arguments=("grpo", "--data", str(work / f"data-{name}"), "--model",
                             str(sft / "model"), "--out", str(out), *recipe, *judged))
        )  # fmt: skip
    for name, model in models.items():
        out = work / "measured" / name
        found.append(
            Stage(name=f"measure {name}", done=out / "table.json",
                  arguments=("measure", "--data", str(first), "--model", f"{name}={model}",
                             "--samples", str(args.samples), "--limit", str(args.limit),
                             "--evolve", str(args.evolve), "--out", str(out), *judged))
        )  # fmt: skip
    return found


def prepare(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Data of every selection, with the same tasks held out, and the student before it learns."""
    work: Path = args.work
    work.mkdir(parents=True, exist_ok=True)
    if args.data is not None and _missing(args):
        _unpacked(args.data, work)
    missing = _missing(args)
    if missing and not args.runs:
        parser.error(f"no data for {', '.join(missing)}: name --runs, or --data that has it")
    for name in missing:
        out = work / f"data-{name}"
        more = ["--most", str(args.most)] if args.most else []
        done = bounded(
            "kernelsmith.cli.main",
            ["train", "data", *map(str, args.runs), "--select", name, "--out", str(out), *more],
            limit_s=600.0,
        )
        if done.error:
            parser.error(f"data {name}: {done.error}")
        say(f"data {name}: {done.output.strip()}")
    base = work / "base"
    if args.model is None and not (base / "config.json").is_file():
        from kernelsmith.training.recipes.model import save, tiny

        config = load_config(args.config) if args.config else preset(args.preset)
        rows = read_rows(work / f"data-{args.select[0]}" / SFT)
        save(*tiny(rows, config.tiny, seed=config.sft.seed), base)


def _missing(args: argparse.Namespace) -> list[str]:
    """Selections that have no data yet."""
    return [each for each in args.select if not (args.work / f"data-{each}" / SFT).is_file()]


def _unpacked(data: Path, work: Path) -> None:
    """Folders ``data-NAME`` from a folder or an archive."""
    if data.is_dir():
        for each in data.glob("data-*"):
            shutil.copytree(each, work / each.name, dirs_exist_ok=True)
        return
    with tarfile.open(data) as archive:
        archive.extractall(work, filter="data")


def go_through(todo: Sequence[Stage], left_s: Callable[[], float]) -> tuple[dict[str, float], str]:
    """Do what is not done yet while there is time; returns the seconds each took, and a failure."""
    took: dict[str, float] = {}
    for stage in todo:
        if stage.done.is_file():
            continue
        left = left_s()
        if left < _LEAST_S:
            say(f"{stage.name}: no time left; run again to go on")
            break
        limited = ("--max-seconds", str(round(left - _END_S))) if stage.may_stop else ()
        begun = time.monotonic()
        done = bounded(
            "kernelsmith.cli.main", ["train", *stage.arguments, *limited], limit_s=left + _END_S
        )
        took[stage.name] = round(time.monotonic() - begun, 1)
        said = done.output.strip().splitlines()[-1:] or [""]
        say(f"{stage.name}: {took[stage.name]} s, {done.error or said[0][:200]}")
        if not stage.done.is_file():
            if not done.cut_short and done.error:
                return took, f"{stage.name} failed: {done.error}"
            break
    return took, ""


def summary(args: argparse.Namespace) -> dict[str, Any]:
    """Tables, curves and what the data was, of whatever is there."""
    work: Path = args.work
    curves = {each.name: curve for each in sorted(work.iterdir()) if (curve := _curve(each))}
    cards = {path.parent.name: path.read_text() for path in sorted(work.glob("data-*/card.md"))}
    return {
        "models": [skill for path in _tables(work) for skill in json.loads(path.read_text())],
        "curves": curves, "data": cards,
    }  # fmt: skip


def _tables(work: Path) -> list[Path]:
    """Of each model that was measured, in that order."""
    found = (work / "measured").glob("*/table.json")
    return sorted(found, key=lambda each: each.stat().st_mtime)


def _curve(folder: Path) -> list[dict[str, float]]:
    """What was logged, without what only the machine wants to know."""
    from kernelsmith.training.recipes.watching import read_metrics

    points = [
        {name: round(each[name], 5) for name in _CURVES if name in each}
        for each in read_metrics(folder)
    ]
    return [each for each in points if len(each) > 1]


def main() -> None:
    parser = options()
    args = parser.parse_args()
    begun = time.monotonic()
    prepare(args, parser)
    out: Path = args.out or args.work / "training.json"
    known = json.loads(out.read_text()) if out.is_file() else {"sessions": []}
    todo = stages(args)
    took, failure = go_through(todo, lambda: args.budget_s - (time.monotonic() - begun))
    backend = read_rows(args.work / f"data-{args.select[0]}" / HELD_OUT)[0].backend
    device = load_backend(backend).device()
    session = {
        "command": command("training_run", args), "commit": args.commit or commit(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "seconds": took,
        "gpu": smi("name,driver_version"), "cores": os.cpu_count(),
    }  # fmt: skip
    body = {
        "benchmark": "training_run",
        "device": dataclasses.asdict(device) | {"versions": dict(device.versions)},
        "sessions": [*known["sessions"], session], **summary(args),
    }  # fmt: skip
    out.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n")
    rewards(body["curves"], out.with_suffix(".svg"))
    left = [each.name for each in todo if not each.done.is_file()]
    if failure:
        raise SystemExit(failure)
    say(f"wrote {out.name}; left to do: {', '.join(left) or 'nothing'}")
    if not left:
        first, *others = [each.with_name("table.md").read_text() for each in _tables(args.work)]
        print(first, *(each.splitlines(keepends=True)[-1] for each in others), sep="", end="")


if __name__ == "__main__":
    main()
