"""``kernelsmith agent``: a coding agent is the proposer, by ask and tell."""

import argparse
import json
import os
import sys
from pathlib import Path

from kernelsmith.cli.command import Command
from kernelsmith.errors import UsageError


def _arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    begin = verbs.add_parser("start", help="begin a run that waits for agents")
    begin.add_argument("task", type=Path, help="a KernelBench file")
    begin.add_argument("--out", type=Path, required=True, metavar="RUN", help="the run's folder")
    begin.add_argument("--backend", default="auto", help="auto, cpu or triton")
    begin.add_argument(
        "--steps", type=int, default=40, metavar="N", help="candidates to judge (40)"
    )
    begin.add_argument(
        "--at-once", type=int, default=4, metavar="N", help="briefs that are out at a time (4)"
    )
    begin.add_argument("--seed", type=int, default=0)
    asks = verbs.add_parser("ask", help="print briefs to answer")
    asks.add_argument("folder", type=Path, metavar="RUN")
    asks.add_argument("-n", dest="count", type=int, default=1, help="how many (1)")
    asks.add_argument("--as", dest="agent", default=_name(), metavar="NAME", help="who asks")
    asks.add_argument("--json", action="store_true", help="a list of number and prompt")
    tells = verbs.add_parser("tell", help="hand in candidates and hear what the judge says")
    tells.add_argument("folder", type=Path, metavar="RUN")
    tells.add_argument(
        "replies", nargs="+", metavar="NUMBER=FILE", help="the brief's number and the source file"
    )
    tells.add_argument("--json", action="store_true", help="a list of what became of each")
    shows = verbs.add_parser("status", help="what is waiting, what was found")
    shows.add_argument("folder", type=Path, metavar="RUN")
    shows.add_argument("--json", action="store_true")
    serves = verbs.add_parser("mcp", help="serve ask, tell and status to an MCP client on stdio")
    serves.add_argument("folder", type=Path, metavar="RUN")


def _name() -> str:
    return os.environ.get("KERNELSMITH_AGENT") or f"agent-{os.getppid()}"


def _run(args: argparse.Namespace) -> int:
    actions = {"start": _start, "ask": _ask, "tell": _tell, "status": _status, "mcp": _mcp}
    return actions[args.action](args)


def _start(args: argparse.Namespace) -> int:
    from dataclasses import replace

    from kernelsmith.api import load_task
    from kernelsmith.evaluate.backends.here import usual_backend
    from kernelsmith.run.agency import begin, orders_of
    from kernelsmith.run.config import Budget, ProposerSpec, RunConfig

    backend = args.backend
    if backend == "auto":
        backend = usual_backend()
    config = replace(
        RunConfig(), backend=backend, seed=args.seed, concurrency=args.at_once,
        budget=Budget(steps=args.steps), proposer=ProposerSpec(kind="agent"),
    )  # fmt: skip
    task = load_task(args.task, backend=backend)
    begin(task, args.out, config)
    waiting = len(orders_of(args.out))
    print(f"{args.out}: {waiting} briefs wait; next: kernelsmith agent ask {args.out} -n {waiting}")
    return 0


def _ask(args: argparse.Namespace) -> int:
    from kernelsmith.run.agency import ask

    orders = ask(args.folder, count=args.count, agent=args.agent)
    if args.json:
        print(json.dumps([{"number": each.number, "prompt": each.text} for each in orders]))
        return 0
    if not orders:
        print("nothing waits: all briefs are claimed or the run has ended", file=sys.stderr)
    for order in orders:
        print(order.text)
        print(f"(answer with: kernelsmith agent tell {args.folder} {order.number}=FILE)\n")
    return 0


def _tell(args: argparse.Namespace) -> int:
    from kernelsmith.cli.options import progress
    from kernelsmith.run.agency import tell
    from kernelsmith.run.feedback import as_json, in_words

    replies: dict[int, str] = {}
    for text in args.replies:
        number, mark, name = text.partition("=")
        if not mark or not number.isdigit():
            raise UsageError(f"write NUMBER=FILE, such as 3=kernel.py; got {text!r}")
        replies[int(number)] = _read(Path(name))
    show = progress()
    show(f"judging {len(replies)} ...")
    answers = tell(
        args.folder, replies, waiting=lambda: show("another process is judging; waiting ...")
    )
    show("")
    if args.json:
        print(json.dumps([as_json(each) for each in answers]))
    else:
        print("\n\n".join(in_words(each) for each in answers))
    return 0


def _status(args: argparse.Namespace) -> int:
    from kernelsmith.run.feedback import status

    said = status(args.folder)
    if args.json:
        print(json.dumps(said))
        return 0
    for key, value in said.items():
        print(f"{key}: {value if not isinstance(value, list) else ', '.join(map(str, value))}")
    return 0


def _mcp(args: argparse.Namespace) -> int:
    from kernelsmith.cli.agent_mcp import serve

    serve(args.folder)
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error


COMMAND = Command(
    "agent", "Let a coding agent be the proposer: ask, tell, status.", _arguments, _run
)
