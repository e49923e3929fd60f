"""A task's file, read and never run: constants, constructor, input shapes."""

import ast
import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernelsmith.domain.task import Task, Workload
from kernelsmith.propose.rules.attributes import attributes
from kernelsmith.propose.rules.constants import bound, constants_of
from kernelsmith.propose.rules.construction import constructor_of
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.lineage import (
    class_of,
    imported,
    inherited_method,
    lineage,
    own_method,
)
from kernelsmith.propose.rules.making import FLOATS, INTEGERS, Made, Making

Plain = float | int | bool | str | None | tuple["Plain", ...]
"""A value that stands in the source."""
Named = Callable[[str], Plain]
"""What a name stands for; raises ``Unknown``."""

_MATH = {name: getattr(math, name) for name in ("sqrt", "exp", "log", "pow", "pi", "e", "inf")}
_UNTOLD = ast.Constant(value=...)
"""Stands for a local name whose value cannot be told."""


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
        found = [self._evaluate(node, self._member(w)) for w in self.task.workloads]
        if any(each != found[0] for each in found):
            raise NotRecognised(
                f"rules do not know how to write one kernel for several values of "
                f"`{ast.unparse(node)}`"
            )
        return found[0]

    def _evaluate(self, node: ast.expr, named: Named) -> Plain:
        match node:
            case ast.Constant(value=int() | float() | str() | None as value):
                return value
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return tuple(self._evaluate(each, named) for each in elements)
            case ast.Name(id=name):
                return named(name)
            case ast.Attribute() if (name := self.dotted(node) or "").startswith("math."):
                return _number(_MATH.get(name[5:]))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -_number(self._evaluate(operand, named))
            case ast.BinOp(left=left, op=op, right=right):
                return _computed(op, self._evaluate(left, named), self._evaluate(right, named))
            case ast.Call(func=func, args=args) if (self.dotted(func) or "").startswith("math."):
                function = _MATH.get((self.dotted(func) or "")[5:])
                if callable(function):
                    return _number(function(*[_number(self._evaluate(a, named)) for a in args]))
        raise Unknown(ast.unparse(node))

    def _constant(self, name: str) -> Plain:
        """A name of the file's."""
        if name in self.constants:
            return self._evaluate(self.constants[name], self._constant)
        raise Unknown(name)

    def _member(self, workload: Workload) -> Named:
        """What names stand for in the constructor."""
        changed = bound(self.constructor) if self.constructor is not None else set[str]()

        def named(name: str) -> Plain:
            if name in changed:
                raise Unknown(name)
            known = name in self._arguments()
            return self._argument(name, workload) if known else self._constant(name)

        return named

    def _arguments(self) -> list[str]:
        if self.constructor is None:
            return []
        args = self.constructor.args
        return [each.arg for each in (*args.args[1:], *args.kwonlyargs)]

    def _argument(self, name: str, workload: Workload) -> Plain:
        """What the task passes to its constructor under this name."""
        assert self.constructor is not None
        values = self._listed("get_init_inputs")
        if values is None or any(isinstance(each, ast.Starred) for each in values):
            raise Unknown(name)
        position = self._arguments().index(name)
        if position < len(values):
            return self._evaluate(values[position], self._given("get_init_inputs", workload))
        defaults = _defaults(self.constructor)
        if name in defaults:
            return self._evaluate(defaults[name], self._constant)
        raise Unknown(name)

    def _given(self, helper: str, workload: Workload) -> Named:
        """What names stand for in ``get_inputs`` or ``get_init_inputs``."""
        given = dict(workload.arguments if helper == "get_inputs" else workload.init)
        defaults = _defaults(_function(self.tree, helper))

        def named(name: str) -> Plain:
            if name in given:
                value = given[name]
                assert value is None or isinstance(value, int | float | str | tuple)
                return value
            if name in defaults:
                return self._evaluate(defaults[name], self._constant)
            return self._constant(name)

        return named

    def _listed(self, helper: str) -> list[ast.expr] | None:
        """What a helper returns, its local names written out; none where that cannot be told."""
        function = _function(self.tree, helper)
        if function is None:
            return []
        returned = [each for each in ast.walk(function) if isinstance(each, ast.Return)]
        match returned:
            case [ast.Return(value=ast.List(elts=values) | ast.Tuple(elts=values)) as last]:
                if last is not function.body[-1]:
                    return None
                local, types = _locals(function), self._types(function)
                return [_written_out(_written_out(each, local), types) for each in values]
        return None

    def _types(self, function: ast.FunctionDef) -> dict[str, ast.expr]:
        """Arguments with a default of torch's, ``dtype=torch.float64``, that no workload sets."""
        set_ = {name for each in self.task.workloads for name, _ in (*each.arguments, *each.init)}
        return {
            name: default for name, default in _defaults(function).items()
            if (self.dotted(default) or "").startswith("torch.") and name not in set_
        }  # fmt: skip

    def input_shapes(self) -> list[tuple[str, ...] | None]:
        """The dimensions of every input of floats as written in ``get_inputs``; else ``None``.

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
        return self._listed("get_inputs") or []

    def made(self) -> list[Made]:
        """What is known of every input: dtype, dimensions as written."""
        making = self._making("get_inputs")
        return [making.made(each) for each in self.makers()]

    def dtype_of(self, path: str) -> str | None:
        """What ``self.name`` and all that it holds is kept in; ``None``: not told."""
        made = attributes(self.constructor).get(path)
        if made is None or self.constructor is None or _recast(self.constructor):
            return None
        making, local = self._making(""), _locals(self.constructor, twice=False)
        if isinstance(made, ast.Call) and made.args:
            kind = self.dotted(made.func) or ast.unparse(made.func)
            if kind == "torch.nn.Parameter" or kind.endswith("register_buffer"):
                return making.made(_written_out(made.args[0], local)).dtype
        said = [each.value for each in ast.walk(made)
                if isinstance(each, ast.keyword) and each.arg == "dtype"]  # fmt: skip
        kinds = {making.dtype_named(each) for each in said} or {making.default}
        return kinds.pop() if len(kinds) == 1 else None

    def _making(self, helper: str) -> Making:
        default = None if "set_default_" in self.task.source else "float32"
        return Making(names=_Names(module=self, helper=helper), default=default)

    def sizes(self, written: tuple[str, ...], workload: Workload) -> tuple[int, ...]:
        """The dimensions of an input, as numbers.

        Raises:
            Unknown: One of them cannot be told.
        """
        found = [self._input_size(each, workload) for each in written]
        for text, each in zip(written, found, strict=True):
            if not isinstance(each, int) or isinstance(each, bool):
                raise Unknown(text)
        return tuple(each for each in found if isinstance(each, int))

    def _input(self, node: ast.expr) -> tuple[str, ...] | float | None:
        scopes = [self._given("get_inputs", each) for each in self.task.workloads]
        try:
            said = [self._evaluate(node, each) for each in scopes]
        except Unknown:
            made = self._making("get_inputs").made(node)
            if made.dtype in INTEGERS:
                text = ast.unparse(node)
                raise NotRecognised(f"rules do not know integer inputs (`{text}`)") from None
            return made.shape if made.dtype in FLOATS else None
        for each in said:
            if isinstance(each, bool) or not isinstance(each, int | float):
                raise NotRecognised(f"rules do not know inputs that are no tensors ({each!r})")
        return next(each for each in said if isinstance(each, int | float))

    def same_sizes(self, a: tuple[str, ...], b: tuple[str, ...]) -> bool:
        """Whether two inputs, by their dimensions as written, are of one size in all workloads."""
        return a == b or (
            len(a) == len(b)
            and all(
                self._input_size(x, each) == self._input_size(y, each)
                for x, y in zip(a, b, strict=True)
                if x != y
                for each in self.task.workloads
            )
        )

    def _input_size(self, written: str, workload: Workload) -> Plain:
        """One dimension of ``get_inputs`` as a number; as written where that cannot be told."""
        try:
            node = ast.parse(written, mode="eval").body
            return self._evaluate(node, self._given("get_inputs", workload))
        except Unknown:
            return written


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """What names stand for in a helper; in the constructor where that is empty."""

    module: Module
    helper: str

    def dotted(self, node: ast.expr) -> str | None:
        """The full name of an imported thing, also where the file gives it another."""
        if isinstance(node, ast.Name) and node.id in self.module.constants:
            node = self.module.constants[node.id]
        return self.module.dotted(node)

    def value(self, node: ast.expr) -> int | float | tuple[int, ...] | None:
        """A number or sizes that are the same in all workloads."""
        found = self._values(node)
        if not found or any(each != found[0] for each in found):
            return None
        match found[0]:
            case int() | float() as number:
                return number
            case tuple() as sizes if all(isinstance(each, int) for each in sizes):
                return tuple(each for each in sizes if isinstance(each, int))
        return None

    def is_number(self, node: ast.expr) -> bool:
        """Whether it is one plain number in every workload."""
        found = self._values(node)
        return bool(found) and all(isinstance(each, int | float) for each in found)

    def is_size(self, node: ast.expr) -> bool:
        """Whether it is one whole number in every workload."""
        found = self._values(node)
        return bool(found) and all(type(each) is int for each in found)

    def _values(self, node: ast.expr) -> list[Plain]:
        module = self.module
        try:
            return [
                module._evaluate(node, module._given(self.helper, each) if self.helper
                                 else module._member(each))
                for each in module.task.workloads
            ]  # fmt: skip
        except Unknown:
            return []


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
        tree=tree, forward=forward, constructor=constructor, constants=constants_of(tree),
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


def _written_out(node: ast.expr, local: Mapping[str, ast.expr]) -> ast.expr:
    """An expression with what these names stand for in their place."""

    class Names(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return local.get(node.id, node)

    found = Names().visit(copy.deepcopy(node))
    assert isinstance(found, ast.expr)
    return found


def _locals(function: ast.FunctionDef, *, twice: bool = True) -> dict[str, ast.expr]:
    """What local names of plain code stand for at its end; of others, that it is not told.

    ``twice``: a name may stand for one thing first and for another later.
    """
    plain = [pair for each in function.body for pair in _assigned(each)]
    names = [name for name, _ in plain]
    stored = [each.id for each in ast.walk(function)
              if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]  # fmt: skip
    untold = {
        each for each in stored
        if stored.count(each) > names.count(each) or (not twice and names.count(each) > 1)
    }  # fmt: skip
    found: dict[str, ast.expr] = dict.fromkeys(untold, _UNTOLD)
    for each in function.body:
        made = [(name, _written_out(value, found)) for name, value in _assigned(each)]
        found |= {name: value for name, value in made if name not in untold}
    return found


def _assigned(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    """Names that a plain assignment sets, one by one or side by side."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return [(name, value)]
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            pairs = list(zip(targets, values, strict=False))
            if len(targets) == len(values) and all(isinstance(t, ast.Name) for t in targets):
                return [(ast.unparse(target), value) for target, value in pairs]
    return []


def _recast(constructor: ast.FunctionDef) -> bool:
    """Whether a constructor changes what its own weights are kept in."""
    casts = {"half", "double", "bfloat16", "float", "to", "type"}
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)
        and each.func.attr in casts and ast.unparse(each.func.value).startswith("self")
        for each in ast.walk(constructor)
    )  # fmt: skip


def _function(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    return found[-1] if found else None


def _defaults(function: ast.FunctionDef | None) -> dict[str, ast.expr]:
    if function is None:
        return {}
    args = function.args
    found = dict(zip([a.arg for a in args.args][::-1], args.defaults[::-1], strict=False))
    given = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return found | {name.arg: default for name, default in given if default is not None}


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
