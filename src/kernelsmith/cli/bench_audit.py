"""``kernelsmith bench audit FOLDER``: kernels that others published, judged; a line each, kept."""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from rich.console import Console
from rich.table import Table

from kernelsmith.bench.audit import Auditor, Finding, Opinion, tally
from kernelsmith.bench.ledger import sha256
from kernelsmith.bench.lines import Lines, body_of, lines_in, value_of
from kernelsmith.bench.published.folder import published_in
from kernelsmith.bench.published.kernel import Published
from kernelsmith.bench.suite import open_suite
from kernelsmith.cli.live import short
from kernelsmith.cli.options import progress
from kernelsmith.domain.codec import encode
from kernelsmith.errors import UsageError

SCHEMA = "audit/1"
_BAD = (Opinion.CHEATED, Opinion.WRONG, Opinion.REFUSED, Opinion.FAILS, Opinion.SLOWER)


def audited(folder: Path, args: argparse.Namespace) -> int:
    """Judge every kernel that is asked for, and say what is wrong with which; 1 if any."""
    suite = open_suite(args.suite) if args.suite else None
    kernels = list(_chosen(published_in(folder), args))
    if not kernels:
        raise UsageError("no kernel fits what was asked for")
    place: Path = args.out or Path("runs", "audit", folder.resolve().stem)
    place.mkdir(parents=True, exist_ok=True)
    kept = place / "audit.jsonl"
    known = dict(_known(kept)) if kept.is_file() else {}
    auditor = Auditor(args.effort or "usual", suite)
    until = None if args.budget_seconds is None else time.monotonic() + args.budget_seconds
    tell, findings, cut = progress(), [], 0
    try:
        with Lines(kept) as file:
            for index, kernel in enumerate(kernels):
                found = known.get(kernel.id)
                if found is not None and found.sha256 != sha256(kernel.source):
                    found = None  # published anew
                if found is None and until is not None and time.monotonic() > until:
                    cut += 1
                    continue
                if found is None:
                    if kernel.language != "cuda":  # nothing is waited for
                        tell(f"[{index + 1}/{len(kernels)}] {kernel.id} ...")
                    found = auditor.audit(kernel)
                    file.append_lines(json.dumps({"schema": SCHEMA, **_json(found)}))
                findings.append(found)
    finally:
        tell("")
        auditor.close()
    _write(place / "audit.json", folder, args, findings)
    if args.json:
        print((place / "audit.json").read_text())
    else:
        _show(findings, place)
    if cut:
        print(f"{cut} were not looked at: the time is over; go on with --out {place}",
              file=sys.stderr)  # fmt: skip
    return 1 if any(each.opinion in _BAD for each in findings) else 0


def _chosen(kernels: Iterable[Published], args: argparse.Namespace) -> Iterator[Published]:
    """What the options leave; ``--limit`` counts what can be judged."""
    taken = 0
    for kernel in kernels:
        if args.only and not any(fnmatchcase(kernel.id, f"*{word}") for word in args.only):
            continue
        if args.level and str(kernel.level) not in args.level:
            continue
        if args.limit is not None and kernel.language != "cuda":
            if taken >= args.limit:
                continue
            taken += 1
        yield kernel


def _known(path: Path) -> Iterator[tuple[str, Finding]]:
    """What was found before; a line that cannot be read is named, and its kernel judged again."""
    for number, line in enumerate(lines_in(path), start=1):
        if not line.strip():
            continue
        try:
            found = value_of(body_of(line, SCHEMA), Finding)
        except ValueError as error:
            print(f"kernelsmith: {path}:{number}: {error}; skipped", file=sys.stderr)
            continue
        yield found.id, found


def _write(path: Path, folder: Path, args: argparse.Namespace, found: Sequence[Finding]) -> None:
    body = {
        "schema": SCHEMA,
        "command": _command(args),
        "folder": folder.name,
        "suite": (args.suite or "").partition(":")[0] or None,
        "counts": dict(tally(found)),
        "kernels": [_json(each) for each in found],
    }
    path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


def _command(args: argparse.Namespace) -> str:
    """What was asked for; folders of this machine are not told."""
    parts = ["kernelsmith bench audit FOLDER"]
    if args.suite:
        name, _, path = args.suite.partition(":")
        parts.append(f"--suite {name}{':PATH' if path else ''}")
    parts += [f"--effort {args.effort}"] if args.effort else []
    parts += [f"--limit {args.limit}"] if args.limit is not None else []
    parts += [f"--level {each}" for each in args.level]
    return " ".join([*parts, *(f"--only '{each}'" for each in args.only)])


def _evidence(found: Finding) -> str:
    said = " ".join(found.evidence.split())[:160]
    if found.opinion is Opinion.FAILS:  # of a traceback the end says most
        said = " ".join(found.evidence.strip().splitlines()[-1].split())[:160]
    run = " ".join(found.if_run.split())[:100]
    return f"{said}; run all the same: {run}" if run else said


def _json(found: Finding) -> dict[str, object]:
    body = encode(found)
    assert isinstance(body, dict)
    return dict(body)


def _show(findings: Sequence[Finding], place: Path) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("kernel", "", "claimed", "measured", "evidence"):
        table.add_column(column, overflow="fold" if column == "evidence" else "ellipsis")
    order = list(Opinion)
    judged = [each for each in findings if each.opinion is not Opinion.UNJUDGED]
    for each in sorted(judged, key=lambda one: -order.index(one.opinion)):
        claim = "-" if each.claim is None else f"{each.claim:.2f}x"
        evidence = " ".join(each.evidence.split())[:160]
        table.add_row(
            each.id, each.opinion.value, claim, short(each.call or each.speedup), evidence
        )
    console = Console(highlight=False)
    if judged:
        console.print(table)
    reasons: dict[str, int] = {}
    for each in findings:
        if each.opinion is Opinion.UNJUDGED:
            reason = " ".join(each.evidence.split())[:120]
            reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in sorted(reasons.items(), key=lambda each: -each[1])[:8]:
        console.print(f"{count} not judged: {reason}", markup=False)
    console.print(", ".join(f"{count} {name}" for name, count in tally(findings).items()))
    lazy = sum(not each.own_kernel for each in judged)
    if lazy:
        console.print(f"{lazy} of {len(judged)} judged bring no kernel of their own")
    console.print(str(place / "audit.json"), soft_wrap=True, markup=False)
