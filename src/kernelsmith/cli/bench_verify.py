"""``kernelsmith bench verify RESULTS``: stored winners judged again, a line each as it comes."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence

from kernelsmith.bench.ledger import Results
from kernelsmith.bench.plan import is_of_level, names, refuse_other_levels, refuse_unmatched
from kernelsmith.bench.record import Key, Record
from kernelsmith.bench.verify import Standing, Verified, verified
from kernelsmith.cli.elsewhere import elsewhere
from kernelsmith.cli.live import short
from kernelsmith.cli.options import progress
from kernelsmith.domain.codec import encode
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.evaluator import Elsewhere


def judged_again(results: Results, args: argparse.Namespace) -> int:
    """Judge winners again, and return the exit status.

    0: all were judged and hold; 1: one fails or is slower; 2: one could not be judged as it lies
    there; 3: one could not be judged, and that is our fault.
    """
    if args.limit is not None and args.limit < 1:
        raise UsageError(f"--limit is at least 1; got {args.limit}")
    records = [record for record in results.records if record.winner is not None]
    if not records:
        raise UsageError("these results hold no winner to judge again")
    refuse_unmatched(args.only, [each.entry for each in records], "these results")
    refuse_other_levels(args.level, records, "these results")
    records = [
        each for each in records if names(args.only, each.entry) and is_of_level(each, args.level)
    ][: args.limit]
    if not records:
        raise UsageError("these results hold no winner that fits what was asked for")
    place = _place(args, records)
    wide = [max(map(len, column)) for column in zip(*(_who(r.key) for r in records), strict=True)]
    tell, found = progress(), list[Verified]()
    try:
        for each in verified(
            results, records, effort=args.effort or "usual", place=place,
            begin=lambda record: tell(f"judging {record.entrant} on {record.entry} ..."),
        ):  # fmt: skip
            tell("")
            found.append(each)
            if not args.json:
                print(_line(each, wide), flush=True)
    finally:  # also where someone has seen enough: what was judged is not lost
        tell("")
        if args.json:
            winners = [encode(each) for each in found]
            print(json.dumps({"schema": "verified/1", "winners": winners}))
        else:
            counts = Counter(each.standing.value for each in found)
            said = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
            print(f"{said or 'none'} of {len(records)}")
    return _status(found)


def _who(key: Key) -> tuple[str, str]:
    return key.entrant, f"{key.entry} #{key.seed}"


def _line(each: Verified, wide: Sequence[int]) -> str:
    """One winner; why, where it does not hold."""
    parts = [f"{word:{width}}" for word, width in zip(_who(each.key), wide, strict=True)]
    parts += [f"{each.standing.value:7}", f"was {short(each.was)}", f"now {short(each.now)}"]
    parts += [f"over {each.baseline}"] if each.baseline != "eager" else []
    if each.standing not in (Standing.HOLDS, Standing.PASSES) and each.said:
        parts.append(each.said)
    return "  ".join(parts)


def _status(found: Sequence[Verified]) -> int:
    if any(each.standing in (Standing.FAILS, Standing.SLOWER) for each in found):
        return 1
    if any(each.is_lost for each in found):
        return 3
    return 2 if any(each.standing is Standing.UNKNOWN for each in found) else 0


def _place(args: argparse.Namespace, records: Sequence[Record]) -> Elsewhere | None:
    """Who judges winners again, where it is not this machine."""
    backends = sorted({record.backend for record in records})
    if not args.evaluator:
        return None
    if len(args.evaluator) > 1 or len(backends) > 1:
        raise UsageError("winners of one backend are judged again at one evaluator at a time")
    return elsewhere(args.evaluator[0], backends[0])
