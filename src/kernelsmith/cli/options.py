"""Arguments and values that several verbs share."""

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import replace

from kernelsmith.cli.elsewhere import add_evaluator
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backend import known_backends
from kernelsmith.evaluate.settings import EFFORTS, Settings, effort


def add_judging(parser: argparse.ArgumentParser) -> None:
    """Options of every verb that judges."""
    parser.add_argument(
        "--backend",
        help=f"{', '.join(sorted(known_backends()))} (default: cpu, or what the evaluator is for)",
    )
    add_evaluator(parser)
    parser.add_argument(
        "--effort",
        choices=EFFORTS,
        default="usual",
        help="quick: one process pair; thorough: at least six, for numbers to be quoted",
    )
    parser.add_argument(
        "--timeout", type=float, default=30.0, metavar="S", help="seconds per request (30)"
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of a card")


def settings(args: argparse.Namespace) -> Settings:
    """How thorough to be, from the options."""
    if not args.timeout > 0:
        raise UsageError(f"--timeout is a number of seconds above 0; got {args.timeout}")
    return replace(effort(args.effort, args.backend), timeout_s=args.timeout)


def progress() -> Callable[[str], None]:
    """A function that shows what is being done: one changing line on a terminal, else lines."""
    live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def show(text: str) -> None:
        if live:
            print(f"\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)
        elif text:
            print(text, file=sys.stderr, flush=True)

    return show
