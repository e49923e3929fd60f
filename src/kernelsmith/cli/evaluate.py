"""``kernelsmith evaluate TASK CANDIDATE``: one verdict."""

import argparse
from pathlib import Path

from kernelsmith.cli.command import Command
from kernelsmith.cli.options import add_judging, opened_backend, progress, settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", type=Path, help="a KernelBench file: Model, get_inputs, ...")
    parser.add_argument("candidate", type=Path, help="a file that defines ModelNew")
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="measure beside this candidate, not eager"
    )
    add_judging(parser)


def _run(args: argparse.Namespace) -> int:
    from kernelsmith.api import load_task
    from kernelsmith.cli.card import print_card
    from kernelsmith.domain.codec import dumps
    from kernelsmith.domain.evaluation import Verdict
    from kernelsmith.evaluate.evaluator import LocalEvaluator
    from kernelsmith.evaluate.tasks import load_candidate

    chosen = settings(args)
    candidate = load_candidate(args.candidate, args.backend)
    baseline = load_candidate(args.baseline, args.backend) if args.baseline else None
    show = progress()
    with opened_backend(args.backend) as backend:
        task = load_task(args.task, backend=backend)
        show(f"judging {args.candidate.name} on {task.name} ...")
        found = LocalEvaluator(backend, chosen).judge(task, candidate, baseline=baseline)
        show("")
    if args.json:
        print(dumps(found))
    else:
        print_card(found, f"{args.candidate.name} on {task.name}")
    return 0 if found.verdict is Verdict.PASSED else 1


COMMAND = Command("evaluate", "Judge one candidate on one task.", _arguments, _run)
