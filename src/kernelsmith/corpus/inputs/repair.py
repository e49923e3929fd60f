"""What an error says about the inputs: changes of shape, rank and type that it suggests."""

import re
from dataclasses import dataclass, replace

FLOAT, INDEX, BOOL = "float32", "int64", "bool"


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor to be drawn."""

    shape: tuple[int, ...]
    dtype: str = FLOAT
    high: int = 8
    """Indices are drawn below this."""


@dataclass(frozen=True, slots=True)
class Other:
    """Anything that is not a tensor, as an expression."""

    text: str


@dataclass(frozen=True, slots=True)
class Many:
    """A list of tensors."""

    tensors: tuple[Tensor, ...]
    is_tuple: bool = False


Value = Tensor | Other | Many
State = tuple[tuple[str, Value], ...]
"""Arguments of ``forward`` by name, in order."""

SIDE, LENGTH, BATCH = 32, 16, 2
_NUMBER = re.compile(r"\d+")


def edits(
    message: str, kind: str, line: str, state: State, pairs: list[tuple[int, int]]
) -> list[State]:
    """Changed inputs that may get past an error, the likeliest first, none of them twice.

    Args:
        message: What the error said.
        kind: Its type.
        line: The line of source that raised it.
        state: The inputs that led to it.
        pairs: Numbers that the failing line compared, where it did.
    """
    found: list[State] = []
    for rule in (_matmul, _channels, _normalised, _rank, _unpack, _dtype, _range, _small, _none):
        found += rule(message, kind, line, state)
    for have, want in pairs:
        found += _swap(state, have, want) + _swap(state, want, have)
    found += _numbers(message, state)
    if kind in ("AssertionError", "ValueError", "IndexError", "TypeError") or not found:
        found += _other_ranks(state)
    unique = dict.fromkeys(each for each in found if each != state)
    return list(unique)[:24]


def _map(state: State, change: "dict[str, Value]") -> State:
    return tuple((name, change.get(name, value)) for name, value in state)


def _tensors(state: State) -> list[tuple[str, Tensor]]:
    return [(name, value) for name, value in state if isinstance(value, Tensor)]


def _floats(state: State) -> list[tuple[str, Tensor]]:
    return [(name, value) for name, value in _tensors(state) if value.dtype == FLOAT]


def _swap(state: State, have: int, want: int) -> list[State]:
    """Every tensor with a size put for another: all at once, then one at a time."""
    if not 0 < want <= 1 << 14 or have == want:
        return []
    changed: dict[str, Value] = {}
    singles: list[State] = []
    for name, value in state:
        if isinstance(value, Tensor) and have in value.shape:
            places = [i for i, size in enumerate(value.shape) if size == have]
            new = replace(value, shape=tuple(want if s == have else s for s in value.shape))
            changed[name] = new
            if len(places) > 1:
                for place in places:
                    shape = tuple(want if i == place else s for i, s in enumerate(value.shape))
                    singles.append(_map(state, {name: replace(value, shape=shape)}))
            singles.append(_map(state, {name: new}))
        elif isinstance(value, Many) and any(have in t.shape for t in value.tensors):
            tensors = tuple(
                replace(t, shape=tuple(want if s == have else s for s in t.shape))
                for t in value.tensors
            )
            changed[name] = replace(value, tensors=tensors)
        elif isinstance(value, Other) and value.text == str(have):
            changed[name] = Other(str(want))
    return [_map(state, changed), *singles] if changed else []


def _last(state: State, size: int) -> list[State]:
    return [
        _map(state, {name: replace(value, shape=(*value.shape[:-1], size))})
        for name, value in _floats(state) if value.shape
    ]  # fmt: skip


def _matmul(message: str, kind: str, line: str, state: State) -> list[State]:
    match = re.search(r"shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", message)
    if not match:
        match = re.search(r"size mismatch, got (?:input|vec) \((\d+)\).* (\d+)x(\d+)", message)
        if not match:
            return []
        return _last(state, int(match[3]))
    _, have, want, _ = map(int, match.groups())
    found = _swap(state, have, want)
    for name, value in _floats(state):
        if value.shape and value.shape[-1] * want % max(have, 1) == 0:
            size = value.shape[-1] * want // max(have, 1)
            found.append(_map(state, {name: replace(value, shape=(*value.shape[:-1], size))}))
        if len(value.shape) > 2 and value.shape[1] * want % max(have, 1) == 0:
            size = value.shape[1] * want // max(have, 1)
            shape = (value.shape[0], size, *value.shape[2:])
            found.append(_map(state, {name: replace(value, shape=shape)}))
    # Channels may stand in front where the layer wants them last, or the other way round.
    found += _moved(state)
    return found + _last(state, want)


def _moved(state: State) -> list[State]:
    found = []
    changed: dict[str, Value] = {}
    for name, value in _floats(state):
        if len(value.shape) >= 3:
            first = (value.shape[0], value.shape[-1], *value.shape[1:-1])
            changed[name] = replace(value, shape=first)
            found.append(_map(state, {name: replace(value, shape=first)}))
            last = (value.shape[0], *value.shape[2:], value.shape[1])
            found.append(_map(state, {name: replace(value, shape=last)}))
    return ([_map(state, changed)] if len(changed) > 1 else []) + found


def _channels(message: str, kind: str, line: str, state: State) -> list[State]:
    match = re.search(
        r"expected input\[([\d, ]+)\] to have (\d+) channels, but got (\d+) channels", message
    )
    if not match:
        match = re.search(r"running_mean should contain (\d+) elements not (\d+)", message)
        if match:
            want, have = int(match[2]), int(match[1])
            # torch names what it got first: the statistics have ``want`` elements.
            return _swap(state, have, want) + _swap(state, want, have)
        return []
    want, have = int(match[2]), int(match[3])
    found = _swap(state, have, want)
    for name, value in _floats(state):
        if len(value.shape) >= 3:
            shape = (value.shape[0], want, *value.shape[2:])
            found.append(_map(state, {name: replace(value, shape=shape)}))
    return found + _moved(state)


def _normalised(message: str, kind: str, line: str, state: State) -> list[State]:
    match = re.search(r"normalized_shape=\[([\d, ]+)\].*got input of size\s*\[([\d, ]*)\]", message)
    if not match:
        return []
    want = tuple(map(int, _NUMBER.findall(match[1])))
    have = tuple(map(int, _NUMBER.findall(match[2])))
    found: list[State] = []
    if have and len(want) == 1:
        found += _swap(state, have[-1], want[0])
    for name, value in _floats(state):
        if len(value.shape) > len(want):
            shape = (*value.shape[: -len(want)], *want)
            found.append(_map(state, {name: replace(value, shape=shape)}))
    return found + _moved(state)


def of_rank(value: Tensor, rank: int) -> list[Tensor]:
    """The same tensor with another number of dimensions, in the usual layouts."""
    shape = value.shape
    if len(shape) == rank:
        return []
    wide = max(shape[1:] or shape or (64,))
    channel = shape[-1] if len(shape) in (2, 3) else shape[1] if len(shape) > 3 else wide
    options: dict[int, list[tuple[int, ...]]] = {
        0: [()],
        1: [(BATCH,), (channel,)],
        2: [(BATCH, channel), (BATCH, LENGTH), (LENGTH, channel)],
        3: [(BATCH, LENGTH, channel), (BATCH, channel, LENGTH), (BATCH, channel, 64)],
        4: [(BATCH, channel, SIDE, SIDE), (BATCH, 8, 8, channel), (BATCH, 4, LENGTH, 16),
            (BATCH, 3, SIDE, SIDE), (BATCH, 4, LENGTH, channel)],
        5: [(BATCH, channel, 8, 16, 16), (BATCH, 4, channel, 16, 16), (BATCH, 4, 8, 8, channel)],
    }  # fmt: skip
    return [replace(value, shape=each) for each in options.get(rank, [])]


def _ranked(state: State, rank: int, names: list[str] | None = None) -> list[State]:
    found: list[State] = []
    chosen = [(n, v) for n, v in _tensors(state) if names is None or n in names]
    together: list[dict[str, Value]] = [{} for _ in range(5)]
    for name, value in chosen:
        for index, option in enumerate(of_rank(value, rank)):
            found.append(_map(state, {name: option}))
            if value.dtype == FLOAT:
                together[index][name] = option
    both = [_map(state, each) for each in together if len(each) > 1]
    return both + found


def _rank(message: str, kind: str, line: str, state: State) -> list[State]:
    match = re.search(r"[Ee]xpected (?:a )?(\d)D.*? or (\d)D.*?(?:got|size)", message)
    if match:
        return _ranked(state, int(match[2])) + _ranked(state, int(match[1]))
    match = re.search(r"(?:[Ee]xpected|expects|must be|should be)[^.]{0,40}?(\d)[- ]?(?:D|dim)",
                      message)  # fmt: skip
    if match:
        return _ranked(state, int(match[1]))
    match = re.search(
        r"(?:Dimension out of range|dimension specified as|index out of range).*", message
    )
    if match or "too many indices" in message or "tuple index" in message:
        ranks = {len(value.shape) for _, value in _tensors(state)}
        return [s for rank in sorted(ranks) for s in _ranked(state, rank + 1)]
    match = re.search(
        r"number of dims don't match|permute\(.*dims.*ndim|input\.dim\(\) = (\d)", message
    )
    if match:
        wanted = re.search(r"len\(dims\) = (\d)|length (?:of|is) (\d)", message)
        rank = int(next(g for g in wanted.groups() if g)) if wanted else 4
        return _ranked(state, rank)
    match = re.search(r"expects (\d) dimensions, got (\d)", message)
    if match:
        return _ranked(state, int(match[1]))
    return []


def _unpack(message: str, kind: str, line: str, state: State) -> list[State]:
    match = re.search(
        r"(?:not enough|too many) values to unpack \(expected (?:at least )?(\d)", message
    )
    if not match:
        return []
    rank = int(match[1])
    names = [name for name, _ in _tensors(state) if re.search(rf"\b{re.escape(name)}\b", line)]
    if "shape" not in line and "size" not in line:
        many: list[State] = []
        for name, value in _tensors(state):
            if name in names or not names:
                many.append(_map(state, {name: Many((value,) * rank, is_tuple=True)}))
        return many + _ranked(state, rank, names or None)
    return _ranked(state, rank, names or None) + _ranked(state, rank)


def _dtype(message: str, kind: str, line: str, state: State) -> list[State]:
    found: list[State] = []
    if re.search(r"(scalar types: Long|indices.*(long|int)|expected.*Long|index tensor|one_hot"
                 r"|must be.*(long|int|byte)|used as indices|expected scalar type (Long|Int)"
                 r"|dtype int64|Int64|integer)", message, re.IGNORECASE):  # fmt: skip
        for name, value in _tensors(state):
            if value.dtype == FLOAT:
                shapes = [value.shape, value.shape[:-1], (BATCH, LENGTH), (BATCH,)]
                found += [_map(state, {name: replace(value, shape=s, dtype=INDEX)})
                          for s in dict.fromkeys(shapes)]  # fmt: skip
    if re.search(r"(but (?:got|found) (?:Long|torch.int64)|same dtype|not implemented for 'Long'"
                 r"|Long and float|float.*(?:and|!=).*(?:long|Long)|Input dtype must be"
                 r"|can only .*float)", message):  # fmt: skip
        for name, value in _tensors(state):
            if value.dtype != FLOAT:
                found.append(_map(state, {name: replace(value, dtype=FLOAT)}))
    if re.search(r"[Bb]ool", message):
        for name, value in _tensors(state):
            other = FLOAT if value.dtype == BOOL else BOOL
            found.append(_map(state, {name: replace(value, dtype=other)}))
    return found


def _range(message: str, kind: str, line: str, state: State) -> list[State]:
    if not re.search(r"index out of range|out of bounds|Class values must be smaller", message):
        return []
    return [
        _map(state, {name: replace(value, high=2 if value.high > 2 else 1)})
        for name, value in _tensors(state) if value.dtype == INDEX
    ]  # fmt: skip


def _small(message: str, kind: str, line: str, state: State) -> list[State]:
    if not re.search(r"[Kk]ernel size can't be greater|Output size is too small|too small|padding"
                     r" size should be less|must be (?:greater|larger)|non-empty|[Pp]adding",
                     message):  # fmt: skip
        return []
    changed: dict[str, Value] = {}
    larger: dict[str, Value] = {}
    for name, value in _floats(state):
        if len(value.shape) >= 3:
            shape = (*value.shape[:2], *(size * 2 for size in value.shape[2:]))
            changed[name] = replace(value, shape=shape)
            shape = (*value.shape[:2], *(max(size * 8, 128) for size in value.shape[2:]))
            larger[name] = replace(value, shape=shape)
        elif len(value.shape) == 2:
            changed[name] = replace(value, shape=(value.shape[0], value.shape[1] * 16))
            larger[name] = replace(value, shape=(value.shape[0], 16000))
    return [_map(state, changed), _map(state, larger)] if changed else []


def _none(message: str, kind: str, line: str, state: State) -> list[State]:
    """A value that was left out is needed, or a list where a tensor was given."""
    found: list[State] = []
    first = next((value for _, value in _floats(state)), None)
    if "NoneType" in message:
        for name, value in state:
            if value == Other("None") and first is not None:
                found.append(_map(state, {name: first}))
                found.append(_map(state, {name: Many((first, first), is_tuple=True)}))
    if re.search(r"object is not (iterable|subscriptable)|'Tensor' object has no attribute|must be"
                 r" (tuple|list)|list indices|'int' object", message):  # fmt: skip
        for name, value in state:
            if isinstance(value, Tensor):
                found.append(_map(state, {name: Many((value, value))}))
            elif isinstance(value, Other) and first is not None:
                found.append(_map(state, {name: Other(f"({SIDE}, {SIDE})")}))
                found.append(_map(state, {name: first}))
    if re.search(r"'(list|tuple)' object|not (list|tuple)\b|TypeError.*(list|tuple)", message):
        for name, value in state:
            if isinstance(value, Many):
                found.append(_map(state, {name: value.tensors[0]}))
    return found


def _numbers(message: str, state: State) -> list[State]:
    """Any two numbers in the message may be what is and what should be."""
    numbers = [int(n) for n in _NUMBER.findall(message[:400])][:10]
    sizes = {size for _, value in _tensors(state) for size in value.shape}
    sizes |= {s for _, v in state if isinstance(v, Many) for t in v.tensors for s in t.shape}
    found: list[State] = []
    for have in dict.fromkeys(n for n in numbers if n in sizes and n > 1):
        for want in dict.fromkeys(numbers):
            if want != have and want > 0:
                found += _swap(state, have, want)
    return found[:10]


def _other_ranks(state: State) -> list[State]:
    found: list[State] = []
    for rank in (3, 4, 2, 5, 1):
        found += _ranked(state, rank, None)[:2]
    return found
