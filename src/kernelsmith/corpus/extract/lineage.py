"""Whose child a class is: its bases across files, and where its methods come from."""

import ast

from kernelsmith.corpus.extract.clean import Unsafe, dotted
from kernelsmith.corpus.extract.forest import Alias, Forest, Inside, Missing, Outside, Seam, Target
from kernelsmith.corpus.extract.pieces import statements_of

_NO_MODULES = {"Parameter", "ParameterList", "Buffer", "UninitializedParameter"}
_MODULE_SEAMS = {
    "PreTrainedModel", "ModelMixin", "BaseModule", "LightningModule", "Sequential", "ModuleList",
    "GradientCheckpointingLayer", "Rearrange", "Reduce",
}  # fmt: skip
_DEEPEST = 12


def target_of(forest: Forest, module: str, expression: ast.AST) -> Target:
    """What a dotted name in a module stands for, as far as it can be followed."""
    parts = dotted(expression).split(".")
    if not parts[0]:
        return Missing(ast.unparse(expression)[:80])
    target = forest.resolve(module, parts[0])
    for part in parts[1:]:
        if isinstance(target, Alias):
            target = forest.attribute(target.module, part)
        elif isinstance(target, Outside):
            inner = f"{target.module}.{target.attribute}" if target.attribute else target.module
            target = Outside(inner, part)
        else:
            return Missing(".".join(parts))
    return target


def class_node(forest: Forest, target: Inside) -> ast.ClassDef | None:
    """The statement that defines a class; it may have been cleaned already."""
    parsed = forest.parse(target.module)
    if parsed is None:
        return None
    nodes = statements_of(parsed, target.name)
    return nodes[0] if nodes and isinstance(nodes[0], ast.ClassDef) else None


def bases(forest: Forest, target: Inside) -> list[Target]:
    """The direct bases of a class."""
    node = class_node(forest, target)
    if node is None:
        return []
    return [target_of(forest, target.module, each) for each in node.bases]


class Lineage:
    """Answers questions about classes, each once."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._modules: dict[Inside, bool] = {}

    def is_module(self, target: Target, depth: int = 0) -> bool:
        """Whether a class descends from ``torch.nn.Module``."""
        if isinstance(target, Seam):
            return target.name in _MODULE_SEAMS
        if isinstance(target, Outside):
            whole = f"{target.module}.{target.attribute}"
            name = target.attribute
            return whole.startswith("torch.nn") and name[:1].isupper() and name not in _NO_MODULES
        if not isinstance(target, Inside) or depth > _DEEPEST:
            return False
        if target not in self._modules:
            self._modules[target] = False
            self._modules[target] = any(
                self.is_module(each, depth + 1) for each in bases(self._forest, target)
            )
        return self._modules[target]

    def ancestors(self, target: Inside, depth: int = 0) -> list[Inside]:
        """The class and its harvested ancestors, nearest first."""
        found = [target]
        if depth < _DEEPEST:
            for each in bases(self._forest, target):
                if isinstance(each, Inside):
                    found += [a for a in self.ancestors(each, depth + 1) if a not in found]
        return found

    def method(self, target: Inside, name: str) -> tuple[Inside, ast.FunctionDef] | None:
        """Where a class has a method from; none where torch's own would be used."""
        for each in self.ancestors(target):
            node = class_node(self._forest, each)
            if node is None:
                continue
            for statement in node.body:
                if isinstance(statement, ast.FunctionDef) and statement.name == name:
                    return each, statement
        return None


def is_abstract(method: ast.FunctionDef) -> bool:
    """Whether a method only says that somebody else must write it."""
    body = [s for s in method.body if not (isinstance(s, ast.Expr)
            and isinstance(s.value, ast.Constant))]  # fmt: skip
    if not body or all(isinstance(s, ast.Pass) for s in body):
        return True
    first = body[0]
    return isinstance(first, ast.Raise) and "NotImplemented" in ast.unparse(first)


__all__ = ["Lineage", "Unsafe", "bases", "class_node", "is_abstract", "target_of"]
