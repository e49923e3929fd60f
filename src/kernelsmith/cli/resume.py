"""``kernelsmith resume RUN``: go on where a run ended or was stopped."""

import argparse
from dataclasses import replace
from pathlib import Path

from kernelsmith.cli.command import Command
from kernelsmith.cli.elsewhere import add_evaluator
from kernelsmith.cli.optimize import add_budget


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--json", action="store_true", help="one line of JSON at the end")
    add_evaluator(parser)
    add_budget(parser)


def _run(args: argparse.Namespace) -> int:
    from kernelsmith.cli.choices import budget_from, refuse_unpriced, within_recording
    from kernelsmith.cli.ending import report
    from kernelsmith.cli.runs import folder_of, read_run
    from kernelsmith.cli.session import resumed

    folder = folder_of(args.folder)
    recorded = read_run(folder)
    config = recorded.config
    config = within_recording(replace(config, budget=budget_from(args, config.budget)))
    if args.budget_usd is not None:
        refuse_unpriced(config.proposer)
    if args.evaluator is not None:
        config = replace(config, evaluator=args.evaluator)
    return report(resumed(folder, config, recorded.header.task), as_json=args.json)


COMMAND = Command("resume", "Go on with a run that was stopped, or give it more.", _arguments, _run)
