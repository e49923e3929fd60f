"""A slice as one file: imports, stand-ins, definitions in an order that loads."""

import ast
import re
from textwrap import indent

from kernelsmith.corpus.extract import seams
from kernelsmith.corpus.extract.forest import Inside, Outside, Seam
from kernelsmith.corpus.extract.slicer import Part, Slice, parse_head, stand_ins

_KNOWN = {
    "torch": ("import torch", "torch"),
    "torch.nn": ("from torch import nn", "nn"),
    "torch.nn.functional": ("import torch.nn.functional as F", "F"),
    "numpy": ("import numpy as np", "np"),
}
_RESERVED = {"Model", "ModelNew", "get_inputs", "get_init_inputs", "get_workloads", "F", "nn",
             "torch", "statistic", "index_scores"}  # fmt: skip

Target = Inside | Outside | Seam


class _Names:
    """Gives every target a name of its own in the file."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = set(taken)
        self.given: dict[Target, str] = {}
        self.imports: list[str] = []

    def fresh(self, wanted: str) -> str:
        name, count = wanted, 1
        while name in self.taken:
            count += 1
            name = f"{wanted}_{count}"
        self.taken.add(name)
        return name

    def of(self, target: Target) -> str:
        if target not in self.given:
            if isinstance(target, Outside):
                self.given[target] = self._outside(target)
            elif isinstance(target, Seam):
                self.given[target] = target.name
            else:
                self.given[target] = self.fresh(target.name)
        return self.given[target]

    def _outside(self, target: Outside) -> str:
        whole = f"{target.module}.{target.attribute}" if target.attribute else target.module
        if whole in _KNOWN:
            line, name = _KNOWN[whole]
            if line not in self.imports:
                self.imports.append(line)
            self.taken.add(name)
            return name
        front, _, last = whole.rpartition(".")
        name = self.fresh(last)
        renamed = "" if name == last else f" as {name}"
        self.imports.append(
            f"from {front} import {last}{renamed}" if front else f"import {last}{renamed}"
        )
        return name


def emit(made: Slice) -> tuple[str, str]:
    """Write a slice out; returns the text and the root class's name in it."""
    needed = stand_ins(made)
    taken = {*_RESERVED, *needed}
    for name in needed:
        taken |= set(re.findall(r"^(?:class|def) (\w+)", seams.SOURCES[name].text, re.MULTILINE))
        for line in re.findall(r"^(\w[\w =]*) = ", seams.SOURCES[name].text, re.MULTILINE):
            taken |= set(line.split(" = "))
    names = _Names(taken)
    names.of(made.root)
    for part in made.parts.values():
        for target in part.names.values():
            names.of(target)
    for name in needed:
        for line in seams.SOURCES[name].imports:
            if line not in names.imports:
                names.imports.append(line)
    order = _order(made)
    blocks = [seams.SOURCES[name].text.rstrip() for name in needed if seams.SOURCES[name].text]
    blocks += [_text(target, made.parts[target], names) for target in order]
    head = sorted(names.imports, key=lambda line: (not line.startswith("import"), line))
    return "\n".join(head) + "\n\n\n" + "\n\n\n".join(blocks) + "\n", names.of(made.root)


def _order(made: Slice) -> list[Inside]:
    """What is needed while loading comes first; values may call, so all they reach comes first."""
    done: list[Inside] = []
    busy: set[tuple[Inside, bool]] = set()

    def visit(target: Inside, *, whole: bool) -> None:
        if target in done or (target, whole) in busy:
            return
        busy.add((target, whole))
        part = made.parts[target]
        runs = whole or part.definition.kind == "value"
        for piece in part.pieces():
            for name in sorted(piece.names if runs else piece.eager):
                needed = part.names.get(name)
                if isinstance(needed, Inside) and needed != target:
                    visit(needed, whole=runs)
        if target not in done:
            done.append(target)

    for target in reversed(list(made.parts)):
        visit(target, whole=False)
    return done


def _text(target: Inside, part: Part, names: _Names) -> str:
    renames = {name: names.of(found) for name, found in part.names.items()}
    own = names.of(target)
    renames[target.name] = own
    renames = {old: new for old, new in renames.items() if old != new}
    definition = part.definition
    if definition.kind != "class":
        text = part.body.renamed(renames)
        if own == target.name:
            return text
        if definition.kind == "function":
            return re.sub(rf"^(def ){re.escape(target.name)}\b", rf"\g<1>{own}", text, count=1,
                          flags=re.MULTILINE)  # fmt: skip
        return text
    arguments, keywords, marks = parse_head(part.body.renamed(renames))
    head = ", ".join([ast.unparse(each) for each in arguments]
                     + [ast.unparse(each) for each in keywords])  # fmt: skip
    lines = [f"@{ast.unparse(each)}" for each in marks]
    lines.append(f"class {own}({head}):" if head else f"class {own}:")
    before: list[str] = []
    after: list[str] = []
    written: set[int] = set()
    for piece in part.fields.values():
        if piece.text and id(piece) not in written:
            written.add(id(piece))
            # ``copy = __copy__`` stands behind the method that it names.
            late = any(name in piece.attributes for name in part.methods)
            (after if late else before).append(piece.renamed(renames))
    methods = [piece.renamed(renames) for each in part.methods.values() for piece in each]
    inner = ["\n".join(before), *methods, "\n".join(after)]
    whole = "\n\n".join([each for each in inner if each]) or "pass"
    return "\n".join([*lines, indent(whole, "    ")])
