"""What a class says about its arguments: annotations, docstrings, examples; read, never run."""

import ast
import re
from dataclasses import dataclass, field

_LONGEST_DOC = 8000


@dataclass(slots=True)
class Notes:
    """Of one class: annotations by argument, and its docstrings."""

    init: dict[str, str] = field(default_factory=dict)
    forward: dict[str, str] = field(default_factory=dict)
    doc: str = ""
    has_init: bool = False
    has_forward: bool = False


def notes_of(node: ast.ClassDef) -> Notes:
    """Read one class before annotations and docstrings are stripped."""
    docs = [ast.get_docstring(node) or ""]
    found = Notes()
    for statement in node.body:
        if not isinstance(statement, ast.FunctionDef):
            continue
        if statement.name in ("__init__", "forward"):
            docs.append(ast.get_docstring(statement) or "")
            said = _annotations(statement.args)
            if statement.name == "forward":
                found.forward, found.has_forward = said, True
            else:
                found.init, found.has_init = said, True
    found.doc = "\n".join(doc for doc in docs if doc)[:_LONGEST_DOC]
    return found


def _annotations(arguments: ast.arguments) -> dict[str, str]:
    each = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return {
        a.arg: ast.unparse(a.annotation) if a.annotation is not None else ""
        for a in each if a.arg not in ("self", "cls")
    }  # fmt: skip


def shapes_in(doc: str) -> dict[str, list[str]]:
    """Shapes that a docstring gives by argument: ``x: (B, N, C)`` as ``['B', 'N', 'C']``."""
    found: dict[str, list[str]] = {}
    pattern = r"^\s*[`*-]*(\w+)[`*]*\s*(?:\([^)\n]*\))?\s*:?[^\n(\[]{0,80}[(\[]([\w\s,*./]+)[)\]]"
    for match in re.finditer(pattern, doc, re.MULTILINE):
        parts = [part.strip() for part in match[2].split(",") if part.strip()]
        if 2 <= len(parts) <= 5 and all(
            re.fullmatch(r"\*?[A-Za-z_]\w{0,14}|\d+", p) for p in parts
        ):
            found.setdefault(match[1], parts)
    return found


def examples_in(doc: str) -> list[str]:
    """Python in a docstring: lines behind a prompt, or fenced."""
    prompt = [line.strip()[4:] for line in doc.splitlines() if re.match(r"\s*(>>>|\.\.\.) ", line)]
    fenced = re.findall(r"```(?:python|py)?\n(.*?)```", doc, re.DOTALL)
    return ["\n".join(prompt)] * bool(prompt) + [_dedented(text) for text in fenced]


def _dedented(text: str) -> str:
    lines = [
        re.sub(r"^\s*>>> ?", "", line) if ">>>" in line else line for line in text.splitlines()
    ]
    widths = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    cut = min(widths, default=0)
    return "\n".join(line[cut:] for line in lines)
