"""The file around generated code: the reference as ``plain``, and a forward that checks first.

Generated code holds for one set of shapes, strides and types. ``forward`` asks for exactly these
and hands everything else to the reference's own forward, which the candidate keeps.
"""

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.compiler.apart import renamed, renamings
from kernelsmith.propose.rules.compiler.call import Call
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.lineage import class_of, delegates, passed
from kernelsmith.propose.rules.module_source import defines, import_order

_HELPERS = ("get_inputs", "get_init_inputs", "get_workloads", "statistic", "index_scores")
_LAID_OUT = '''\
def laid_out(tensors, layout):
    """Whether these are what the kernels were made for, and nobody asks for gradients."""
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        return False
    return all(
        each.shape == shape and each.stride() == stride and each.dtype is dtype
        for each, (shape, stride, dtype) in zip(tensors, layout)
    )'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A call, and the function of the candidate that carries it out."""

    call: Call
    function: str
    """Takes the call's tensors in order; returns its one result, or several as a tuple."""
    label: str = ""
    """For which workload."""


def candidate_text(
    task: Task, parts: Sequence[Part], *, header: str, words: str, imports: Sequence[str],
    block: str, origin: str = "from what torch's compiler does",
) -> str:  # fmt: skip
    """A whole candidate.

    Args:
        task: Its source gives the constructor and the plain forward.
        parts: One per set of shapes; the first that fits is taken.
        header: The line with the parameters.
        words: What this candidate is, for its reader.
        imports: What the block needs, as lines.
        block: The code that computes, between the marks of evolution.
        origin: Where the rules have it from.

    Raises:
        NotRecognised: The reference is of no form that can be kept.
    """
    tree = _kept(task)
    own = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    rest = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    lines = sorted({"import torch", *own, *imports}, key=import_order)
    others = renamings(block, {name for node in rest for name in _named(node)})
    block = renamed(block, others)
    parts = [replace(part, function=others.get(part.function, part.function)) for part in parts]
    layouts = [_layout(number, part, len(parts)) for number, part in enumerate(parts)]
    body = "\n\n\n".join(_statement(node, task, parts) for node in rest)
    return (
        f'"""{task.name}: written by kernelsmith\'s rules {origin}.\n\n'
        f'{words}\n"""\n{header}\n' + "\n".join(lines) + "\n\n# EVOLVE-BLOCK-START\n"
        f"{block.rstrip()}\n# EVOLVE-BLOCK-END\n\n\n"
        + "\n".join(layouts) + f"\n\n\n{_LAID_OUT}\n\n\n{body}\n"
    )  # fmt: skip


def _layout(number: int, part: Part, count: int) -> str:
    tensors = [each for each in part.call.arguments if each.shape is not None]
    entries = [f"({each.shape}, {each.stride}, torch.{each.dtype})," for each in tensors]
    comment = f"  # {part.label}" if part.label and count > 1 else ""
    text = f"{_layout_name(number, count)} = ({' '.join(entries)})"
    if len(text) > 96:
        inner = "".join(f"    {each}\n" for each in entries)
        text = f"{_layout_name(number, count)} = (\n{inner})"
    return text + comment


def _layout_name(number: int, count: int) -> str:
    return "LAYOUT" if count == 1 else f"LAYOUT_{number + 1}"


def _kept(task: Task) -> ast.Module:
    """The task's file without its recipes, the reference under the candidate's name."""
    try:
        tree = ast.parse(task.source)
    except SyntaxError as error:
        raise NotRecognised(f"rules cannot parse the task: {error.msg}") from error
    kept: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if node.name not in _HELPERS:
                kept.append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) for t in node.targets)
        ):
            kept.append(node)
    needed = _needed(kept, task.entry)
    found = [node for node in kept if defines(node) is None or defines(node) & needed]  # type: ignore[operator]
    if not any(defines(node) == {task.entry} for node in found):
        raise NotRecognised(f"rules find no {task.entry!r} in the task")
    if not task.is_function:
        owner = class_of(tree, task.entry)
        assert owner is not None
        owner.body += delegates(tree, task.entry)
    return ast.Module(body=found, type_ignores=[])


def _named(node: ast.stmt) -> set[str]:
    """Names that a statement makes or uses: a kernel called ``max`` is not what it means."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | (defines(node) or set())


def _needed(nodes: Sequence[ast.stmt], entry: str) -> set[str]:
    """Names of the module that the reference uses, directly or not."""
    uses = {
        name: {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        for node in nodes
        for name in defines(node) or ()
    }
    found: set[str] = set()
    stack = [entry]
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack += [each for each in uses.get(name, ()) if each in uses]
    return found


def _statement(node: ast.stmt, task: Task, parts: Sequence[Part]) -> str:
    if isinstance(node, ast.ClassDef) and node.name == task.entry:
        return _class(node, task, parts)
    if isinstance(node, ast.FunctionDef) and node.name == task.entry:
        return _function(node, parts)
    return ast.unparse(node)


def _class(node: ast.ClassDef, task: Task, parts: Sequence[Part]) -> str:
    made = copy.deepcopy(node)
    for each in ast.walk(made):
        if isinstance(each, ast.Name) and each.id == task.entry:
            each.id = task.candidate_entry
    made.name = task.candidate_entry
    methods = [each for each in made.body if isinstance(each, ast.FunctionDef)]
    forward = next((each for each in methods if each.name == "forward"), None)
    if forward is None:
        raise NotRecognised(f"rules find no forward of {task.entry!r} in the task")
    if any(each.name == "plain" for each in methods):
        raise NotRecognised("the task has a method of its own that is called plain")
    constructor = next((each for each in methods if each.name == "__init__"), None)
    given = constructor is not None and any(part.call.made_with for part in parts)
    if constructor is not None and given:
        _remember(constructor, parts)
    new = copy.deepcopy(forward)
    forward.name = "plain"
    new.body = ast.parse("\n".join(_dispatch(new, parts, "self.", given=given))).body
    made.body.insert(made.body.index(forward) + 1, new)
    return ast.unparse(ast.fix_missing_locations(made))


def _remember(constructor: ast.FunctionDef, parts: Sequence[Part]) -> None:
    """Let the module know what it was made with: generated code has such numbers folded in."""
    names = [name for name, _ in parts[0].call.made_with]
    line = ast.parse(f"self.made_with = ({', '.join(names)},)").body
    at = 0
    for number, each in enumerate(constructor.body):
        if isinstance(each, ast.Expr) and "super(" in ast.unparse(each):
            at = number + 1
    constructor.body[at:at] = line


def _function(node: ast.FunctionDef, parts: Sequence[Part]) -> str:
    plain, new = copy.deepcopy(node), copy.deepcopy(node)
    plain.name = "plain"
    new.body = ast.parse("\n".join(_dispatch(new, parts, "", given=False))).body
    return f"{ast.unparse(plain)}\n\n\n{ast.unparse(ast.fix_missing_locations(new))}"


def _dispatch(
    forward: ast.FunctionDef, parts: Sequence[Part], owner: str, *, given: bool
) -> list[str]:
    lines = []
    for number, part in enumerate(parts):
        asked = []
        if given and part.call.made_with:
            values = ", ".join(value for _, value in part.call.made_with)
            asked.append(f"self.made_with == ({values},)")
        asked += [_condition(path, value) for path, value in part.call.conditions]
        indent = ""
        if asked:
            lines.append(f"if {' and '.join(asked)}:")
            indent = "    "
        tensors = ", ".join(a.path for a in part.call.arguments if a.shape is not None)
        lines += [
            f"{indent}tensors = ({tensors},)",
            f"{indent}if laid_out(tensors, {_layout_name(number, len(parts))}):",
            *[f"{indent}    {line}" for line in _returned(part)],
        ]
    return [*lines, f"return {owner}plain({passed(forward.args, method=bool(owner))})"]


def _condition(path: str, value: str) -> str:
    if value in ("True", "False") and path == "self.training":
        return path if value == "True" else f"not {path}"
    return f"{path} is None" if value == "None" else f"{path} == {value}"


def _returned(part: Part) -> list[str]:
    call, count = part.call, len(part.call.results)
    run = f"{part.function}(*tensors)"
    numbers = ", ".join(f"{{{each}}}" for each in range(count))
    if not call.assigned and call.tree in ("{0}" if count == 1 else f"({numbers})",):
        return [f"return {run}"]
    names = ["result"] if count == 1 else [f"results[{n}]" for n in range(count)]
    return [
        f"{'result' if count == 1 else 'results'} = {run}",
        *[f"{path} = {value.format(*names)}" for path, value in call.assigned],
        f"return {call.tree.format(*names)}",
    ]


def local_names(call: Call, taken: Mapping[str, object] | Sequence[str] = ()) -> dict[str, str]:
    """A readable variable for each argument: ``self.linear.weight`` is ``linear_weight``."""
    found: dict[str, str] = {}
    used = set(taken)
    for each in call.arguments:
        parts = [p for p in _words(each.path.removeprefix("self.")) if not p.startswith("_")]
        name = "_".join(parts[-3:]) or "tensor"
        if name[0].isdigit():
            name = f"t{name}"
        if name in ("torch", "triton", "tl", "self", "device") or name.startswith("buf"):
            name = f"{name}_"
        number, unique = 2, name
        while unique in used:
            unique, number = f"{name}_{number}", number + 1
        used.add(unique)
        found[each.name] = unique
    return found


def _words(path: str) -> list[str]:
    return [each for each in "".join(c if c.isalnum() or c == "_" else " " for c in path).split()]
