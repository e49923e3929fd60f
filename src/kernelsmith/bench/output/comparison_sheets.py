"""Tables of what ``kernelsmith bench compare`` finds, whatever they are printed as."""

from kernelsmith.bench.numbers.compare import Comparison, Contrast, OnTask
from kernelsmith.bench.numbers.scores import BY_NAME, Unit
from kernelsmith.bench.output.cells import NONE, Cell, Sheet, cell, changed, p_value, written

_SHOWN_TASKS = 10


def sheets(found: Comparison) -> list[Sheet]:
    """Metric by metric, test by test, level by level, and the tasks that moved most."""
    made: list[Sheet] = []
    for each in found.contrasts:
        made += [_metrics(each), _tests(each), *_levels(each), _moved(each)]
    if found.unpaired:
        note = "on one side only, not compared: " + ", ".join(found.unpaired)
        made[0] = Sheet(
            title=made[0].title, header=made[0].header, rows=made[0].rows,
            notes=(*made[0].notes, note), key=made[0].key,
        )  # fmt: skip
    return [sheet for sheet in made if sheet.rows]


def _metrics(found: Contrast) -> Sheet:
    return Sheet(
        title=f"{found.second} against {found.first}, {found.measure}, {found.tasks} common tasks",
        header=("metric", found.first, found.second, "change"),
        rows=tuple(
            (Cell(BY_NAME[each.metric].label), cell(each.first, BY_NAME[each.metric].unit),
             cell(each.second, BY_NAME[each.metric].unit), changed(each))
            for each in found.differences
        ),
        notes=(*((found.said,) if found.said else ()),
               "change: paired over the tasks on which both sides say something; p by paired "
               f"bootstrap{_after_holm(found)}, * below 0.05"),
        key="compare",
    )  # fmt: skip


def _after_holm(found: Contrast) -> str:
    corrected = any(each.corrected is not None for each in found.differences)
    return ", after Holm over the pairs" if corrected else ""


def _tests(found: Contrast) -> Sheet:
    return Sheet(
        title="Task by task",
        header=("metric", "test", "second better", "first better", "ties", "p"),
        rows=tuple(
            (Cell(BY_NAME[name].label), Cell(test.name), Cell(str(test.wins)),
             Cell(str(test.losses)), Cell(str(test.ties)),
             Cell(p_value(test.p)))
            for name, test in found.tests
        ),
        text_columns=2, key="tests",
    )  # fmt: skip


def _levels(found: Contrast) -> list[Sheet]:
    if not found.by_level:
        return []
    names = [each.metric for each in found.by_level[0][1]]
    rows = []
    for level, differences in found.by_level:
        known = {each.metric: each for each in differences}
        rows.append((Cell(level), *(changed(known.get(name)) for name in names)))
    return [
        Sheet(title="By level", header=("level", *(BY_NAME[name].label for name in names)),
              rows=tuple(rows), key="compare-levels",
              notes=("p for each level by itself",))
    ]  # fmt: skip


def _moved(found: Contrast) -> Sheet:
    both = [task for task in found.each if task.ratio is not None]
    most = both
    if len(both) > 2 * _SHOWN_TASKS:
        most = [*both[:_SHOWN_TASKS], *both[-_SHOWN_TASKS:]]
    lone = [task for task in found.each if (task.first is None) is not (task.second is None)]
    notes = [f"{len(both) - len(most)} in between are not shown"] if len(both) > len(most) else []
    if neither := sum(task.first is None and task.second is None for task in found.each):
        notes.append(f"solved by neither: {neither}")
    return Sheet(
        title="Tasks that moved most",
        header=("task", found.first, found.second, "ratio"),
        rows=tuple(_task(task) for task in (*most, *lone)), notes=tuple(notes), key="tasks",
    )  # fmt: skip


def _task(task: OnTask) -> tuple[Cell, ...]:
    sides = [Cell("failed" if v is None else written(v, Unit.RATIO)) for v in
             (task.first, task.second)]  # fmt: skip
    return (Cell(task.entry), *sides, Cell(NONE if task.ratio is None else f"{task.ratio:.3f}x"))
