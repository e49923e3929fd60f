"""The Python around a kernel: the reference's constructor, a forward that launches it."""

import ast
import copy

from kernelsmith.propose.rules.graph import Graph, Kind, Shape
from kernelsmith.propose.rules.idle import evaluated
from kernelsmith.propose.rules.names import pointers
from kernelsmith.propose.rules.source import Module

_TEMPLATE = '''\
"""{title}

{words}
"""
{header}
{imports}

# EVOLVE-BLOCK-START
{kernel}
# EVOLVE-BLOCK-END


{body}
'''


def candidate_source(
    module: Module, graph: Graph, *, header: str, words: str, imports: str, kernel: str,
    launch: list[str],
) -> str:  # fmt: skip
    """Put a stand-alone candidate together."""
    task = module.task
    lines = [*_imports(module), *imports.splitlines()]
    ordered = sorted(set(lines), key=import_order)
    return _TEMPLATE.format(
        title=f"{task.name}: written by kernelsmith's rules.", words=words, header=header,
        imports="\n".join(ordered), kernel=kernel.rstrip(), body=_body(module, graph, launch),
    )  # fmt: skip


def import_order(line: str) -> tuple[bool, bool, str]:
    """What comes from the future comes first, what is ours last."""
    return not line.startswith("from __future__"), line.startswith("from kernelsmith"), line


def _imports(module: Module) -> list[str]:
    """What the constructor needs, with torch in any case."""
    found = ["import torch"]
    for node in module.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(ast.unparse(node))
    return found


def _body(module: Module, graph: Graph, launch: list[str]) -> str:
    task = module.task
    arguments = ast.unparse(module.forward.args)
    made = [*_modes(module), *_prepared(graph), *launch]
    lines = "\n".join(_indent(made, 4 if task.is_function else 8))
    if task.is_function:
        around = _around(module, [module.forward.args, *_texts(graph)])
        return f"{around}def {task.entry}({arguments}):\n{lines}"
    own = _class(module)
    around = _around(module, [own, module.forward.args, *_texts(graph)])
    forward = f"    def forward({arguments}):\n{lines}"
    return f"{around}{ast.unparse(own)}\n\n{forward}" if own.body else (
        f"{around}class ModelNew({', '.join(map(ast.unparse, own.bases))}):\n{forward}"
    )  # fmt: skip


def _modes(module: Module) -> list[str]:
    """Lines that insist on what dropout needs in order to do nothing."""
    return [
        line for path in evaluated(module)
        for line in (f"if {path}.training:", f'    raise ValueError("{path} is in training")')
    ]  # fmt: skip


def _indent(lines: list[str], by: int) -> list[str]:
    return [" " * by + line if line else "" for line in lines]


def _texts(graph: Graph) -> list[ast.AST]:
    """What a forward evaluates in Python."""
    texts = [n.text for n in graph.nodes] + [text for _, text in graph.prefix]
    return [ast.parse(each, mode="eval") for each in texts if each]


def _around(module: Module, wanted: list[ast.AST]) -> str:
    """What the copied parts mention of the rest of the file: constants, functions, classes."""
    kept: set[int] = set()
    while True:
        names = {n.id for each in wanted for n in ast.walk(each) if isinstance(n, ast.Name)}
        more = [
            i for i, each in enumerate(module.tree.body)
            if i not in kept and _defined(each) in names and _defined(each) != module.task.entry
        ]  # fmt: skip
        if not more:
            break
        kept |= set(more)
        wanted = [module.tree.body[i] for i in more]
    found = [module.tree.body[i] for i in sorted(kept)]
    text = ""
    for each, after in zip(found, [*found[1:], *found[:1]], strict=True):
        tight = isinstance(each, ast.Assign) and isinstance(after, ast.Assign)
        text += ast.unparse(each) + ("\n" if tight and each is not found[-1] else "\n\n\n")
    return text


def _defined(node: ast.stmt) -> str:
    match node:
        case ast.Assign(targets=[ast.Name(id=name), *_]):
            return name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name
    return ""


def _class(module: Module) -> ast.ClassDef:
    """The reference's class as ``ModelNew``, with its constructor and what that one needs."""
    own = next(
        n for n in reversed(module.tree.body)
        if isinstance(n, ast.ClassDef) and n.name == module.task.entry
    )  # fmt: skip
    needed: set[str] = set()
    wanted: list[ast.AST] = [*_bases(module, own)]  # their constructors may ask for its methods
    wanted += [module.constructor] if module.constructor is not None else []
    while wanted:
        names = {n.attr for each in wanted for n in ast.walk(each) if isinstance(n, ast.Attribute)}
        wanted = [n for n in own.body if _member(n) in names - needed - {"forward"}]
        needed |= {_member(n) for n in wanted if isinstance(n, ast.stmt)}
    made = copy.deepcopy(own)
    made.name = "ModelNew"
    made.body = [_plainly(n, own.name) for n in made.body if _member(n) in {"__init__", *needed}]
    return made


