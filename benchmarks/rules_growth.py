"""How the gain grows with evaluations, by candidates that were judged once more.

The best of many noisy figures is too good, and the more of them the better it looks. So whoever was
best after 1, 5, 10 and 20 evaluations is judged anew when a search is over, as its end is: on fresh
inputs, in fresh processes. The search's own figures stand beside that.
"""

from collections.abc import Callable, Sequence
from typing import Any

Record = dict[str, Any]
Ratio = dict[str, float]
BUDGETS = (1, 5, 10, 20, 40)
LOST = "lost"
"""Said of whom nobody could judge once more; that says nothing of the candidate."""


def best_step(steps: Sequence[Record], count: int | None) -> int | None:
    """Where the best of the first steps stands; untimed is never best."""
    timed = [at for at, each in enumerate(steps[:count]) if "ratio" in each]
    return max(timed, key=lambda at: steps[at]["low"], default=None)


def judged_again(
    steps: Sequence[Record], judge: Callable[[int], Record], *, known: dict[int, Record]
) -> dict[str, Record]:
    """By number of evaluations, what came of judging once more whoever was best then.

    Args:
        steps: What became of each evaluation, in order.
        judge: Judges the candidate of the step at that place; asked once for each.
        known: Steps whose candidates were judged once more before.
    """
    found: dict[str, Record] = {}
    for count in BUDGETS:
        if count > len(steps):
            break
        at = best_step(steps, count)
        if at is not None and at not in known:
            known = known | {at: judge(at)}
        found[str(count)] = {"said": "none passed"} if at is None else known[at]
    return found


def grown(record: Record) -> bool:
    """Whether all of its best ones were judged once more."""
    again = record.get("again")
    return bool(again) and all(each["said"] != LOST for each in again.values())


def after(record: Record, count: int) -> Ratio | None:
    """The figure after so many evaluations; what a search hands back in the end is its last."""
    if count >= len(record["steps"]):
        found = record.get("best") or {}
    else:
        reached = max(each for each in map(int, record["again"]) if each <= count)
        found = record["again"][str(reached)]
    return dict(found) if "ratio" in found else None
