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

from kernelsmith.bench.audit import Auditor, Finding, Opinion, limited, tally
from kernelsmith.bench.lines import Lines, body_of, folder_at, lines_in, value_of
from kernelsmith.bench.published.folder import published_in
from kernelsmith.bench.published.kernel import Published, Unread
from kernelsmith.bench.record import Fault
from kernelsmith.bench.suite import open_suite
from kernelsmith.cli.live import short
from kernelsmith.cli.options import progress
from kernelsmith.domain.codec import encode
from kernelsmith.errors import UsageError

SCHEMA = "audit/1"
_BAD = (Opinion.CHEATED, Opinion.WRONG, Opinion.REFUSED, Opinion.FAILS, Opinion.SLOWER)
_REASONS = 8
_NAMED = 5


def audited(folder: Path, args: argparse.Namespace) -> int:
    """Judge every kernel that is asked for, and say what is wrong with which.

    Returns:
        1 if anything is wrong with one; else 3 if one could not be judged and that is our fault,
        2 if none could be judged at all.
    """
    if args.limit is not None and args.limit < 1:
        raise UsageError(f"--limit is at least 1; got {args.limit}")
    suite = open_suite(args.suite) if args.suite else None
    found_there = list(published_in(folder))
    unread = [each for each in found_there if isinstance(each, Unread)]
    for each in unread:
        print(f"kernelsmith: {each}", file=sys.stderr)
    published = [each for each in found_there if isinstance(each, Published)]
    _refuse_unmatched(published, folder, args)
    kernels = list(_chosen(published, args))
    if not kernels:
        raise UsageError("no kernel fits what was asked for")
    place = folder_at(args.out or Path("runs", "audit", folder.resolve().stem))
    kept = place / "audit.jsonl"
    known = _known(kept)
    auditor = Auditor(args.effort or "usual", suite)
    until = None if args.budget_seconds is None else time.monotonic() + args.budget_seconds
    tell, findings, cut = progress(), [], 0
    try:
        kernels, left_out = limited(kernels, args.limit, auditor.takes)
        _say_left_out(left_out, args)
        with Lines(kept) as file:
            for index, kernel in enumerate(kernels):
                earlier = known.get(kernel.id, [])
                standing = (each for each in reversed(earlier) if auditor.stands(each, kernel))
                found = next(standing, None)
                if found is None and until is not None and time.monotonic() > until:
                    cut += 1
                    continue
                if found is None:
                    if not auditor.unfit(kernel):  # else nothing is waited for
                        tell(f"[{index + 1}/{len(kernels)}] {kernel.id} ...")
                    found = auditor.audit(kernel)
                    if found not in earlier:  # as little can be said as before
                        file.append_lines(json.dumps({"schema": SCHEMA, **_json(found)}))
                findings.append(found)
    except KeyboardInterrupt:
        print(f"stopped; the same command goes on with what is in {place}", file=sys.stderr)
        raise
    finally:
        tell("")
        auditor.close()
    _write(place / "audit.json", folder, args, findings, unread, cut, left_out)
    if args.json:
        print((place / "audit.json").read_text())
    else:
        _show(findings, place)
    if cut:
        print(f"{cut} were not looked at: the time is over; go on with --out {place}",
              file=sys.stderr)  # fmt: skip
    return _status(findings)


def _status(findings: Sequence[Finding]) -> int:
    if any(each.opinion in _BAD for each in findings):
        return 1
    if any(each.fault is Fault.OURS for each in findings):
        return 3
    return 2 if all(each.opinion is Opinion.UNJUDGED for each in findings) else 0


def _refuse_unmatched(kernels: Sequence[Published], folder: Path, args: argparse.Namespace) -> None:
    """See to it that every word means a kernel, and every level one that there is."""
    for word in args.only:
        if not any(_is_named(kernel, word) for kernel in kernels):
            raise UsageError(f"no kernel in {str(folder)!r} is called {word!r}")
    levels = sorted({str(kernel.level) for kernel in kernels if kernel.level is not None})
    for word in args.level:
        if word not in levels:
            known = f"there are {', '.join(levels)}" if levels else "none says its level"
            raise UsageError(f"no kernel in {str(folder)!r} is of level {word!r}; {known}")


def _is_named(kernel: Published, word: str) -> bool:
    """Whether a word is a kernel's id or the end of it; 1 is not the end of 21."""
    begins = "*" if word[:1].isalnum() else ""
    wide = (f"{begins}[!0-9A-Za-z]{word}",) if begins else (f"*{word}",)
    return any(fnmatchcase(kernel.id, each) for each in (word, *wide))


