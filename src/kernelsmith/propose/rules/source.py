"""A task's file, read and never run: constants, constructor, input shapes."""

import ast
import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass

from kernelsmith.domain.task import Task, Workload
from kernelsmith.propose.rules.construction import constructor_of
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.lineage import (
    class_of,
    imported,
    inherited_method,
    lineage,
    own_method,
)

Plain = float | int | bool | str | None | tuple["Plain", ...]
"""A value that stands in the source."""

_MATH = {name: getattr(math, name) for name in ("sqrt", "exp", "log", "pow", "pi", "e", "inf")}
_MAKERS = {"rand", "randn", "ones", "zeros", "empty", "full", "randn_like", "tensor", "normal"}
_INTEGERS = {"randint", "arange", "randperm"}


class Unknown(NotRecognised):
    """An expression whose value cannot be told without running it."""

    def __init__(self, text: str) -> None:
        super().__init__(f"rules cannot tell the value of `{text[:60]}`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """The parts of a task's file that the rules look at."""

    tree: ast.Module
    forward: ast.FunctionDef
    """The reference's own, or that of a base in the same file."""
    constructor: ast.FunctionDef | None
    """With what bases in the same file do when it calls them; to be read, not to be copied."""
    constants: Mapping[str, ast.expr]
    aliases: Mapping[str, str]
    """Names of imported things, in full: ``F`` is ``torch.nn.functional``."""
    task: Task

    def dotted(self, node: ast.expr) -> str | None:
        """The full name of an imported thing: ``torch.nn.functional.gelu``."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id)
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return f"{base}.{node.attr}" if base else None
        return None

    def plain(self, node: ast.expr) -> Plain:
        """The value of an expression over constants and constructor arguments.

        Raises:
            Unknown: It depends on something else.
            NotRecognised: It differs between the workloads, and a kernel's form cannot.
        """
        found = [self._evaluate(node, dict(w.init)) for w in self.task.workloads]
        if any(each != found[0] for each in found):
            raise NotRecognised(
                f"rules do not know how to write one kernel for several values of "
                f"`{ast.unparse(node)}`"
            )
        return found[0]

    def _evaluate(self, node: ast.expr, init: Mapping[str, object]) -> Plain:
        match node:
            case ast.Constant(value=int() | float() | str() | None as value):
                return value
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return tuple(self._evaluate(each, init) for each in elements)
            case ast.Name(id=name):
                return self._named(name, init)
            case ast.Attribute() if (name := self.dotted(node) or "").startswith("math."):
                return _number(_MATH.get(name[5:]))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -_number(self._evaluate(operand, init))
            case ast.BinOp(left=left, op=op, right=right):
                return _computed(op, self._evaluate(left, init), self._evaluate(right, init))
            case ast.Call(func=func, args=args) if (self.dotted(func) or "").startswith("math."):
                function = _MATH.get((self.dotted(func) or "")[5:])
                if callable(function):
                    return _number(function(*[_number(self._evaluate(a, init)) for a in args]))
        raise Unknown(ast.unparse(node))

    def _named(self, name: str, init: Mapping[str, object]) -> Plain:
        if name in self._arguments():
            return self._argument(name, init)
        if name in self.constants:
            return self._evaluate(self.constants[name], init)
        raise Unknown(name)

    def _arguments(self) -> list[str]:
        if self.constructor is None:
            return []
        args = self.constructor.args
        return [each.arg for each in (*args.args[1:], *args.kwonlyargs)]

    def _argument(self, name: str, init: Mapping[str, object]) -> Plain:
        """What the task passes to its constructor under this name."""
        assert self.constructor is not None
        args, names = self.constructor.args, self._arguments()
        given = _returned(self.tree, "get_init_inputs")
        values = given.elts if isinstance(given, ast.List | ast.Tuple) else []
        position = names.index(name)
        if position < len(values):
            return self._from_helper(values[position], "get_init_inputs", init)
        defaults = dict(zip([a.arg for a in args.args][::-1], args.defaults[::-1], strict=False))
        defaults |= {
            a.arg: d
            for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)
            if d is not None
        }
        if name in defaults:
            return self._evaluate(defaults[name], {})
        raise Unknown(name)

    def _from_helper(self, node: ast.expr, helper: str, given: Mapping[str, object]) -> Plain:
        if isinstance(node, ast.Name):
            if node.id in given:
                value = given[node.id]
                assert value is None or isinstance(value, int | float | str | tuple)
                return value
            defaults = _defaults(_function(self.tree, helper))
            if node.id in defaults:
                return self._evaluate(defaults[node.id], {})
            if node.id in self.constants:
                return self._evaluate(self.constants[node.id], {})
            raise Unknown(node.id)
        return self._evaluate(node, given)

    def input_shapes(self) -> list[tuple[str, ...] | None]:
        """The dimensions of every input as written in ``get_inputs``; ``None``: not told.

        Raises:
            NotRecognised: An input holds integers, or is no tensor.
        """
        found = self.inputs()
        for each in found:
            if isinstance(each, int | float):
                raise NotRecognised(f"rules do not know inputs that are no tensors ({each!r})")
        return [each for each in found if not isinstance(each, int | float)]

    def inputs(self) -> list[tuple[str, ...] | float | None]:
        """The same with inputs that are plain numbers, by their value.

        Raises:
            NotRecognised: An input holds integers, or is neither a tensor nor a number.
        """
        return [self._input(each) for each in self.makers()]

    def makers(self) -> list[ast.expr]:
        """What ``get_inputs`` returns, one expression each, its local names written out."""
        function = _function(self.tree, "get_inputs")
        values = _returned(self.tree, "get_inputs")
        if function is None or not isinstance(values, ast.List | ast.Tuple):
            return []
        local: dict[str, ast.expr] = {}
        for each in function.body:
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                local[each.targets[0].id] = _written_out(each.value, local)
        return [_written_out(each, local) for each in values.elts]

    def sizes(self, written: tuple[str, ...], workload: Workload) -> tuple[int, ...]:
        """The dimensions of an input, as numbers.

        Raises:
            Unknown: One of them cannot be told.
        """
        found = [self._input_size(each, dict(workload.arguments)) for each in written]
        for text, each in zip(written, found, strict=True):
            if not isinstance(each, int) or isinstance(each, bool):
                raise Unknown(text)
        return tuple(each for each in found if isinstance(each, int))

    def _input(self, node: ast.expr) -> tuple[str, ...] | float | None:
        try:
            said = self._evaluate(node, {})
        except Unknown:
            return self._input_shape(node)
        if isinstance(said, bool) or not isinstance(said, int | float):
            raise NotRecognised(f"rules do not know inputs that are no tensors ({said!r})")
        return said

    def _input_shape(self, node: ast.expr) -> tuple[str, ...] | None:
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.MatMult):
                return None
            return _joined(
                *(
                    self._input_shape(each) if _is_tensor(each) else ()
                    for each in (node.left, node.right)
                )
            )
        if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            inner = self._input_shape(node.value)
            return None if inner is None or len(inner) != 2 else inner[::-1]
        if not isinstance(node, ast.Call):
            return None
        name = self.dotted(node.func) or ""
        last = name.rpartition(".")[2]
        if last in _INTEGERS:
            raise NotRecognised(f"rules do not know integer inputs (`{ast.unparse(node)}`)")
        if last in _MAKERS and name.startswith("torch."):
            return self._dimensions(node.args)
        if name.startswith("torch.") and node.args:
            return self._input_shape(node.args[0])
        if isinstance(node.func, ast.Attribute):
            return self._input_shape(node.func.value)
        return None

    def same_sizes(self, a: tuple[str, ...], b: tuple[str, ...]) -> bool:
        """Whether two inputs, by their dimensions as written, are of one size in all workloads."""
        return a == b or (
            len(a) == len(b)
            and all(
                self._input_size(x, dict(each.arguments))
                == self._input_size(y, dict(each.arguments))
                for x, y in zip(a, b, strict=True)
                if x != y
                for each in self.task.workloads
            )
        )

    def _input_size(self, written: str, given: Mapping[str, object]) -> Plain:
        """One dimension of ``get_inputs`` as a number; as written where that cannot be told."""
        try:
            return self._from_helper(ast.parse(written, mode="eval").body, "get_inputs", given)
        except Unknown:
            return written

    def _dimensions(self, args: list[ast.expr]) -> tuple[str, ...] | None:
        if len(args) == 1 and isinstance(args[0], ast.Tuple | ast.List):
            args = args[0].elts
        flat: list[str] = []
        for each in args:
            inner = each.value if isinstance(each, ast.Starred) else each
            if isinstance(inner, ast.Name) and inner.id in self.constants:
                value = self.constants[inner.id]
                if isinstance(value, ast.Tuple | ast.List):
                    flat += [ast.unparse(e) for e in value.elts]
                    continue
            if isinstance(each, ast.Starred):
                return None
            flat.append(ast.unparse(each))
        return tuple(flat)


def read_module(task: Task) -> Module:
    """Find the reference in a task's source.

    Raises:
        NotRecognised: There is nothing of the usual form.
    """
    try:
        tree = ast.parse(task.source)
    except SyntaxError as error:
        raise NotRecognised(f"rules cannot parse the task: {error.msg}") from error
    constructor = None
    if task.is_function:
        forward = _function(tree, task.entry)
    else:
        forward = _forward(tree, task.entry)
        constructor = constructor_of(tree, task.entry)
    if forward is None:
        raise NotRecognised(f"rules find no forward of {task.entry!r} in the task")
    return Module(
        tree=tree, forward=forward, constructor=constructor, constants=_constants(tree),
        aliases=imported(tree), task=task,
    )  # fmt: skip


def _forward(tree: ast.Module, entry: str) -> ast.FunctionDef | None:
    """The forward of a class: its own, or that of the first base that has one."""
    owner = class_of(tree, entry)
    own = own_method(owner, "forward") if owner is not None else None
    if owner is None or own is not None:
        return own
    order = lineage(tree, entry)
    found = inherited_method(order, "forward")
    if isinstance(found, str):
        raise NotRecognised(f"rules find the forward of {entry!r} in {found}, not in the task")
    for each in order:
        if not isinstance(each, str) and (each.keywords or each.decorator_list):
            raise NotRecognised(f"rules do not know what becomes of the class {each.name!r}")
    return found


def attributes(constructor: ast.FunctionDef | None) -> dict[str, ast.expr]:
    """What ``self.name`` is set to; a name set twice is not known."""
    found: dict[str, ast.expr] = {}
    twice = set()
    for node in ast.walk(constructor) if constructor else ():
        name, value = None, None
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                name, value = target.attr, node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "self.register_buffer":
            match node.args:
                case [ast.Constant(value=str() as name), made, *_]:
                    value = ast.Call(func=node.func, args=[made], keywords=[])
        if name is not None and value is not None:
            if name in found:
                twice.add(name)
            found[name] = value
    return {name: value for name, value in found.items() if name not in twice}


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
    return found


def _written_out(node: ast.expr, local: Mapping[str, ast.expr]) -> ast.expr:
    """An expression with what these names stand for in their place."""

    class Names(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return local.get(node.id, node)

    found = Names().visit(copy.deepcopy(node))
    assert isinstance(found, ast.expr)
    return found


def _is_tensor(node: ast.expr) -> bool:
    """Whether an operand may bring dimensions along; a number does not."""
    return any(isinstance(each, ast.Call) for each in ast.walk(node))


def _function(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    return found[-1] if found else None


def _returned(tree: ast.Module, name: str) -> ast.expr | None:
    function = _function(tree, name)
    if function is None or not isinstance(function.body[-1], ast.Return):
        return None
    return function.body[-1].value


def _defaults(function: ast.FunctionDef | None) -> dict[str, ast.expr]:
    if function is None:
        return {}
    args = function.args
    return dict(zip([a.arg for a in args.args][::-1], args.defaults[::-1], strict=False))


def _joined(a: tuple[str, ...] | None, b: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The dimensions of an elementwise result; none where they cannot be told."""
    if a is None or b is None:
        return None
    longest = max(len(a), len(b))
    pairs = zip(("1",) * (longest - len(a)) + a, ("1",) * (longest - len(b)) + b, strict=True)
    found = [y if x == "1" else x for x, y in pairs if x == y or "1" in (x, y)]
    return tuple(found) if len(found) == longest else None


def _number(value: object) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unknown(repr(value))
    return value


def _computed(op: ast.operator, a: Plain, b: Plain) -> Plain:
    if isinstance(op, ast.Mult) and isinstance(a, tuple) and isinstance(b, int):
        return a * b
    x, y = _number(a), _number(b)
    try:
        match op:
            case ast.Add():
                return x + y
            case ast.Sub():
                return x - y
            case ast.Mult():
                return x * y
            case ast.Div():
                return x / y
            case ast.FloorDiv():
                return x // y
            case ast.Pow() if abs(y) < 1000:
                return _number(x**y)
    except ArithmeticError as error:
        raise Unknown(str(error)) from error
    raise Unknown(type(op).__name__)
