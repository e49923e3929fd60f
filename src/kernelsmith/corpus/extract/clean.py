"""Leaving out what a module computes nothing with: annotations, docstrings, logs, registration."""

import ast
import re

_KEPT_DECORATORS = {
    "staticmethod", "classmethod", "property", "dataclass", "dataclasses.dataclass",
    "contextmanager", "contextlib.contextmanager", "functools.lru_cache", "lru_cache",
    "functools.cache", "cache", "cached_property", "functools.cached_property", "functools.wraps",
    "wraps", "abstractmethod", "abc.abstractmethod", "torch.no_grad", "torch.inference_mode",
    "torch.enable_grad", "no_grad", "functools.partial", "unique", "functools.total_ordering",
    "total_ordering", "singledispatch", "functools.singledispatch", "register_to_config",
    "abstractproperty", "abc.abstractproperty",
}  # fmt: skip
_DROPPED = re.compile(
    r"regist|docstring|deprecat|(^|\.)jit\b|script|compile|type_?check|jaxtyp|beartype|no_type"
    r"|kernel|merge_with_config|capture_output|can_return_tuple|check_model_inputs|hub|autocast"
    r"|custom_fwd|custom_bwd|export|overload|final$|override|version|requires|experimental|public"
    r"|MODELS|HOOKS|BACKBONES|NECKS|HEADS|LOSSES|REGISTRY|expert_implementation|is_flaky|profile"
    r"|ignore|unused|fp16|auto_fp|force_fp|typechecked|validate|copyfunc|compatibleclass|native"
    r"|support|annotat|torch_fn|wrap_|disable|lazy_property|add_start|replace_return|forbid",
    re.IGNORECASE,
)
_TALKERS = {"logger", "log", "_logger", "logging", "warnings", "LOG", "LOGGER", "_LOG", "rank_zero"}
_SILENT = {"print", "warn", "warn_once", "rank_zero_warn", "deprecate", "deprecation_warning",
           "logger_warn", "pprint", "log_once"}  # fmt: skip
_KEPT_CLASSES = {"dataclass", "NamedTuple", "Enum", "IntEnum", "StrEnum", "TypedDict"}


class Unsafe(Exception):
    """Something stands there that can neither be kept nor left out."""


def dotted(node: ast.AST) -> str:
    """``a.b.c`` as text; empty for anything else. Calls are taken by what they call."""
    if isinstance(node, ast.Call):
        return dotted(node.func)
    if isinstance(node, ast.Attribute):
        front = dotted(node.value)
        return f"{front}.{node.attr}" if front else ""
    return node.id if isinstance(node, ast.Name) else ""


def keeps_fields(node: ast.ClassDef) -> bool:
    """Whether annotations in a class are its fields, and so its meaning."""
    words = [dotted(each) for each in (*node.decorator_list, *node.bases)]
    return any(word.rpartition(".")[2] in _KEPT_CLASSES for word in words)


def is_talk(node: ast.stmt) -> bool:
    """Whether a statement only tells somebody something."""
    if not isinstance(node, ast.Expr):
        return False
    if isinstance(node.value, ast.Constant):
        return True
    if not isinstance(node.value, ast.Call):
        return False
    name = dotted(node.value.func)
    head, _, tail = name.rpartition(".")
    first = head.partition(".")[0]
    if first in _TALKERS or head in ("self.logger", "self.log", "self._logger"):
        return True
    return (
        name in _SILENT or name == "torch._C._log_api_usage_once" or tail == "_log_api_usage_once"
    )


class Cleaner(ast.NodeTransformer):
    """Rewrites one definition in place; ``dropped`` says which decorators went."""

    def __init__(self) -> None:
        self.dropped: list[str] = []
        self._fields = False

    def _body(self, body: list[ast.stmt]) -> list[ast.stmt]:
        kept: list[ast.stmt] = []
        for statement in body:
            if is_talk(statement):
                continue
            found = self.visit(statement)
            if isinstance(found, list):
                kept.extend(found)
            elif found is not None:
                kept.append(found)
        return kept or [ast.Pass()]

    def _decorators(self, each: list[ast.expr], *, of_class: bool) -> list[ast.expr]:
        kept = []
        for decorator in each:
            name = dotted(decorator)
            last = name.rpartition(".")[2]
            if name in _KEPT_DECORATORS or last in ("setter", "getter", "wraps"):
                kept.append(decorator)
            elif of_class or _DROPPED.search(name) or not name:
                self.dropped.append(name or ast.unparse(decorator)[:60])
            else:
                kept.append(decorator)
        return kept

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Strip a function."""
        fields, self._fields = self._fields, False
        node.decorator_list = self._decorators(node.decorator_list, of_class=False)
        node.returns = None
        for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            each.annotation = None
        for one in (node.args.vararg, node.args.kwarg):
            if one is not None:
                one.annotation = None
        node.args.defaults = [self.visit(each) for each in node.args.defaults]
        node.args.kw_defaults = [each and self.visit(each) for each in node.args.kw_defaults]
        node.body = self._body(node.body)
        node.type_comment = None
        self._fields = fields
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Nothing that computes tensors is asynchronous."""
        raise Unsafe("an asynchronous function")

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Strip a class; the fields of a dataclass stay, with ``object`` for their types."""
        fields, self._fields = self._fields, keeps_fields(node)
        node.decorator_list = self._decorators(node.decorator_list, of_class=True)
        node.body = self._body(node.body)
        self._fields = fields
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        """Make an annotated assignment a plain one."""
        if node.value is not None:
            node.value = self.visit(node.value)
        if self._fields:
            node.annotation = ast.Name("object", ast.Load())
            return node
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """Take the branch that is known, else strip both."""
        if dotted(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            return self._body(node.orelse) if node.orelse else []
        node.test = self.visit(node.test)
        node.body = self._body(node.body)
        node.orelse = self._body(node.orelse) if node.orelse else []
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        """Strip a loop."""
        return self._blocks(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        """Strip a loop."""
        return self._blocks(node)

    def visit_With(self, node: ast.With) -> ast.AST:
        """Strip a block."""
        return self._blocks(node)

    def visit_Try(self, node: ast.Try) -> ast.AST:
        """Strip a block."""
        return self._blocks(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        """Strip a block."""
        return self._blocks(node)

    def _blocks(self, node: ast.AST) -> ast.AST:
        for name, value in ast.iter_fields(node):
            if name in ("body", "orelse", "finalbody"):
                setattr(node, name, self._body(value) if value else [])
            elif isinstance(value, list):
                setattr(node, name, [self.visit(each) for each in value])
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node


def cleaned(node: ast.stmt) -> tuple[ast.stmt | None, list[str]]:
    """Strip a definition in place; with it, the decorators that were left out."""
    cleaner = Cleaner()
    found = cleaner.visit(node)
    assert found is None or isinstance(found, ast.stmt)
    return found, cleaner.dropped
