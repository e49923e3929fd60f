"""The steps of a call as lines of Python: allocations, library calls, launches, views."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from kernelsmith.propose.rules.compiler.call import (
    Alias,
    Allocate,
    Call,
    Constant,
    Drop,
    Launch,
    Library,
    Listed,
    Named,
    Operand,
    Part,
    Step,
    Verbatim,
    Viewed,
)
from kernelsmith.propose.rules.compiler.module_text import local_names
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.products.factors import dense

_WIDTH = 98
Layout = tuple[tuple[int, ...], tuple[int, ...]]
Launcher = Callable[[Launch], tuple[list[bool], str, list[str]]]
"""Which operands of a launch stay, its grid, its keywords."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A tensor: a variable, seen as it is or under another layout."""

    variable: str
    own: Layout | None
    """The variable's own layout, where it is known."""
    seen: Layout | None = None
    offset: int = 0
    fresh: bool = False
    """Whether it was made here, so that it begins where its memory does."""


class Body:
    """Writes one call as a function."""

    def __init__(self, call: Call, launcher: Launcher) -> None:
        self._call = call
        self._launcher = launcher
        self._names = local_names(call)
        self._places: dict[str, _Place] = {}
        self._lines: list[str] = []
        if not any(each.shape is not None for each in call.arguments):
            raise NotRecognised("the captured code takes no tensors")

    def function(self, name: str) -> str:
        """The whole function, with what it keeps beside it."""
        call = self._call
        for each in call.arguments:
            own = None if each.shape is None or each.stride is None else (each.shape, each.stride)
            self._places[each.name] = _Place(variable=self._names[each.name], own=own)
        for held in call.constants:
            own = held.shape, held.stride
            self._places[held.name] = _Place(variable=held.name, own=own, fresh=True)
        for number, step in enumerate(call.steps):
            self._step(step, call.steps[number + 1 :])
        results = [self._text(each) for each in call.results]
        self._lines.append(f"return {', '.join(results)}")
        body = "\n".join(self._lines)
        first = next(self._names[a.name] for a in call.arguments if a.shape is not None)
        top = [f"device = {first}.device"] if "device" in body else []
        top += [f"{c.name} = {c.name}_on(device)" for c in call.constants if _used(c.name, body)]
        if top and "device = " not in top[0]:
            top.insert(0, f"device = {first}.device")
        inner = "\n".join(f"    {line}" if line else "" for line in [*top, *self._lines])
        given = ", ".join(self._names[a.name] for a in call.arguments if a.shape is not None)
        kept = [_constant(c) for c in call.constants if _used(c.name, body)]
        return "\n\n\n".join([*kept, f"def {name}({given}):\n{inner}"])

    def _step(self, step: Step, later: tuple[Step, ...]) -> None:
        match step:
            case Allocate(name=name, shape=shape, stride=stride):
                self._places[name] = _Place(variable=name, own=(shape, stride), fresh=True)
                self._lines.append(_allocated(step))
            case Alias(name=name, of=of):
                self._places[name] = self._place(of)
            case Part(name=name, of=of, index=index):
                self._made(name, f"{self._places[of].variable}[{index}]", step, later)
            case Library():
                self._library(step, later)
            case Launch():
                self._launch(step)
            case Drop(name=name):
                self._drop(name, later)

    def _place(self, operand: Named | Viewed) -> _Place:
        found = self._places[operand.name]
        if isinstance(operand, Named):
            return found
        return _Place(
            variable=found.variable, own=found.own, seen=(operand.shape, operand.stride),
            offset=found.offset + operand.offset, fresh=found.fresh,
        )  # fmt: skip

    def _library(self, step: Library, later: tuple[Step, ...]) -> None:
        given = [self._text(each) for each in step.operands]
        given += [f"{name}={self._text(value)}" for name, value in step.keywords]
        if step.out is not None:
            given.append(f"out={self._text(Named(name=step.out))}")
        text = f"{step.target}({', '.join(given)})"
        if step.result is None:
            self._lines += _wrapped(text)
        else:
            self._made(step.result, text, step, later)

    def _made(self, name: str, text: str, step: Library | Part, later: tuple[Step, ...]) -> None:
        """A tensor from a library, laid out as what follows reads it."""
        layout = None
        if step.shape is not None and step.stride is not None:
            layout = step.shape, step.stride
            if _read_raw(name, later):
                self._lines += _wrapped(f"{name} = {text}")
                self._lines.append(f"{name} = in_layout({name}, {step.stride})")
                self._places[name] = _Place(variable=name, own=layout, fresh=True)
                return
        self._lines += _wrapped(f"{name} = {text}")
        self._places[name] = _Place(variable=name, own=layout)

    def _launch(self, step: Launch) -> None:
        kept, grid, keywords = self._launcher(step)
        operands = [
            self._pointer(each)
            for each, keep in zip(step.operands[: len(kept)], kept, strict=True)
            if keep
        ]
        self._lines += _wrapped(f"{step.kernel}[{grid}]({', '.join([*operands, *keywords])})")

    def _pointer(self, operand: Operand) -> str:
        """A kernel takes where a tensor begins; its shape does not matter."""
        if isinstance(operand, Named | Viewed):
            place = self._place(operand)
            return place.variable if place.offset == 0 else _view(place)
        return self._text(operand)

    def _text(self, operand: Operand) -> str:
        match operand:
            case Named() | Viewed():
                return _view(self._place(operand))
            case Listed(items=items):
                return f"[{', '.join(self._text(each) for each in items)}]"
            case Verbatim(text=text):
                return text
            case float() if not math.isfinite(operand):
                return f'float("{operand}")'
        return repr(operand)

    def _drop(self, name: str, later: tuple[Step, ...]) -> None:
        """Give memory back where something is still to be made."""
        if name in self._names or any(name == each.name for each in self._call.constants):
            return  # not ours to give back
        place = self._places.pop(name, None)
        if place is None or any(p.variable == place.variable for p in self._places.values()):
            return
        if any(isinstance(each, Allocate | Library) for each in later):
            self._lines.append(f"del {place.variable}")


