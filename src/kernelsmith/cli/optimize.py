"""``kernelsmith optimize TASK``: from a PyTorch module to a faster kernel, with proof."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from kernelsmith.cli.command import Command
from kernelsmith.cli.elsewhere import add_evaluator
from kernelsmith.errors import UsageError


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", type=Path, nargs="?", help="a KernelBench file: Model, get_inputs")
    parser.add_argument(
        "--suite", type=Path, metavar="FOLDER", help="every task in a folder instead of one"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="where the run goes (runs/TASK, runs/TASK-2, ...)",
    )
    parser.add_argument(
        "--backend", default="auto", help="auto (triton with a GPU, else cpu), cpu, triton"
    )
    add_evaluator(parser)
    parser.add_argument("--json", action="store_true", help="one line of JSON at the end")
    who = parser.add_argument_group("who writes candidates")
    who.add_argument(
        "--proposer", default="auto", metavar="WHO",
        help="auto (llm or student with a model, else rules), rules, llm, student, replay:FILE",
    )  # fmt: skip
    who.add_argument(
        "--model", action="append", default=[], metavar="NAME",
        help="ask this model; repeatable. A folder that `train` wrote is served from here",
    )  # fmt: skip
    who.add_argument(
        "--base-url", action="append", default=[], metavar="URL",
        help="its OpenAI-compatible endpoint: one for all models, or one each",
    )  # fmt: skip
    who.add_argument(
        "--adapt", action="store_true",
        help="with a folder: an adapter of the model learns from the run's own best steps",
    )  # fmt: skip
    how = parser.add_argument_group("how to search")
    how.add_argument(
        "--preset", metavar="NAME",
        help="paper (40 steps), quick (12), sweep (4, for many tasks), thorough (512)",
    )  # fmt: skip
    how.add_argument("--config", type=Path, metavar="FILE", help="TOML; options here go before it")
    how.add_argument(
        "--policy", choices=("evolve", "best-of-n", "refine", "greedy", "random"), help="(evolve)"
    )
    how.add_argument("--concurrency", type=int, metavar="N", help="steps in flight (4)")
    how.add_argument("--seed", type=int, metavar="N")
    how.add_argument(
        "--fresh-captures", action="store_true",
        help="ask torch's compiler anew; keep nothing of what it says (the rules)",
    )  # fmt: skip
    add_budget(parser)


def add_budget(parser: argparse.ArgumentParser) -> None:
    """Options that end a run; shared with ``resume``."""
    when = parser.add_argument_group("when to stop (a suite shares money, tokens and seconds)")
    when.add_argument("--steps", type=int, metavar="N", help="candidates to judge (40)")
    when.add_argument("--target", type=float, metavar="X", help="this speed-up is enough")
    when.add_argument("--budget-usd", type=float, metavar="X")
    when.add_argument("--budget-tokens", type=int, metavar="N")
    when.add_argument("--budget-seconds", type=float, metavar="S")


def _run(args: argparse.Namespace) -> int:
    from kernelsmith.cli.choices import config_from, notes_on
    from kernelsmith.cli.ending import report
    from kernelsmith.cli.session import is_begun, load, new_folder, optimized
    from kernelsmith.cli.suite import fitting, run_suite, tasks_in

    if (args.task is None) is (args.suite is None):
        raise UsageError("name one task file, or --suite FOLDER for all tasks in a folder")
    config = config_from(args)
    if args.suite is not None:
        tasks, left_out = fitting(tasks_in(args.suite), config)
        _say([*notes_on(config, args), *([left_out] if left_out else [])])
        folder = args.out or new_folder(Path("runs"), args.suite.resolve().name)
        return run_suite(tasks, folder, config, as_json=args.json)
    task = load(args.task, config)
    folder = args.out or new_folder(Path("runs"), task.name)
    if is_begun(folder):
        raise UsageError(f"{folder} holds a run; go on with it: kernelsmith resume {folder}")
    _say(notes_on(config, args))
    return report(optimized(task, folder, config), as_json=args.json)


def _say(notes: Iterable[str]) -> None:
    for note in notes:
        print(note, file=sys.stderr)


COMMAND = Command("optimize", "Search for a faster kernel for one task.", _arguments, _run)
