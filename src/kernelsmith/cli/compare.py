"""``kernelsmith compare TASK A B``: two candidates measured directly against each other."""

import argparse
from pathlib import Path

from kernelsmith.cli.command import Command
from kernelsmith.cli.options import add_judging, opened_backend, progress, settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", type=Path, help="a KernelBench file")
    parser.add_argument("a", type=Path, help="the candidate to measure beside")
    parser.add_argument("b", type=Path, help="the candidate whose speed-up over A is wanted")
    add_judging(parser)


def _run(args: argparse.Namespace) -> int:
    from kernelsmith.api import load_task
    from kernelsmith.cli.card import print_card
    from kernelsmith.domain.codec import dumps
    from kernelsmith.domain.evaluation import Verdict
    from kernelsmith.evaluate.evaluator import LocalEvaluator
    from kernelsmith.evaluate.tasks import load_candidate

    chosen = settings(args)
    a, b = (load_candidate(path, args.backend) for path in (args.a, args.b))
    show = progress()
    with opened_backend(args.backend) as backend:
        task = load_task(args.task, backend=backend)
        evaluator = LocalEvaluator(backend, chosen)
        show(f"judging {args.a.name} ...")
        first = evaluator.judge(task, a)
        if first.verdict is not Verdict.PASSED:
            show("")
            _print(args, first, f"{args.a.name} on {task.name}", dumps, print_card)
            return 1
        show(f"measuring {args.b.name} beside {args.a.name} ...")
        found = evaluator.judge(task, b, baseline=a)
        show("")
    _print(args, found, f"{args.b.name} beside {args.a.name} on {task.name}", dumps, print_card)
    return 0 if found.verdict is Verdict.PASSED else 1


def _print(args, found, title, dumps, print_card) -> None:  # type: ignore[no-untyped-def]
    if args.json:
        print(dumps(found))
    else:
        print_card(found, title)


COMMAND = Command("compare", "Measure candidate B directly beside candidate A.", _arguments, _run)
