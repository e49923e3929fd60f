"""``kernelsmith compare TASK A B``: two candidates measured directly against each other."""

import argparse
from pathlib import Path

from kernelsmith.cli.command import Command
from kernelsmith.cli.options import add_judging, progress


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", type=Path, help="a KernelBench file")
    parser.add_argument("a", type=Path, help="the candidate to measure beside")
    parser.add_argument("b", type=Path, help="the candidate whose speed-up over A is wanted")
    add_judging(parser)


def _run(args: argparse.Namespace) -> int:
    from kernelsmith.cli.card import print_card
    from kernelsmith.cli.judging import judging
    from kernelsmith.domain.codec import dumps
    from kernelsmith.domain.evaluation import Verdict

    show = progress()
    with judging(args, args.task, (args.a, args.b)) as given:
        a, b = given.candidates
        show(f"judging {args.a.name} ...")
        found, title = given.judge(given.task, a), args.a.name
        if found.verdict is Verdict.PASSED:
            show(f"measuring {args.b.name} beside {args.a.name} ...")
            found = given.judge(given.task, b, baseline=a)
            title = f"{args.b.name} beside {args.a.name}"
        show("")
    if args.json:
        print(dumps(found))
    else:
        print_card(found, f"{title} on {given.task.name}")
    return 0 if found.verdict is Verdict.PASSED else 1


COMMAND = Command("compare", "Measure candidate B directly beside candidate A.", _arguments, _run)
