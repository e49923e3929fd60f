"""Families for what is neither rows nor one flat stretch: scans, columns, windows and others."""

from collections.abc import Callable

from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.family import Family
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds import (
    attention,
    columns,
    entropy,
    groups,
    lookup,
    neighbours,
    packed,
    pick,
    product,
    recurrent,
    router,
    scan,
    scatter,
    sort,
    spread,
    window,
)
from kernelsmith.propose.rules.kinds.trace import Traced, trace
from kernelsmith.propose.rules.source import Module, read_module

_KINDS: dict[str, Callable[[Traced, str], Family]] = {
    "scan": scan.recognise,
    "columns": columns.recognise,
    "window": window.recognise,
    "lookup": lookup.recognise,
    "router": router.recognise,
    "sort": sort.recognise,
    "product": product.recognise,
    "pick": pick.recognise,
    "entropy": entropy.recognise,
    "groups": groups.recognise,
    "packed": packed.recognise,
    "neighbours": neighbours.recognise,
    "gather": spread.gather,
    "scatter": scatter.recognise,
    "mixed": spread.mixed,
    "broadcast": spread.broadcast,
}
_PARTS: dict[str, Callable[[Module, str], Family]] = {
    "attention": attention.recognise,
    "recurrent": recurrent.recognise,
}
"""Kinds that are cut out of a file, whatever stands around them."""


def kinds_for(task: Task, backend: str) -> tuple[Family, ...]:
    """All families of these kinds that fit a task, best guess first; none is no error."""
    return _tried(task, backend)[0]


def why_none(task: Task, backend: str) -> dict[str, str]:
    """By kind, what kept it from fitting a task."""
    return _tried(task, backend)[1]


def _tried(task: Task, backend: str) -> tuple[tuple[Family, ...], dict[str, str]]:
    found: list[Family] = []
    reasons: dict[str, str] = {}
    try:
        module = read_module(task)
    except NotRecognised as error:
        return (), dict.fromkeys((*_KINDS, *_PARTS), str(error))
    for name, cut in _PARTS.items():
        try:
            found.append(cut(module, backend))
        except NotRecognised as error:
            reasons[name] = str(error)
    try:
        traced = trace(module)
    except NotRecognised as error:
        return tuple(found), reasons | dict.fromkeys(_KINDS, str(error))
    for name, recognise in _KINDS.items():
        try:
            found.append(recognise(traced, backend))
        except NotRecognised as error:
            reasons[name] = str(error)
    return tuple(found), reasons
