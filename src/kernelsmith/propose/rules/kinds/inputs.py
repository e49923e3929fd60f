"""The form of what ``get_inputs`` makes and of what a constructor keeps, as written there."""

import ast
from collections.abc import Mapping

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.source import Module, Plain

_INTEGERS = {"randint": 2, "arange": 0, "randperm": 0}
"""Makers of integer inputs, and the position of the size where there is one."""
_FLOATS = {"rand", "randn", "ones", "zeros", "empty", "full", "normal"}


class Inputs:
    """The form of what ``get_inputs`` makes, as written there."""

    def __init__(self, module: Module) -> None:
        self._module = module
        functions = [n for n in module.tree.body if isinstance(n, ast.FunctionDef)]
        self._maker = next((n for n in functions if n.name == "get_inputs"), None)

    def all(self) -> list[tuple[tuple[str, ...] | None, bool]]:
        """Dimensions of every input, and whether it holds integers or truth values."""
        if self._maker is None or not isinstance(self._maker.body[-1], ast.Return):
            raise NotRecognised("rules cannot tell which inputs get_inputs() makes")
        values = self._maker.body[-1].value
        local = {
            each.targets[0].id: each.value
            for each in self._maker.body
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
        }
        return [self.one(each, local) for each in self._listed(values, local)]

    def _listed(self, node: ast.expr | None, local: Mapping[str, ast.expr]) -> list[ast.expr]:
        """The elements of a list: written out, put together, or one repeated."""
        match node:
            case ast.Name(id=name) if name in local:
                return self._listed(local[name], {k: v for k, v in local.items() if k != name})
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return elements
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return [*self._listed(left, local), *self._listed(right, local)]
            case ast.ListComp(
                elt=element,
                generators=[
                    ast.comprehension(
                        target=ast.Name(id=turn),
                        iter=ast.Call(
                            func=ast.Name(id="range"), args=[ast.Constant(value=int() as times)]
                        ),
                        ifs=[],
                    )
                ],
            ) if turn not in {n.id for n in ast.walk(element) if isinstance(n, ast.Name)}:
                return [element] * times
        raise NotRecognised("rules cannot tell which inputs get_inputs() makes")

    def one(
        self, node: ast.expr, local: Mapping[str, ast.expr], depth: int = 0
    ) -> tuple[tuple[str, ...] | None, bool]:
        """The same of one tensor; ``local`` are the names that its maker has."""
        if depth > 8:
            return None, False
        match node:
            case ast.Name(id=name) if name in local:
                return self.one(local[name], local, depth + 1)
            case ast.BinOp(left=left, right=right):
                sides = [self.one(each, local, depth + 1) for each in (left, right)]
                return max(sides, key=lambda side: len(side[0] or ()))
            case ast.Call(func=func, args=args, keywords=keywords):
                name = (self._module.dotted(func) or "").rpartition(".")[2]
                if name in _INTEGERS:
                    size = [k.value for k in keywords if k.arg == "size"] or args[2:3]
                    if name == "randint" and len(args) == 2 and not size:
                        size = args[1:2]
                    if name != "randint" and len(args) == 1:
                        size = args
                    return (self._dimensions(size, local, depth) if size else None), True
                if name in _FLOATS:
                    sized = args[:1] if name == "full" else args
                    return self._dimensions(sized, local, depth), False
                if name == "tensor" and len(args) == 1 and isinstance(args[0], ast.List):
                    if any(isinstance(e, ast.List | ast.Tuple) for e in args[0].elts):
                        return None, False
                    integer = all(_is_whole(e) for e in args[0].elts)
                    return (str(len(args[0].elts)),), integer
                if isinstance(func, ast.Attribute) and self._module.dotted(func) is None:
                    if func.attr in ("view", "reshape"):
                        integer = self.one(func.value, local, depth + 1)[1]
                        return self._dimensions(args, local, depth), integer
                    dims, integer = self.one(func.value, local, depth + 1)
                    return dims, (integer or func.attr == "bool") and func.attr != "float"
                if args:
                    return self.one(args[0], local, depth + 1)
        return None, False

    def _plain(self, node: ast.expr) -> Plain:
        try:
            return self._module.plain(node)
        except NotRecognised:
            return None

    def _dimensions(
        self, args: list[ast.expr], local: Mapping[str, ast.expr], depth: int
    ) -> tuple[str, ...] | None:
        if len(args) == 1:
            match args[0]:
                case ast.Tuple(elts=elements) | ast.List(elts=elements):
                    args = elements
                case ast.Attribute(value=value, attr="shape"):
                    return self.one(value, local, depth + 1)[0]
        flat: list[str] = []
        for each in args:
            inner = each.value if isinstance(each, ast.Starred) else each
            held = self._module.constants.get(inner.id) if isinstance(inner, ast.Name) else None
            if isinstance(held, ast.Tuple | ast.List):
                flat += [ast.unparse(e) for e in held.elts]
            elif len(args) == 1 and isinstance(sizes := self._plain(inner), tuple):
                flat += [str(e) for e in sizes]
            elif isinstance(each, ast.Starred):
                return None
            else:
                flat.append(ast.unparse(each))
        return tuple(flat)


def _is_whole(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_whole(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) is int
