"""Simplify a kernel's tree: memory that is only passed on, work that a loop need not repeat."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from kernelsmith.propose.rules.compiler import cpp_words as words
from kernelsmith.propose.rules.compiler.cpp_tree import (
    Accumulator,
    Check,
    Function,
    Gather,
    Let,
    Local,
    Loop,
    Masked,
    Statement,
    Store,
    defined,
    expressions,
    inner,
    loads,
    names,
    read,
    renamed,
    rewritten,
    stored,
    texts_of,
    used,
    walk,
    wrapped,
)

Body = tuple[Statement, ...]
_LONGEST = 72
"""Characters up to which a value that is needed once is written where it is needed."""


def simplified(function: Function, *, scratch: frozenset[str] = frozenset()) -> Function:
    """The same kernel with less memory traffic and shorter loops.

    Args:
        function: As parsed.
        scratch: Pointers whose contents nobody reads after this kernel.
    """
    body = _propagated(function.body, {})
    body = _forwarded(body, {})
    body = _propagated(body, {})
    body = without_dead_stores(body, scratch)
    while (hoisted := _hoisted(body)) != body:
        body = hoisted
    body = _common(body, {})
    body = _without_unused(body)
    kept = used(body)
    parameters = tuple(each for each in function.parameters if each[0] in kept)
    return Function(parameters=parameters, body=body)


def readable(function: Function) -> Function:
    """Values that are needed once, written where they are needed."""
    return replace(function, body=_inlined(function.body))


def _propagated(body: Body, known: Mapping[str, str]) -> Body:
    """Names of names and of constants replaced by what they stand for."""
    by = dict(known)
    found: list[Statement] = []
    for each in body:
        changed = _one(each, by)
        if isinstance(changed, Let) and _is_constant(changed.value):
            by[changed.name] = wrapped(changed.value)
        elif isinstance(changed, Loop | Masked):
            found.append(_inside(changed, partial(_propagated, known=by)))
        else:
            found.append(changed)
    return tuple(found)


def _inside(each: Loop | Masked, change: Callable[[Body], Body]) -> Loop | Masked:
    """Another body; what a masked one ends in is changed with it, as its last statement."""
    if isinstance(each, Loop):
        return replace(each, body=change(each.body))
    *body, last = change((*each.body, Gather(name="", value=each.value)))
    assert isinstance(last, Gather)
    return replace(each, body=tuple(body), value=last.value)


def _one(statement: Statement, by: Mapping[str, str]) -> Statement:
    """Other names in what a statement itself computes, and inside of it."""
    return rewritten(statement, lambda text: renamed(text, by)) if by else statement


def _is_constant(text: str) -> bool:
    if re.fullmatch(r"[A-Za-z_]\w*|-?INFINITY|-?[\d.]+(e[-+]?\d+)?f?", text):
        return True
    match = re.fullmatch(r"(\w+)\((-?\d+|\w+)\)", text)
    return match is not None and match[1] in words.PLAIN and match[2].lstrip("-").isdigit()


def _forwarded(body: Body, known: Mapping[tuple[str, str], str]) -> Body:
    """Elements that were just written, taken from the value and not from memory."""
    have = dict(known)
    found: list[Statement] = []
    for each in body:
        if isinstance(each, Loop):
            touched = stored(each.body)
            inside = {
                key: value for key, value in have.items()
                if key[0] not in touched and each.variable not in names(key[1])
            }  # fmt: skip
            found.append(replace(each, body=_forwarded(each.body, inside)))
            have = {key: value for key, value in have.items() if key[0] not in touched}
            continue
        each = rewritten(each, partial(_taken, have=have))
        found.append(each)
        if isinstance(each, Store):
            have = {key: value for key, value in have.items() if key[0] != each.pointer}
            if not each.adds and re.fullmatch(r"[A-Za-z_]\w*", each.value):
                have[each.pointer, each.index] = each.value
    return tuple(found)


def _taken(text: str, have: Mapping[tuple[str, str], str]) -> str:
    for pointer, index in loads(text):
        if (pointer, index) in have:
            text = text.replace(f"{pointer}[{index}]", have[pointer, index])
    return text


def without_dead_stores(body: Body, scratch: frozenset[str]) -> Body:
    """Without what is written over at once, or to memory that nobody reads."""
    unread = scratch - read(body)
    return _without_stores(body, unread)


def _without_stores(body: Body, unread: frozenset[str]) -> Body:
    found: list[Statement] = []
    for position, each in enumerate(body):
        if isinstance(each, Store) and (
            each.pointer in unread or _written_over(each, body[position + 1 :])
        ):
            continue
        if isinstance(each, Loop):
            inside = _without_stores(each.body, unread)
            if inside:
                found.append(replace(each, body=inside))
            continue
        found.append(each)
    return tuple(found)


def _written_over(store: Store, rest: Body) -> bool:
    """Whether the next that happens to an element is that it gets another value."""
    for each in rest:
        if isinstance(each, Store) and not each.adds:
            if store.pointer in read((replace(each, pointer=""),)):
                return False
            if (each.pointer, each.index) == (store.pointer, store.index):
                return True
        elif store.pointer in read((each,)) or isinstance(each, Check):
            return False
    return False


def _hoisted(body: Body) -> Body:
    """What does not change in a loop, computed before it."""
    found: list[Statement] = []
    for each in body:
        if not isinstance(each, Loop):
            found.append(each)
            continue
        inside = _hoisted(each.body)
        moving = {each.variable} | defined(inside)
        touched = stored(inside)
        out: list[Statement] = []
        stays: list[Statement] = []
        for one in inside:
            if isinstance(one, Let | Check) and not stays_in(one, moving, touched):
                out.append(one)
                moving -= {one.name} if isinstance(one, Let) else set()
            else:
                stays.append(one)
        found += [*out, replace(each, body=tuple(stays))]
    return tuple(found)


def stays_in(statement: Let | Check, moving: set[str], touched: set[str]) -> bool:
    """Whether a value depends on what a loop changes."""
    texts = list(expressions(statement))
    if any(names(text) & moving for text in texts):
        return True
    return any(pointer in touched for text in texts for pointer, _ in loads(text))


def _common(body: Body, known: Mapping[str, str]) -> Body:
    """The same value computed once; memory may change between two loads of it."""
    have = dict(known)
    by: dict[str, str] = {}
    found: list[Statement] = []
    checked: set[str] = set()
    for each in body:
        each = _one(each, by)
        if isinstance(each, Let):
            if each.value in have:
                by[each.name] = have[each.value]
                continue
            have[each.value] = each.name
        elif isinstance(each, Check):
            if each.condition in checked:
                continue
            checked.add(each.condition)
        elif isinstance(each, Loop | Masked):
            touched = stored(inner(each))
            have = {text: name for text, name in have.items() if not _reads(text, touched)}
            fits = {text: name for text, name in have.items()
                    if not isinstance(each, Loop) or each.variable not in names(text)}  # fmt: skip
            each = _inside(each, partial(_common, known=fits))
        elif isinstance(each, Store):
            have = {text: name for text, name in have.items() if not _reads(text, {each.pointer})}
        found.append(each)
    return tuple(found)


def _reads(text: str, touched: set[str]) -> bool:
    return any(pointer in touched for pointer, _ in loads(text))


def _without_unused(body: Body) -> Body:
    """Without values that nobody needs."""
    needed = used(body)
    kept = tuple(_pruned(each, needed) for each in body if not _is_unused(each, needed))
    kept = tuple(each for each in kept if not (isinstance(each, Loop) and not each.body))
    return kept if kept == body else _without_unused(kept)


def _pruned(each: Statement, needed: set[str]) -> Statement:
    if not isinstance(each, Loop | Masked):
        return each
    body = tuple(_pruned(one, needed) for one in each.body if not _is_unused(one, needed))
    return replace(each, body=tuple(one for one in body if not _is_empty(one)))


def _is_empty(each: Statement) -> bool:
    return isinstance(each, Loop) and not each.body


def _is_unused(each: Statement, needed: set[str]) -> bool:
    return isinstance(each, Let | Masked | Local | Accumulator) and each.name not in needed


def _inlined(body: Body) -> Body:
    counts: dict[str, int] = {}
    for each in walk(body):
        for text in texts_of(each):
            for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", text):
                counts[name] = counts.get(name, 0) + 1
    return _with_values(body, counts)


def _with_values(body: Body, counts: Mapping[str, int]) -> Body:
    """Each value that is used once moves into the next statement that uses it."""
    pending: dict[str, str] = {}
    found: list[Statement] = []

    def flush(only: set[str] | None = None) -> None:
        for name in [n for n in pending if only is None or n in only]:
            found.append(Let(name=name, value=pending.pop(name), kind=kinds[name]))

    kinds: dict[str, str] = {}
    for each in body:
        if isinstance(each, Loop):
            flush()
            found.append(replace(each, body=_with_values(each.body, counts)))
            continue
        if isinstance(each, Masked | Check | Accumulator | Local):
            flush()
            found.append(each)
            continue
        texts = list(expressions(each))
        # A load behind a question mark would be made or not: no vectors then (3.8 times as slow).
        asked = {name for text in texts if "?" in text for name in names(text)} & set(pending)
        flush({name for name in asked if any(loads(pending[name]))})
        mentioned = {name for text in texts for name in names(text)} & set(pending)
        by = {name: wrapped(pending[name]) for name in mentioned}
        longest = max(len(renamed(text, by)) for text in texts)
        if longest > _LONGEST:
            flush(mentioned)
            by = {}
        else:
            for name in mentioned:
                del pending[name]
        each = _one(each, by)
        if isinstance(each, Store):
            flush()  # what it writes may be what they read
            found.append(each)
        elif isinstance(each, Let) and counts.get(each.name) == 1 and each.kind != "auto":
            pending[each.name] = each.value
            kinds[each.name] = each.kind
        else:
            if isinstance(each, Gather):
                flush()
            found.append(each)
    flush()
    return tuple(found)
