"""A task in a smaller size: the same code, with smaller numbers where sizes are given."""

import ast
from dataclasses import dataclass, replace

from kernelsmith.domain.task import Scalar, Task, Workload

_HELPERS = ("get_inputs", "get_init_inputs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Numbers of at least ``above`` are divided by ``by``, but not below ``floor``."""

    by: int
    floor: int
    above: int = 16
    batch_only: bool = False
    """Only what is called a batch."""
    inside: bool = False
    """Numbers inside classes as well."""

    def number(self, value: int) -> int:
        """A smaller number in place of this one."""
        return value if value < self.above else max(self.floor, value // self.by)


RECIPES = (
    Recipe(by=1, floor=1),
    Recipe(by=10**9, floor=2, above=3, batch_only=True),
    Recipe(by=4, floor=8),
    Recipe(by=8, floor=8),
    Recipe(by=16, floor=8),
    Recipe(by=32, floor=8),
    Recipe(by=64, floor=8),
    Recipe(by=256, floor=8),
    Recipe(by=2048, floor=4),
    Recipe(by=8, floor=8, inside=True),
    Recipe(by=32, floor=8, inside=True),
    Recipe(by=256, floor=8, inside=True),
)
"""From the true size down."""


def shrunk(task: Task, workload: Workload, recipe: Recipe) -> tuple[Task, Workload]:
    """The task and workload with smaller numbers in the file and in the workload's arguments."""
    if recipe.by == 1:
        return task, workload
    tree = _Shrinker(recipe).visit(ast.parse(task.source))
    small = replace(
        workload, arguments=_arguments(workload.arguments, recipe),
        init=_arguments(workload.init, recipe),
    )  # fmt: skip
    return replace(task, source=ast.unparse(tree) + "\n", workloads=(small,)), small


Arguments = tuple[tuple[str, Scalar | tuple[Scalar, ...]], ...]


def _arguments(given: Arguments, recipe: Recipe) -> Arguments:
    def smaller(name: str, value: Scalar | tuple[Scalar, ...]) -> Scalar | tuple[Scalar, ...]:
        if isinstance(value, tuple):
            return tuple(each for item in value for each in [smaller(name, item)]
                         if not isinstance(each, tuple))  # fmt: skip
        if isinstance(value, bool) or not isinstance(value, int):
            return value
        return recipe.number(value) if _counts(name, recipe) else value

    return tuple((name, smaller(name, value)) for name, value in given)


def _counts(name: str, recipe: Recipe) -> bool:
    return not recipe.batch_only or "batch" in name or name in ("rows", "n", "N", "B")


class _Shrinker(ast.NodeTransformer):
    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe

    def visit_Module(self, node: ast.Module) -> ast.AST:
        for each in node.body:
            match each:
                case ast.Assign(targets=[ast.Name(id=name)]) if _counts(name, self._recipe):
                    self._change(each)
                case ast.Assign() if not self._recipe.batch_only:
                    self._change(each)
                case ast.FunctionDef(name=name) if name in _HELPERS:
                    self._helper(each)
                case ast.ClassDef() | ast.FunctionDef() if self._recipe.inside:
                    self._change(each)
        return node

    def _helper(self, node: ast.FunctionDef) -> None:
        """Defaults by their names; what stands in the body where all sizes are meant."""
        names = [each.arg for each in node.args.args][::-1]
        for name, usual in zip(names, node.args.defaults[::-1], strict=False):
            if _counts(name, self._recipe):
                self._change(usual)
        if not self._recipe.batch_only:
            for each in node.body:
                self._change(each)

    def _change(self, node: ast.AST) -> None:
        for each in ast.walk(node):
            if isinstance(each, ast.Constant) and type(each.value) is int:
                each.value = self._recipe.number(each.value)
