"""Which modules to run first: one of each group of near copies, others only if need be.

Near copies of a module that runs would fall to deduplication afterwards; running them is most of
the work and finds nothing new.
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from kernelsmith.corpus.deduplicate import forms
from kernelsmith.corpus.store import Record

NEAR = 0.85
COPY = "copy of one that runs"
_TRIES = 3
"""How many of a group are tried before all of it counts as not runnable."""
_BUCKET, _BANDS = 8, 16


def groups(records: Sequence[Record]) -> list[list[Record]]:
    """Put near copies together, the shortest first; the order of groups is as good as random."""
    signatures = [_signature(record.text("code")) for record in records]
    parents = list(range(len(records)))

    def find(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    buckets: dict[bytes, list[int]] = defaultdict(list)
    for index, signature in enumerate(signatures):
        compared: set[int] = set()
        for band in forms.bands(signature, _BANDS):
            for other in buckets[band][:_BUCKET]:
                if other not in compared:
                    compared.add(other)
                    if forms.likeness(signature, signatures[other]) >= NEAR:
                        parents[find(index)] = find(other)
            if len(buckets[band]) < _BUCKET:
                buckets[band].append(index)
    members: dict[int, list[Record]] = defaultdict(list)
    for index, record in enumerate(records):
        members[find(index)].append(record)
    found = [sorted(each, key=lambda r: (r.number("lines"), r.key)) for each in members.values()]
    return sorted(found, key=lambda each: each[0].text("hash"))


def _signature(text: str) -> forms.Signature:
    names = set(re.findall(r"^class (\w+)", text, re.MULTILINE))
    words = re.findall(r"[A-Za-z_]\w*|\d+\.?\d*|[^\sA-Za-z_\d]", text)
    return forms.signature(forms.shingles(["CLASS" if w in names else w for w in words]))


def waves(
    found: Sequence[list[Record]], done: dict[str, bool]
) -> tuple[list[Record], list[Record]]:
    """What to run next and what need not be run, given what ran (true) and what did not.

    Call it again after each wave; it returns nothing to run when all is settled.
    """
    run: list[tuple[int, Record]] = []
    spare: list[Record] = []
    for members in found:
        if any(done.get(record.key) for record in members):
            spare += [record for record in members if record.key not in done]
            continue
        tried = sum(record.key in done for record in members)
        left = [record for record in members if record.key not in done]
        if left and tried < _TRIES:
            run.append((tried, left[0]))
        else:
            spare += left
    # Groups that were never tried come first.
    run.sort(key=lambda pair: pair[0])
    return [record for _, record in run], spare
