"""Static inspection: refuse source that reaches around the benchmark, before it is built."""

import ast
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.guards import maca, rules
from kernelsmith.evaluate.guards.names import Names, constant
from kernelsmith.evaluate.guards.native import inspect_native
from kernelsmith.evaluate.guards.rules import Rule


class FindingKind(StrEnum):
    """What a finding makes of the candidate."""

    REFUSED = "refused"
    BUILD = "build"
    """It cannot even be loaded: an honest failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The first thing found, in the order of the source."""

    kind: FindingKind
    rule: str
    line: int
    message: str


@lru_cache(maxsize=16)  # a rehearsal asks, and the judge asks again: a tenth of a second each
def inspect_source(candidate: Candidate, task: Task) -> Finding | None:
    """Read a candidate's Python and the C++ in its strings; none when nothing stands out.

    Comments are never read: text addressed to a reviewer reaches nobody.
    """
    try:
        tree = ast.parse(candidate.source)
        found = _Inspector(tree).findings()
    except SyntaxError as error:
        return _build("syntax", error.lineno or 1, f"{error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        return _build("syntax", 1, f"the source cannot be parsed: {error or type(error).__name__}")
    if found:
        return min(found, key=lambda each: each.line)
    if not any(task.candidate_entry in _defined(each) for each in tree.body):
        return _build("entry", 1, f"the source defines no {task.candidate_entry!r} at module level")
    if candidate.backend.startswith("maca"):
        for remark in maca.lint_candidate(candidate.source):
            if remark.fatal:
                return _build(maca.RULE, remark.line, f"{maca.RULE}: {remark}")
    return None


def _build(rule: str, line: int, what: str) -> Finding:
    return Finding(kind=FindingKind.BUILD, rule=rule, line=line, message=f"line {line}: {what}")


def _defined(node: ast.AST) -> set[str]:
    """Name what one module-level statement may define, inside ``if`` and ``try`` too."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    if isinstance(node, ast.alias):
        return {node.asname or node.name}
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Store) else set()
    return {name for child in ast.iter_child_nodes(node) for name in _defined(child)}


class _Inspector(ast.NodeVisitor):
    def __init__(self, tree: ast.AST, *, first_line: int | None = None) -> None:
        self._tree = tree
        self._names = Names(tree)
        self._first_line = first_line
        self._found: list[Finding] = []

    def findings(self) -> list[Finding]:
        self.visit(self._tree)
        return self._found

    def _report(self, rule: Rule, line: int, what: str) -> None:
        line = self._first_line or line
        self._found.append(
            Finding(
                kind=FindingKind.REFUSED,
                rule=rule.id,
                line=line,
                message=f"line {line}: `{what}` {rule.why}",
            )
        )

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            self._check(each.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for each in node.names:
            name = node.module or ""
            self._check(name if each.name == "*" else f"{name}.{each.name}", node.lineno)

    def _check(self, name: str, line: int) -> bool:
        rule = rules.rule_for(name)
        if rule is not None:
            self._report(rule, line, name)
        return rule is not None

    def visit_Name(self, node: ast.Name) -> None:
        name = self._names.dotted(node)
        if name in ("builtins.exec", "builtins.eval", "builtins.compile"):
            self._report(rules.HIDES, node.lineno, node.id)
        elif node.id == "__builtins__":
            self._report(rules.PATCHES, node.lineno, node.id)
        elif name is not None and isinstance(node.ctx, ast.Load):
            self._check(name, node.lineno)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self._names.dotted(node)
        if (rule := rules.rule_for_attribute(node.attr)) is not None:
            self._report(rule, node.lineno, node.attr)
            return
        if not isinstance(node.ctx, ast.Load):
            if node.attr == "__class__":
                self._report(rules.SUBCLASSES, node.lineno, node.attr)
            elif name is not None:
                self._report(rules.PATCHES, node.lineno, name)
                return
        # A chain is judged as a whole: `kernelsmith` alone offends, `kernelsmith.kernels` does not.
        if name is None:
            self.visit(node.value)
        else:
            self._check(name, node.lineno)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        name, key = self._names.dotted(node), constant(node.slice)
        stores = not isinstance(node.ctx, ast.Load)
        if key == "__builtins__" or (stores and name is not None):
            self._report(rules.PATCHES, node.lineno, name or "__builtins__")
        elif name is not None and self._check(name, node.lineno):
            return
        elif stores and key is not None and self._is_environment(node.value):
            self._check_variable(key, node.lineno)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id == "Model":
                self._report(rules.INHERITS, node.lineno, "Model")
            elif self._names.dotted(base) in rules.TENSORS:
                self._report(rules.SUBCLASSES, node.lineno, node.name)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if (rule := rules.rule_for_attribute(node.name)) is not None:
            self._report(rule, node.lineno, node.name)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = self._names.dotted(node.func) or ""
        module, _, last = name.rpartition(".")
        whole = self._names.dotted(node)
        if last in ("exec", "eval", "compile") and module == "builtins":
            self._run_text(node, last)
            return
        if last in ("__import__", "import_module") and module in ("builtins", "importlib"):
            if whole is None:
                self._report(rules.HIDES, node.lineno, last)
            else:
                self._check(whole, node.lineno)
        elif whole is not None:
            self._check(whole, node.lineno)
        self._check_change(node, name)
        self.generic_visit(node)

    def _run_text(self, node: ast.Call, what: str) -> None:
        text = constant(node.args[0]) if node.args else None
        if text is None:
            self._report(rules.HIDES, node.lineno, what)
            return
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return  # it will fail when it runs, as any other text would
        self._found += _Inspector(tree, first_line=self._first_line or node.lineno).findings()

    def _check_change(self, node: ast.Call, name: str) -> None:
        """Catch attribute assignment in the form of a call."""
        first = self._names.dotted(node.args[0]) if node.args else None
        holder = self._holder(node.func)
        if name in ("builtins.setattr", "builtins.delattr") and first is not None:
            self._report(rules.PATCHES, node.lineno, first)
        elif name == "builtins.getattr" and first in rules.TUNNELS and len(node.args) > 1:
            if constant(node.args[1]) is None:
                self._report(rules.HIDES, node.lineno, f"getattr({first}, ...)")
        elif isinstance(node.func, ast.Attribute):
            if node.func.attr in ("__setattr__", "__delattr__") and (holder or first):
                self._report(rules.PATCHES, node.lineno, holder or first or "")
            elif holder is not None and holder.endswith(".__dict__"):
                if node.func.attr in ("update", "setdefault", "pop", "__setitem__"):
                    self._report(rules.PATCHES, node.lineno, holder)
            elif self._is_environment(node.func.value):
                self._check_environment_call(node, node.func.attr)

    def _holder(self, function: ast.expr) -> str | None:
        if not isinstance(function, ast.Attribute):
            return None
        value = function.value
        if isinstance(value, ast.Call) and self._names.dotted(value.func) == "builtins.vars":
            inner = self._names.dotted(value.args[0]) if value.args else None
            return f"{inner}.__dict__" if inner is not None else None
        found = self._names.dotted(value)
        return None if found in ("builtins.object", "builtins.type") else found

    def _is_environment(self, node: ast.expr) -> bool:
        return self._names.dotted(node) == "os.environ"

    def _check_environment_call(self, node: ast.Call, method: str) -> None:
        if method not in ("update", "setdefault", "pop", "__setitem__", "__delitem__"):
            return
        keys = [each.arg for each in node.keywords]
        for argument in node.args:
            if isinstance(argument, ast.Dict):
                keys += [constant(key) for key in argument.keys if key is not None]
        if node.args:
            keys.append(constant(node.args[0]))
        for key in keys:
            self._check_variable(key or "", node.lineno)

    def _check_variable(self, key: str, line: int) -> None:
        if key.startswith(rules.ENVIRONMENT_PREFIXES) and key not in rules.ENVIRONMENT_ALLOWED:
            self._report(rules.ENVIRONMENT, line, key)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._read_native(node, node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        parts = [each.value for each in node.values if isinstance(each, ast.Constant)]
        self._read_native(node, " ".join(str(each) for each in parts))
        for each in node.values:
            if isinstance(each, ast.FormattedValue):
                self.visit(each)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        text = constant(node)
        if text is None:
            self.generic_visit(node)
        else:
            self._read_native(node, text)

    def _read_native(self, node: ast.expr, text: str) -> None:
        for rule, offset, what in inspect_native(text):
            self._report(rule, min(node.lineno + offset, node.end_lineno or node.lineno), what)
