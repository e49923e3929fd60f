"""The Python around a kernel: the reference's constructor, a forward that launches it."""

import ast
import copy

from kernelsmith.propose.rules.graph import Graph, Shape
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
    ordered = sorted(set(lines), key=lambda each: (each.startswith("from kernelsmith"), each))
    return _TEMPLATE.format(
        title=f"{task.name}: written by kernelsmith's rules.", words=words, header=header,
        imports="\n".join(ordered), kernel=kernel.rstrip(), body=_body(module, graph, launch),
    )  # fmt: skip


def _imports(module: Module) -> list[str]:
    """What the constructor needs, with torch in any case."""
    found = ["import torch"]
    for node in module.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(ast.unparse(node))
    return found


def _body(module: Module, graph: Graph, launch: list[str]) -> str:
    task = module.task
    constants = "".join(
        f"{ast.unparse(node)}\n"
        for node in module.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        and _uses(module, graph, node.targets[0].id)
    )  # fmt: skip
    constants = f"{constants}\n\n" if constants else ""
    arguments = ast.unparse(module.forward.args)
    lines = "\n".join(_indent(_prepared(graph) + launch, 4 if task.is_function else 8))
    if task.is_function:
        return f"{constants}def {task.entry}({arguments}):\n{lines}"
    parts = [f"{constants}class ModelNew(torch.nn.Module):"]
    if module.constructor is not None:
        parts += _indent(ast.unparse(_constructor(module.constructor)).splitlines(), 4)
        parts.append("")
    parts += [f"    def forward({arguments}):", lines]
    return "\n".join(parts)


def _indent(lines: list[str], by: int) -> list[str]:
    return [" " * by + line if line else "" for line in lines]


def _uses(module: Module, graph: Graph, name: str) -> bool:
    """Whether the copied parts mention a constant of the module."""
    texts = [n.text for n in graph.nodes] + [text for _, text in graph.prefix]
    trees: list[ast.AST] = [ast.parse(each, mode="eval") for each in texts if each]
    trees.append(module.forward.args)
    if module.constructor is not None:
        trees.append(module.constructor)
    return any(
        isinstance(each, ast.Name) and each.id == name for tree in trees for each in ast.walk(tree)
    )


def _constructor(function: ast.FunctionDef) -> ast.FunctionDef:
    """The same, without its docstring and with a plain ``super()``."""
    made = copy.deepcopy(function)
    if ast.get_docstring(made) is not None:
        made.body = made.body[1:]
    for node in ast.walk(made):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "super"
        ):
            node.args = []
    return made


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
    size = "shape[-1]" if graph.trailing == 1 else f"shape[{-graph.trailing}:].numel()"
    lines.append(f"dim = {like}.{size}")
    lines.append(f"rows = {like}.numel() // dim if dim else 0")
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