def _read_raw(name: str, later: tuple[Step, ...]) -> bool:
    """Whether anything reads this tensor's memory by the strides that the compiler knows."""
    known = {name}
    for step in later:
        match step:
            case Alias(name=alias, of=of) if of.name in known:
                if isinstance(of, Viewed):
                    return True
                known.add(alias)
            case Launch(operands=operands):
                if any(isinstance(e, Named | Viewed) and e.name in known for e in operands):
                    return True
            case Library(operands=operands):
                if any(isinstance(e, Viewed) and e.name in known for e in operands):
                    return True
    return False


def _used(name: str, body: str) -> bool:
    return name in body


def _allocated(step: Allocate) -> str:
    if step.stride == dense(step.shape):
        made = f"torch.empty({step.shape}, dtype=torch.{step.dtype}, device=device)"
    else:
        made = (
            f"torch.empty_strided({step.shape}, {step.stride}, dtype=torch.{step.dtype}, "
            "device=device)"
        )
    return f"{step.name} = {made}"


def _constant(constant: Constant) -> str:
    values = ", ".join(
        f'float("{v}")' if isinstance(v, float) and not math.isfinite(v) else repr(v)
        for v in constant.values
    )
    made = f"torch.tensor([{values}], dtype=torch.{constant.dtype}, device=device)"
    return (
        f"@functools.cache\ndef {constant.name}_on(device):\n"
        f"    return {made}.reshape({constant.shape})"
    )


def _is_dense(layout: Layout) -> bool:
    return all(
        size == 1 or have == want
        for size, have, want in zip(*layout, dense(layout[0]), strict=True)
    )


def _view(place: _Place) -> str:
    """A tensor under another layout, by the plainest means that gives it."""
    name = place.variable
    if place.seen is None and place.offset == 0:
        return name
    seen = place.seen or place.own
    assert seen is not None
    shape, stride = seen
    if place.own is not None and place.offset == 0:
        if seen == place.own:
            return name
        if permuted := _permuted(place.own, seen):
            return f"{name}{permuted}"
        same = math.prod(place.own[0]) == math.prod(shape)
        if same and _is_dense(place.own) and _is_dense(seen):
            return f"{name}.view({', '.join(map(str, shape))})"
    if place.offset == 0:
        return f"{name}.as_strided({shape}, {stride})"
    begin = f"{place.offset}" if place.fresh else f"{name}.storage_offset() + {place.offset}"
    return f"{name}.as_strided({shape}, {stride}, {begin})"


def _permuted(own: Layout, seen: Layout) -> str | None:
    """How axes have to be swapped, where that is all."""
    have, want = list(zip(*own, strict=True)), list(zip(*seen, strict=True))
    if sorted(have) != sorted(want) or len(set(have)) < len(have):
        return None
    order = [have.index(each) for each in want]
    moved = [at for at, axis in enumerate(order) if at != axis]
    if order == [1, 0]:
        return ".t()"
    if len(moved) == 2:
        return f".transpose({moved[0]}, {moved[1]})"
    return f".permute({', '.join(map(str, order))})"


def _wrapped(text: str) -> list[str]:
    """A call over several lines where one is too long."""
    if len(text) <= _WIDTH - 4 or not text.endswith(")"):
        return [text]
    depth, start = 0, 0
    for at in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if depth == 0:
            start = at
            break
    head, inner = text[: start + 1], text[start + 1 : -1]
    lines, line = [], ""
    for piece in _pieces(inner):
        if line and len(line) + len(piece) + 2 > _WIDTH - 8:
            lines.append(f"    {line},")
            line = piece
        else:
            line = f"{line}, {piece}" if line else piece
    return [head, *lines, f"    {line},", ")"]


def _pieces(text: str) -> list[str]:
    found, depth, piece = [], 0, ""
    for each in text:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(each, 0)
        if each == "," and depth == 0:
            found.append(piece.strip())
            piece = ""
        else:
            piece += each
    return [*found, piece.strip()] if piece.strip() else found
