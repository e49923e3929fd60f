"""From a task to its forms: as written, and in other words that are cheaper."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kernelsmith.domain.task import Task, Workload
from kernelsmith.propose.rules.forms import Form
from kernelsmith.propose.rules.graph import UNFORESEEN, NotRecognised
from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.cost import Peaks, cost_us
from kernelsmith.propose.rules.rewrite.file import Branch, write_file
from kernelsmith.propose.rules.rewrite.graph import EPS, Arena, product
from kernelsmith.propose.rules.rewrite.read import Traced, read_graph
from kernelsmith.propose.rules.rewrite.search import Found, replay, search
from kernelsmith.propose.rules.rewrite.session import Session, open_session, request_for
from kernelsmith.propose.rules.rewrite.shrink import RECIPES, shrunk
from kernelsmith.propose.rules.rewrite.write import memory_of, statements

_MOST = 5
_WORTH = 0.997
"""A form must be expected to take at most this share of what the written one takes."""
_EXACT = 1e-9
_TIMES_EAGER = 4.0
"""A form may be this much less exact than the written one (the judge allows ten)."""
_EPSILONS = 8.0
_MOST_WORK = 1e9
_MOST_BYTES = 4e8

log = logging.getLogger(__name__)


def forms_of(task: Task, *, peaks: Peaks | None = None) -> tuple[Form, ...]:
    """The form as written, then those rewritten by algebra, best expected first.

    Args:
        task: The task; its code runs in a process of its own.
        peaks: What the device can do; an H200 where it is absent.
    """
    written = Form(name="written", source=task.source, words="the reference as it is written")
    try:
        with open_session() as session:
            return _Rewriter(task, peaks or Peaks(), session).forms(written)
    except NotRecognised as error:
        log.info("%s: %s", task.name, error)
    except UNFORESEEN as error:  # the compiler can still be asked for the task as it is written
        log.warning("%s: a rule failed", task.name, exc_info=error)
    return (written,)


@dataclass(slots=True)
class _View:
    """One timed workload, traced."""

    workload: Workload
    arena: Arena
    traced: Traced
    cost_us: float


@dataclass(slots=True)
class _Rewriter:
    task: Task
    peaks: Peaks
    session: Session
    _small: dict[tuple[str, int], tuple[Task, Workload, Arena, Traced] | None] = field(
        default_factory=dict
    )

    def forms(self, written: Form) -> tuple[Form, ...]:
        views = [self._view(each) for each in self.task.workloads if not each.held_out]
        mean = sum(each.cost_us for each in views) / len(views)
        made: list[tuple[Form, frozenset[str]]] = []
        for cost, lead, found in self._candidates(views):
            names = frozenset(found.names)
            covered = any(
                known & names and form.cost_us is not None and _alike(cost, form.cost_us)
                for form, known in made
            )
            if covered or cost > mean * _WORTH:
                continue
            form = self._form(views, lead, found, cost)
            if form is not None:
                made.append((form, names))
            if len(made) == _MOST:
                break
        return (replace(written, cost_us=mean), *(form for form, _ in made))

    def _view(self, workload: Workload) -> _View:
        reply = self.session.ask(request_for(self.task, workload, self.task.source, "trace"))
        arena = Arena()
        traced = read_graph(arena, reply)
        return _View(workload, arena, traced, cost_us(arena, traced.roots, self.peaks))

    def _candidates(self, views: Sequence[_View]) -> list[tuple[float, _View, Found]]:
        """What was found for each workload, by its cost over all of them."""
        found: dict[tuple[str, ...], tuple[float, _View, Found]] = {}
        for view in views:
            for each in search(view.arena, view.traced.roots, self.peaks)[: 4 * _MOST]:
                costs = [self._elsewhere(other, view, each) for other in views]
                mean = sum(costs) / len(views)
                if each.names not in found or found[each.names][0] > mean:
                    found[each.names] = (mean, view, each)
        order = sorted(found.values(), key=lambda each: (each[0], each[2].names))
        simple: list[tuple[float, _View, Found]] = []
        while order:  # of those that cost about the same, the one with the fewest rules first
            alike = [each for each in order if _alike(each[0], order[0][0])]
            simple += sorted(alike, key=lambda each: len(each[2].names))
            order = order[len(alike) :]
        return simple

    def _elsewhere(self, other: _View, lead: _View, found: Found) -> float:
        if other is lead:
            return found.cost_us
        again = self._again(other, lead, found)
        return other.cost_us if again is None else again.cost_us

    def _again(self, other: _View, lead: _View, found: Found) -> Found | None:
        if other.traced.init != lead.traced.init:
            return None
        again = replay(other.arena, other.traced.roots, found, self.peaks)
        return again if again is not None and again.cost_us <= other.cost_us else None

    def _form(self, views: Sequence[_View], lead: _View, found: Found, cost: float) -> Form | None:
        """Write a form and have it checked; nothing where it does not hold up."""
        branches: list[Branch] = []
        try:
            for view in views:
                again = found if view is lead else self._again(view, lead, found)
                if again is not None:
                    branches.append(self._branch(view, again))
            source = write_file(self.task.source, self.task.entry, branches)
            for view in views:
                if view is lead and not self._holds(view, found):
                    return None
        except NotRecognised as error:
            log.info("%s: %s: %s", self.task.name, "+".join(found.names), error)
            return None
        return Form(
            name="+".join(found.names), source=source, words=_words(found), cost_us=cost,
            degenerate=_degenerate(lead, found),
        )  # fmt: skip

    def _branch(self, view: _View, found: Found) -> Branch:
        """The body for one workload, its results laid out as the written ones are."""
        roots = _fresh(view.arena, found.roots)
        body = statements(view.arena, view.traced, roots)
        want = self._outline(view, self.task.source)
        for wrap in (False, True):
            if wrap:
                build = Build(view.arena)
                roots = tuple(build.unary("contiguous", each) for each in roots)
                body = statements(view.arena, view.traced, roots)
            text = write_file(self.task.source, self.task.entry, [(view.traced, body)])
            if self._outline(view, text) == want:
                return view.traced, body
        raise NotRecognised("the rewritten form lays out its results in another way")

    def _outline(self, view: _View, source: str) -> Any:
        return self.session.ask(request_for(self.task, view.workload, source, "outline"))

    def _holds(self, view: _View, found: Found) -> bool:
        """Compare with the written form, on the largest size that takes little time."""
        for number in range(len(RECIPES)):
            small = self._smaller(view, number)
            if small is None:
                continue
            task, workload, arena, traced = small
            again = replay(arena, traced.roots, found, self.peaks)
            if again is None or set(again.names) != set(found.names):
                continue  # a rule that does not fit there would not be checked
            branch = (traced, statements(arena, traced, _fresh(arena, again.roots)))
            reply = self.session.ask(
                request_for(
                    task, workload, task.source, "compare",
                    form=write_file(task.source, task.entry, [branch]),
                    doubled=write_file(task.source, task.entry, [branch], "float64"),
                    all_values=not any(rule.finite for rule in again.rules),
                )
            )  # fmt: skip
            return _is_right(reply["found"], _dtype(traced))
        return False

    def _smaller(self, view: _View, number: int) -> tuple[Task, Workload, Arena, Traced] | None:
        key = (view.workload.name, number)
        if key not in self._small:
            self._small[key] = self._shrunk(view, number)
        return self._small[key]

    def _shrunk(self, view: _View, number: int) -> tuple[Task, Workload, Arena, Traced] | None:
        if number == 0:
            if not _is_small(view.arena, view.traced):
                return None
            return self.task, view.workload, view.arena, view.traced
        task, workload = shrunk(self.task, view.workload, RECIPES[number])
        try:
            reply = self.session.ask(request_for(task, workload, task.source, "trace"))
        except NotRecognised:
            return None
        arena = Arena()
        traced = read_graph(arena, reply)
        return (task, workload, arena, traced) if _is_small(arena, traced) else None


def _alike(one: float, other: float) -> bool:
    return abs(one - other) <= 0.03 * other


def _fresh(arena: Arena, roots: tuple[int, ...]) -> tuple[int, ...]:
    """Results in memory of their own: never an input's, never two in one.

    Equal values are one node, so that results which the task computes (or copies) one by one would
    else become one tensor.
    """
    build, taken, found = Build(arena), set[int](), list[int]()
    for each in roots:
        base = memory_of(arena, each)
        shared = base in taken or arena[base].op in ("input", "weight", "number")
        taken.add(base)
        found.append(build.unary("clone", each) if shared else each)
    return tuple(found)


def _is_small(arena: Arena, traced: Traced) -> bool:
    held = 0.0
    counting = Peaks(bytes_per_s=1e30, products_per_s=1e6, convolutions_per_s=1e6, half_per_s=1e6,
                     pointwise_per_s=1e6, launch_us=0.0, bias_is_free=True)  # fmt: skip
    work = cost_us(arena, traced.roots, counting)
    for number in arena.reachable(traced.roots):
        held += 8.0 * product(arena.shape(number))
    return work <= _MOST_WORK and held <= _MOST_BYTES


def _dtype(traced: Traced) -> str:
    kinds = [kind for _, _, shape, kind in traced.arguments if shape is not None]
    return next((kind for kind in kinds if kind in EPS), "float32")


def _is_right(found: list[dict[str, Any]], dtype: str) -> bool:
    for each in found:
        allowed = max(_TIMES_EAGER * each["written"], _EPSILONS * EPS[dtype])
        if not (each["double"] <= _EXACT and each["form"] <= allowed):
            log.info("dropped: %s", each)
            return False
    return True


def _words(found: Found) -> str:
    unique = {rule.name: rule for rule in found.rules}
    said = "; ".join(rule.words for rule in unique.values())
    if any(rule.finite for rule in unique.values()):
        said += "; holds where all values are finite"
    return said


def _degenerate(view: _View, found: Found) -> str:
    if all(view.arena.depends(each) for each in found.roots):
        return ""
    why = [rule.words for rule in found.rules if rule.finite]
    return "the output does not depend on the inputs: " + "; ".join(dict.fromkeys(why))
