"""What the benchmarks share: options, tables, and a JSON file that says how a number came about."""

import argparse
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelsmith.domain.device import Device

ROOT = Path(__file__).parent.parent
HOW_TO_GET_KERNELBENCH = (
    "no KernelBench columns: git clone the KernelBench repository and pass --kernelbench PATH"
)


def options(
    doc: str, *, count: int, quick: int, unit: str = "evaluations"
) -> argparse.ArgumentParser:
    """Return the parser of a benchmark, with the options that all of them have."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, metavar="N", help=f"{unit} ({count}; quick: {quick})")
    parser.add_argument("--quick", action="store_true", help="few repetitions, for trying it out")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the JSON goes")
    parser.set_defaults(counts=(count, quick))
    return parser


def add_kernelbench(parser: argparse.ArgumentParser) -> None:
    """Add the option of the benchmarks that run KernelBench's harness beside ours."""
    parser.add_argument(
        "--kernelbench", type=Path, metavar="PATH", help="a checkout of KernelBench, to run beside"
    )


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Read the command line and decide the counts."""
    args = parser.parse_args()
    full, quick = args.counts
    if args.count is None:
        args.count = quick if args.quick else full
    if args.count < 1:
        parser.error(f"--count is a number above 0; got {args.count}")
    folder = getattr(args, "kernelbench", None)
    if folder is not None and not (folder / "src" / "kernelbench" / "eval.py").is_file():
        parser.error("--kernelbench is no checkout of KernelBench: it has no src/kernelbench")
    return args


def say(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lay out rows under a head: the first column to the left, numbers to the right."""
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = []
    for row in cells:
        first, *others = [
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join([first, *others]).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def save(
    name: str, args: argparse.Namespace, device: Device, body: dict[str, Any], *, busy: float
) -> Path:
    """Write the JSON file: what was run, when, on what, and what came of it."""
    usual = ROOT / "benchmarks" / "results" / f"{name}-cpu{'-quick' if args.quick else ''}.json"
    path: Path = args.out or usual
    about = dataclasses.asdict(device) | {"versions": dict(device.versions)}
    head = {
        "benchmark": name,
        "command": command(name, args),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "device": about,
        "root": os.geteuid() == 0,  # as root, the judge puts what it times before others in line
        "quick": args.quick,
        "busy_before": round(busy, 3),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(head | body, indent=1, ensure_ascii=False) + "\n")
    say(f"wrote {path.name}")
    return path


def busy_share(seconds: float = 2.0) -> float:
    """Return which share of the cores is in use now; figures of a busy machine are not quoted."""
    before = _jiffies()
    time.sleep(seconds)
    idle, total = (now - then for now, then in zip(_jiffies(), before, strict=True))
    share = 1 - idle / max(total, 1)
    if share > 0.1:
        say(f"the machine is not quiet: {share:.0%} of its cores are in use before we start")
    return share


def commit() -> str:
    """The commit measured, with a mark if the judge's source differs from it."""
    now = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--", "src", "tests/cheats", "benchmarks")
    return f"{now}{' with changes' if changed else ''}" if now else "unknown"


def without_paths(text: str, *, limit: int = 300) -> str:
    """Shorten to one line that names no folder of this machine; an error's end says what it is."""
    line = " ".join(text.split())
    line = re.sub(r"(?<![\w.])/(?!proc\b)[\w.+@-]+(?:/[\w.+@<>-]+)+", _last_part, line)
    if len(line) <= limit:
        return line
    begin = limit // 3
    return f"{line[:begin]} ... {line[begin + 5 - limit :]}"


def command(name: str, args: argparse.Namespace) -> str:
    """Rebuild the command line; folders of this machine are not told."""
    parts = [f"python -m benchmarks.{name}"]
    for key, value in sorted(vars(args).items()):
        if key in ("counts", "out", "resume", "commit") or value is None or value is False:
            continue
        option = f"--{key.replace('_', '-')}"
        if isinstance(value, Path):
            parts.append(f"{option} PATH")
        elif isinstance(value, list):
            parts.append(f"{option} {' '.join(map(str, value))}")
        else:
            parts.append(option if value is True else f"{option} {value}")
    return " ".join(parts)


def _last_part(found: re.Match[str]) -> str:
    return found[0].rsplit("/", 1)[1]


def _jiffies() -> tuple[int, int]:
    with open("/proc/stat") as lines:
        numbers = [int(word) for word in lines.readline().split()[1:]]
    return numbers[3] + numbers[4], sum(numbers)


def _git(*arguments: str) -> str:
    if shutil.which("git") is None:
        return ""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()
