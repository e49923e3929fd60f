"""``kernelsmith evaluate TASK CANDIDATE``: one verdict."""

import argparse
from pathlib import Path

from kernelsmith.cli.command import Command
from kernelsmith.cli.options import add_judging, progress


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", type=Path, help="a KernelBench file: Model, get_inputs, ...")
    parser.add_argument("candidate", type=Path, help="a file that defines ModelNew")
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="measure beside this candidate, not eager"
    )
    add_judging(parser)


def _run(args: argparse.Namespace) -> int:
    from kernelsmith.cli.card import print_card
    from kernelsmith.cli.judging import judging
    from kernelsmith.domain.codec import dumps
    from kernelsmith.domain.evaluation import Verdict

    files = (args.candidate,) if args.baseline is None else (args.candidate, args.baseline)
    show = progress()
    with judging(args, args.task, files) as given:
        candidate, *beside = given.candidates
        show(f"judging {args.candidate.name} on {given.task.name} ...")
        found = given.judge(given.task, candidate, baseline=beside[0] if beside else None)
        show("")
    if args.json:
        print(dumps(found))
    else:
        print_card(found, f"{args.candidate.name} on {given.task.name}")
    return 0 if found.verdict is Verdict.PASSED else 1


COMMAND = Command("evaluate", "Judge one candidate on one task.", _arguments, _run)