def _chosen(kernels: Iterable[Published], args: argparse.Namespace) -> Iterator[Published]:
    """What is named and of a level that is asked for."""
    for kernel in kernels:
        if args.only and not any(_is_named(kernel, word) for word in args.only):
            continue
        if args.level and str(kernel.level) not in args.level:
            continue
        yield kernel


def _say_left_out(left_out: Sequence[Published], args: argparse.Namespace) -> None:
    if not left_out:
        return
    named = ", ".join(kernel.id for kernel in left_out[:_NAMED])
    if more := len(left_out[_NAMED:]):
        named += f" and {more} more, which audit.json names"
    print(
        f"--limit {args.limit} takes the first, by path and row, that can be judged here; "
        f"{len(left_out)} left out: {named}",
        file=sys.stderr,
    )


def _known(path: Path) -> dict[str, list[Finding]]:
    """What was found before; a line that cannot be read is named, and its kernel judged again."""
    known: dict[str, list[Finding]] = {}
    for number, line in enumerate(lines_in(path) if path.exists() else (), start=1):
        if not line.strip():
            continue
        try:
            found = value_of(body_of(line, SCHEMA), Finding)
        except ValueError as error:
            print(f"kernelsmith: {path}:{number}: {error}; skipped", file=sys.stderr)
            continue
        known.setdefault(found.id, []).append(found)
    return known


def _write(
    path: Path, folder: Path, args: argparse.Namespace, found: Sequence[Finding],
    unread: Sequence[Unread], cut: int, left_out: Sequence[Published],
) -> None:  # fmt: skip
    body = {
        "schema": SCHEMA,
        "command": _command(args),
        "folder": folder.name,
        "suite": (args.suite or "").partition(":")[0] or None,
        "counts": dict(tally(found)),
        "unread": [encode(each) for each in unread],
        "not_looked_at": cut,
        "left_out": [kernel.id for kernel in left_out],
        "kernels": [_json(each) for each in found],
    }
    try:
        path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _command(args: argparse.Namespace) -> str:
    """What was asked for; folders of this machine are not told."""
    parts = ["kernelsmith bench audit FOLDER"]
    if args.suite:
        name, _, path = args.suite.partition(":")
        parts.append(f"--suite {name}{':PATH' if path else ''}")
    parts += [f"--effort {args.effort}"] if args.effort else []
    parts += [f"--limit {args.limit}"] if args.limit is not None else []
    if args.budget_seconds is not None:
        parts.append(f"--budget-seconds {args.budget_seconds:g}")
    parts += [f"--level {each}" for each in args.level]
    return " ".join([*parts, *(f"--only '{each}'" for each in args.only)])


def _evidence(found: Finding) -> str:
    said = _said(found.evidence, 160, end=found.opinion is Opinion.FAILS)
    run = _said(found.if_run, 100)
    return f"{said}; run all the same: {run}" if run else said


def _said(text: str, most: int, *, end: bool = False) -> str:
    """A message on one line: of a traceback its last one, which says most."""
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and (end or "Traceback (most recent call last)" in text):
        text = lines[-1] if lines[0] == lines[-1] or end else f"{lines[0]} ... {lines[-1]}"
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most // 3]} ... {text[-2 * most // 3 :]}"


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
        measured = short(each.call or each.speedup)
        table.add_row(each.id, each.opinion.value, claim, measured, _evidence(each))
    console = Console(highlight=False, markup=False, emoji=False)  # sources say what they like
    if judged:
        console.print(table)
    reasons: dict[str, int] = {}
    for each in findings:
        if each.opinion is Opinion.UNJUDGED:
            reason = _said(each.evidence, 120)
            reasons[reason] = reasons.get(reason, 0) + 1
    ordered = sorted(reasons.items(), key=lambda each: -each[1])
    for reason, count in ordered[:_REASONS]:
        console.print(f"{count} not judged: {reason}")
    if rest := sum(count for _, count in ordered[_REASONS:]):
        console.print(f"{rest} not judged for other reasons, which audit.json names")
    console.print(", ".join(f"{count} {name}" for name, count in tally(findings).items()))
    lazy = sum(not each.own_kernel for each in judged)
    if lazy:
        console.print(f"{lazy} of {len(judged)} judged bring no kernel of their own")
    console.print(str(place / "audit.json"), soft_wrap=True)
