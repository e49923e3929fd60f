"""How authors call their own classes: constructor arguments and inputs from tests and examples."""

import ast
from dataclasses import dataclass

from kernelsmith.corpus.extract.clean import dotted

_TENSORS = {"rand", "randn", "ones", "zeros", "randint", "empty", "full", "arange", "eye",
            "linspace", "randperm"}  # fmt: skip
_MOST = 4


@dataclass(frozen=True, slots=True)
class Example:
    """One construction, with the call on it where there was one; all of it as expressions."""

    init: tuple[str, ...]
    init_named: tuple[tuple[str, str], ...]
    inputs: tuple[str, ...] = ()
    inputs_named: tuple[tuple[str, str], ...] = ()
    called: bool = False
    where: str = ""


class _Unknown(Exception):
    pass


class Reader:
    """Follows straight code and notes what it constructs and calls."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.found: dict[str, list[Example]] = {}
        self._values: dict[str, ast.expr] = {}
        self._made: dict[str, tuple[str, int]] = {}

    def read(self, body: list[ast.stmt]) -> None:
        """Go through statements in order; functions are read with what came before them."""
        for statement in body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                if statement.name != "__init__" and statement.name != "forward":
                    values, made = dict(self._values), dict(self._made)
                    self._defaults(statement)
                    self.read(statement.body)
                    self._values, self._made = values, made
                continue
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self._assign(statement.targets[0], statement.value)
            elif isinstance(statement, ast.Expr | ast.Return) and statement.value is not None:
                self._expression(statement.value)
            elif isinstance(statement, ast.Assert):
                for node in ast.walk(statement.test):
                    if isinstance(node, ast.Call):
                        self._expression(node)
            for block in ("body", "orelse", "finalbody"):
                inner = getattr(statement, block, None)
                if isinstance(inner, list):
                    self.read(inner)

    def _defaults(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments, given = function.args.args, function.args.defaults
        for argument in arguments:
            self._values.pop(argument.arg, None)
        for argument, value in zip(arguments[len(arguments) - len(given) :], given, strict=True):
            if isinstance(value, ast.Constant):
                self._values[argument.arg] = value

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            if len(target.elts) == len(value.elts):
                for one, other in zip(target.elts, value.elts, strict=True):
                    self._assign(one, other)
            return
        made = self._expression(value)
        name = dotted(target)
        if not name:
            return
        self._values.pop(name, None)
        self._made.pop(name, None)
        if made is not None:
            self._made[name] = made
            return
        try:
            self._values[name] = self._known(value)
        except _Unknown:
            return

    def _expression(self, value: ast.expr) -> tuple[str, int] | None:
        """Note constructions and calls; returns which construction the value is."""
        if not isinstance(value, ast.Call):
            return None
        function = value.func
        if isinstance(function, ast.Attribute) and function.attr in (
            "to", "eval", "cuda", "train", "cpu", "double", "float", "requires_grad_"
        ):  # fmt: skip
            return self._expression(function.value) or self._made.get(dotted(function.value))
        inner = self._expression(function) if isinstance(function, ast.Call) else None
        made = inner or self._made.get(dotted(function))
        if made is not None:
            self._called(made, value)
            return None
        name = dotted(function).rpartition(".")[2]
        if name[:1].isupper():
            try:
                arguments, named = self._arguments(value)
            except _Unknown:
                return None
            listed = self.found.setdefault(name, [])
            if len(listed) < _MOST:
                listed.append(Example(arguments, named, where=self.where))
                return name, len(listed) - 1
        return None

    def _called(self, made: tuple[str, int], call: ast.Call) -> None:
        name, index = made
        old = self.found[name][index]
        if old.called:
            return
        try:
            arguments, named = self._arguments(call)
        except _Unknown:
            return
        self.found[name][index] = Example(
            old.init, old.init_named, arguments, named, called=True, where=old.where
        )

    def _arguments(self, call: ast.Call) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        plain = tuple(ast.unparse(self._known(each)) for each in call.args)
        if any(each.arg is None for each in call.keywords):
            raise _Unknown
        named = tuple((str(k.arg), ast.unparse(self._known(k.value))) for k in call.keywords)
        return plain, named

    def _known(self, node: ast.expr) -> ast.expr:
        """The expression with its names replaced, if it then needs torch and numbers only."""
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.Name):
            if node.id in self._values:
                return self._values[node.id]
            raise _Unknown
        if isinstance(node, ast.Tuple | ast.List):
            return type(node)([self._known(each) for each in node.elts], ast.Load())
        if isinstance(node, ast.UnaryOp):
            return ast.UnaryOp(node.op, self._known(node.operand))
        if isinstance(node, ast.BinOp):
            return ast.BinOp(self._known(node.left), node.op, self._known(node.right))
        if isinstance(node, ast.Call):
            return self._tensor(node)
        if isinstance(node, ast.Attribute) and dotted(node).startswith(("torch.", "nn.")):
            return node
        raise _Unknown

    def _tensor(self, node: ast.Call) -> ast.expr:
        name = dotted(node.func)
        front, _, last = name.rpartition(".")
        if front == "torch" and last in _TENSORS:
            kept = [k for k in node.keywords if k.arg in ("dtype", "size", "low", "high")]
            named = [ast.keyword(k.arg, self._known(k.value)) for k in kept]
            return ast.Call(node.func, [self._known(each) for each in node.args], named)
        if isinstance(node.func, ast.Attribute) and last in ("to", "cuda", "float", "cpu", "clone"):
            return self._known(node.func.value)
        if front in ("nn", "torch.nn") and last[:1].isupper():
            named = [ast.keyword(k.arg, self._known(k.value)) for k in node.keywords]
            return ast.Call(node.func, [self._known(each) for each in node.args], named)
        if isinstance(node.func, ast.Attribute) and last in ("long", "bool", "abs", "unsqueeze"):
            inner = self._known(node.func.value)
            arguments = [self._known(each) for each in node.args]
            return ast.Call(ast.Attribute(inner, last, ast.Load()), arguments, [])
        raise _Unknown


def read_examples(text: str, where: str) -> dict[str, list[Example]]:
    """All constructions in a text of Python; none where it is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    reader = Reader(where)
    reader.read(tree.body)
    return reader.found