def _bases(module: Module, own: ast.ClassDef) -> list[ast.ClassDef]:
    """The classes of the file that a class is built on."""
    names = {each.id for each in own.bases if isinstance(each, ast.Name)} - {own.name}
    found = [n for n in module.tree.body if isinstance(n, ast.ClassDef) and n.name in names]
    return [one for each in found for one in (*_bases(module, each), each)]


def _member(node: ast.stmt) -> str:
    """The name that a statement of a class gives it; empty for all else."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return _defined(node)


def _plainly(node: ast.stmt, own: str) -> ast.stmt:
    """The same, without its docstring, with a plain ``super()`` and the class's new name."""
    if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
        node.body = node.body[1:] or [ast.Pass()]
    for each in ast.walk(node):
        match each:
            case ast.Call(func=ast.Name(id="super")):
                each.args = []
            case ast.Name(id=name) if name == own:
                each.id = "ModelNew"
    return node


def _prepared(graph: Graph) -> list[str]:
    """Products first, then everything dense, checked and with a place for the output."""
    names = pointers(graph)
    lines = [f"{name} = {text}" for name, text in graph.prefix]
    products = {name for name, _ in graph.prefix}
    for number, name in names.items():
        text = graph.nodes[number].text
        dense = "" if text in products else ".contiguous()"
        if name != text or dense:
            lines.append(f"{name} = {text}{dense}")
    like = local(graph)
    if graph.rank is not None:
        lines.append(f"if {like}.dim() != {graph.rank}:")
        lines.append(f'    raise ValueError("{like} must have {graph.rank} dimensions")')
    size = "shape[-1]" if graph.trailing == 1 else f"shape[{-graph.trailing}:].numel()"
    lines.append(f"dim = {like}.{size}")
    # Empty rows are rows, too: their sum is 0.
    lines.append(f"rows = {like}.shape[:{-graph.trailing}].numel()")
    if _needs_elements(graph, graph.output):
        lines.append("if not dim:")
        lines.append(f'    raise ValueError("there is no largest or smallest of nothing: {like}")')
    wanted = {
        Shape.FULL: f"{{0}}.shape == {like}.shape",
        Shape.COLUMN: "{0}.numel() == dim",
        Shape.ROW: "{0}.numel() == rows",
        Shape.SQUEEZED: "{0}.numel() == rows",
        Shape.SCALAR: "{0}.numel() == 1",
    }
    for number, name in names.items():
        if name != like:
            fits = wanted[graph.nodes[number].shape].format(name)
            lines.append(f"if not ({fits} and {name}.dtype is {like}.dtype):")
            lines.append(f'    raise ValueError("{name} does not fit {like}")')
    return [*lines, _output(graph)]


def _needs_elements(graph: Graph, number: int) -> bool:
    """Whether a value is the largest or smallest of a row, as far as it is not one per element."""
    node = graph.nodes[number]
    if node.kind is Kind.REDUCE:
        return node.op in ("max", "min")
    if node.shape in (Shape.FULL, Shape.COLUMN) or node.op == "or_zero":
        return False
    return any(_needs_elements(graph, each) for each in node.args)


def local(graph: Graph) -> str:
    """The variable in ``forward`` whose shape the output follows."""
    return next(
        name for number, name in pointers(graph).items()
        if graph.nodes[number].text == graph.shaped_like
    )  # fmt: skip


def _output(graph: Graph) -> str:
    like, trailing = local(graph), graph.trailing
    match graph.result.shape:
        case Shape.FULL:
            own = any(name == graph.shaped_like for name, _ in graph.prefix)
            return f"out = {like}" if own else f"out = torch.empty_like({like})"
        case Shape.ROW:
            kept = f"(*{like}.shape[:{-trailing}], {', '.join(['1'] * trailing)})"
            return f"out = {like}.new_empty({kept})"
        case Shape.SQUEEZED:
            return f"out = {like}.new_empty({like}.shape[:{-trailing}])"
    return f"out = {like}.new_empty(())"


def defines(node: ast.stmt) -> set[str] | None:
    """Names that a statement makes; ``None`` of imports, which all stay."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {t.id for t in node.targets if isinstance(t, ast.Name)}
    return None
