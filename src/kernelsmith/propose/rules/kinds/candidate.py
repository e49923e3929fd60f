"""A stand-alone candidate: the kernel, the reference's own class, and when to use which."""

import ast
import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.idle import evaluated
from kernelsmith.propose.rules.kinds.trace import safe_name
from kernelsmith.propose.rules.lineage import delegates
from kernelsmith.propose.rules.module_source import defines, import_order
from kernelsmith.propose.rules.source import Module
from kernelsmith.propose.rules.space import Parameters, Space

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
_LIBRARY = '''\
lib = cpp(
    r"""
{text}""",
    flags=["-fno-math-errno", "-fno-trapping-math"],
)
RUN = {{
    torch.float32: lib.run_float32,
    torch.bfloat16: lib.run_bfloat16,
    torch.float16: lib.run_float16,
}}'''
_HELPERS = ("get_inputs", "get_init_inputs", "get_workloads")
_IMPORTS = {
    "cpu": ("from kernelsmith.kernels import cpp",),
    "triton": ("import triton", "import triton.language as tl"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What one choice of parameters gives."""

    kernel: str
    """Python between the EVOLVE markers."""
    fits: tuple[str, ...]
    """Conditions in ``forward`` under which the kernel may run; all others run the reference."""
    launch: tuple[str, ...]
    """Lines that return the output."""
    setup: tuple[str, ...] = ()
    """Lines before the conditions."""
    others: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Other classes of the file whose ``forward`` gets these lines; no ``launch``: theirs alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A family of candidates for one task and one backend."""

    backend: str
    module: Module
    space: Space
    render: Callable[[Parameters], Parts]
    does: str
    """What all its candidates do, in one sentence."""

    def source(self, chosen: Parameters) -> str:
        """A stand-alone candidate; the same parameters give the same text."""
        parts = self.render(chosen)
        if taken := _defined(parts.kernel) & _names(self.module):
            raise NotRecognised(f"the file has a `{min(taken)}` of its own, as the kernel has")
        lines = sorted(
            {"import torch", *_IMPORTS[self.backend], *_imports(self.module)},
            key=import_order,
        )
        return _TEMPLATE.format(
            title=f"{self.module.task.name}: written by kernelsmith's rules.", words=self.does,
            header=self.space.header(chosen), imports="\n".join(lines),
            kernel=parts.kernel.strip(), body=_body(self.module, parts),
        )  # fmt: skip

    def words(self, chosen: Parameters) -> str:
        """What this choice tries."""
        changed = [
            f"{each.name} {chosen[each.name]} ({each.why})"
            for each in self.space.parameters
            if chosen[each.name] != each.default
        ]
        return self.does + (f" With {', '.join(changed)}." if changed else "")


def cpp_library(text: str) -> str:
    """C++ with entries for three dtypes, as the Python that builds it."""
    return _LIBRARY.format(text=text.strip("\n") + "\n")


def cpp_entries(arguments: Sequence[tuple[str, str]], result: str = "void") -> str:
    """The C functions, one per dtype, that call ``kernel<T>``; types are written with ``T``."""
    text = ""
    for dtype, kind in (("float32", "float"), ("bfloat16", "bf16"), ("float16", "f16")):
        given = ", ".join(f"{t.replace('T*', 'void*')} {name}" for t, name in arguments)
        passed = ", ".join(
            f"({t.replace('T*', kind + '*')}){name}" if "T*" in t else name for t, name in arguments
        )
        back = "" if result == "void" else "return "
        text += (
            f'extern "C" {result} run_{dtype}({given}) {{\n  {back}kernel<{kind}>({passed});\n}}\n'
        )
    return text


def _defined(kernel: str) -> set[str]:
    return set(re.findall(r"^(?:def|class) (\w+)", kernel, re.MULTILINE))


def _names(module: Module) -> set[str]:
    """Functions, classes and values of the file, which go into the candidate as well."""
    return set[str]().union(*(defines(each) or () for each in module.tree.body))


def _imports(module: Module) -> list[str]:
    return [ast.unparse(n) for n in module.tree.body if isinstance(n, ast.Import | ast.ImportFrom)]


def _body(module: Module, parts: Parts) -> str:
    task = module.task
    function = module.forward
    arguments = ast.unparse(function.args)
    names = [a.arg for a in function.args.args]
    inner = [f"{safe_name(n)} = {n}" for n in names if safe_name(n) != n] + [*parts.setup]
    passed = ", ".join(names if task.is_function else names[1:])
    plain = f"plain({passed})" if task.is_function else f"self.plain({passed})"
    if parts.fits:
        # The reference, for what the kernel is not made for.
        modes = [f"not {path}.training" for path in evaluated(module)]
        inner += [f"if not ({_joined([*parts.fits, *modes])}):", f"    return {plain}"]
    inner += parts.launch
    kept, made = [], copy.deepcopy(module.tree)
    for node in made.body:
        if isinstance(node, ast.FunctionDef) and node.name == task.entry and task.is_function:
            node.name = "plain"
            kept.append(_without_docstring(node))
        elif isinstance(node, ast.ClassDef) and node.name == task.entry:
            if parts.launch:  # else an inherited forward is inherited here too
                node.body += delegates(made, task.entry, ("forward",))
            kept.append(_renamed(node))
    kept = [_grafted(each, dict(parts.others)) for each in [*_used(made, kept), *kept]]
    if not parts.launch:  # the entry is as it was, over parts that are not
        return _restored(kept)
    text = "\n\n\n".join(ast.unparse(each) for each in kept)
    if task.is_function:
        lines = "\n".join(_indent(inner, 4))
        return f"{text}\n\n\ndef {task.entry}({arguments}):\n{lines}"
    lines = "\n".join(_indent(inner, 8))
    return f"{text}\n\n    def forward({arguments}):\n{lines}"


def _grafted(node: ast.stmt, bodies: Mapping[str, tuple[str, ...]]) -> ast.stmt:
    """Another class with a ``forward`` of these lines; its own one is kept as ``plain``."""
    if isinstance(node, ast.ClassDef) and node.name in bodies:
        for part in node.body:
            if isinstance(part, ast.FunctionDef) and part.name == "forward":
                part.name = "plain"
                lines = "\n".join(_indent(bodies[node.name], 4))
                text = f"def forward({ast.unparse(part.args)}):\n{lines}"
        node.body += ast.parse(text).body
    return node


def _restored(kept: Sequence[ast.stmt]) -> str:
    for part in ast.walk(kept[-1]):
        if isinstance(part, ast.FunctionDef) and part.name == "plain":
            part.name = "forward"
    return "\n\n\n".join(ast.unparse(each) for each in kept)


def _joined(conditions: Sequence[str]) -> str:
    if len(conditions) == 1:
        return conditions[0]
    return "\n    " + "\n    and ".join(conditions) + "\n"


def _indent(lines: Sequence[str], by: int) -> list[str]:
    flat = [part for line in lines for part in line.split("\n")]
    return [" " * by + line if line else "" for line in flat]


def _without_docstring(node: ast.stmt) -> ast.stmt:
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(each) is not None:
            each.body = each.body[1:] or [ast.Pass()]
    return node


def _renamed(node: ast.ClassDef) -> ast.ClassDef:
    """The reference's class as ``ModelNew``, its ``forward`` as ``plain``, which comes last."""
    own = node.name
    _without_docstring(node)
    node.name = "ModelNew"
    for each in ast.walk(node):
        if (
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Name)
            and (each.func.id == "super")
        ):
            each.args = []
        if isinstance(each, ast.Name) and each.id == own:
            each.id = "ModelNew"
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "forward":
            part.name = "plain"
    return node


def _used(tree: ast.Module, wanted: Sequence[ast.stmt]) -> list[ast.stmt]:
    """What else of the file these need: constants, functions, other classes."""
    names = {n.id for each in wanted for n in ast.walk(each) if isinstance(n, ast.Name)}
    found: list[ast.stmt] = []
    for node in reversed(tree.body):
        if node in wanted or isinstance(node, ast.Import | ast.ImportFrom):
            continue
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]):
                pass
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                if name in _HELPERS:
                    continue
            case _:
                continue
        if name in names:
            found.append(_without_docstring(node))
            names |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return found[::-1]
