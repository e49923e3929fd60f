"""The wrapper that Inductor writes around its kernels, read as typed steps."""

import ast
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from kernelsmith.propose.rules.compiler.call import (
    Alias,
    Allocate,
    Drop,
    Launch,
    Library,
    Listed,
    Named,
    Operand,
    Part,
    Step,
    Verbatim,
    Viewed,
)

_PUBLIC = {
    "mm": "torch.mm", "bmm": "torch.bmm", "addmm": "torch.addmm", "baddbmm": "torch.baddbmm",
    "addmv": "torch.addmv", "mv": "torch.mv", "dot": "torch.dot", "bias_addmm": "torch.addmm",
    "convolution": "torch.convolution", "_int_mm": "torch._int_mm",
    "_scaled_mm": "torch._scaled_mm",
}  # fmt: skip
"""Inductor's names of library calls, and torch's."""
_EMPTY = ("empty_strided", "empty_strided_cuda", "empty_strided_cpu", "empty_strided_xpu")
_IGNORED = ("assert_alignment", "torch.cuda.set_device", "args.clear", "run_intermediate_hooks")
_RANDOM = ("seed", "random", "rand", "dropout", "bernoulli", "philox", "multinomial", "normal_")


class Unreadable(Exception):
    """Something in the compiler's text that has no stand-alone counterpart, in one line."""


@dataclass(slots=True)
class Wrapper:
    """What the generated ``call`` does."""

    names: list[str] = field(default_factory=list)
    """Its arguments, in order."""
    layouts: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    """Shape and stride of arguments, as asserted."""
    steps: list[Step] = field(default_factory=list)
    results: list[Operand] = field(default_factory=list)


def read_wrapper(
    tree: ast.Module, kernels: Collection[str], constants: Collection[str] = ()
) -> Wrapper:
    """Read the function ``call`` of a generated module.

    Args:
        tree: The generated module.
        kernels: Names that stand for kernels; they are launched by ``name.run(...)`` (Triton) or
            ``name(...)`` (C++).
        constants: Names of tensors that the module carries with it.

    Raises:
        Unreadable: It holds something of no stand-alone counterpart.
    """
    return _Reader(kernels, constants).read(_call(tree))


def _call(tree: ast.Module) -> ast.FunctionDef:
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) and node.name == "Runner" else [node]
        for each in inner:
            if isinstance(each, ast.FunctionDef) and each.name == "call":
                return each
    raise Unreadable("the compiler's text has no call")


class _Reader:
    def __init__(self, kernels: Collection[str], constants: Collection[str]) -> None:
        self._kernels = kernels
        self._tensors = set(constants)
        self._made = Wrapper()

    def read(self, function: ast.FunctionDef) -> Wrapper:
        for statement in function.body:
            self._statement(statement)
        return self._made

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.With(body=body):
                for each in body:
                    self._statement(each)
            case ast.Pass():
                pass
            case ast.Delete(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Name) and target.id in self._tensors:
                        self._made.steps.append(Drop(name=target.id))
            case ast.Return(value=ast.Tuple(elts=elements)):
                self._made.results = [self._result(self.operand(each)) for each in elements]
            case ast.Assign(targets=[target], value=ast.Name(id="args")):
                self._arguments(target)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assigned(name, value)
            case ast.Expr(value=ast.Call() as call):
                self._called(call)
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                raise Unreadable(f"the compiler's text does `{ast.unparse(node)[:80]}`")

    def _result(self, found: Operand) -> Operand:
        """What is returned; a part of something larger may have to be copied.

        The compiler guesses eager's stride of a dimension of one element, and guesses otherwise
        than eager does. Only in a dense tensor does nobody see that.
        """
        if not isinstance(found, Viewed) or found.name in self._made.names:
            return found
        if 1 not in found.shape or _is_dense(found):
            return found
        name = f"result{len(self._made.steps)}"
        dense = ("memory_format", Verbatim(text="torch.contiguous_format"))
        self._made.steps.append(
            Library(target="torch.ops.aten.clone.default", operands=(found,), keywords=(dense,),
                    result=name)
        )  # fmt: skip
        return Named(name=name)

    def _arguments(self, target: ast.expr) -> None:
        elements = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        for each in elements:
            assert isinstance(each, ast.Name)
            self._made.names.append(each.id)
            self._tensors.add(each.id)

    def _assigned(self, name: str, value: ast.expr) -> None:
        steps = self._made.steps
        match value:
            case ast.Name(id=other) if other in self._tensors:
                steps.append(Alias(name=name, of=Named(name=other)))
            case ast.Subscript(value=ast.Name(id=other), slice=ast.Constant(value=int() as index)):
                steps.append(Part(name=name, of=other, index=index))
            case ast.Call(func=func) if ast.unparse(func) in _EMPTY:
                shape, stride, dtype = (*value.args[:2], value.args[2])
                steps.append(
                    Allocate(name=name, shape=_ints(shape), stride=_ints(stride),
                             dtype=ast.unparse(dtype).removeprefix("torch."))
                )  # fmt: skip
            case ast.Call(func=ast.Name(id="reinterpret_tensor")):
                view = self.operand(value)
                assert isinstance(view, Viewed)
                steps.append(Alias(name=name, of=view))
            case ast.Call(func=func) if ast.unparse(func) == "get_raw_stream":
                return
            case ast.Call(func=ast.Name(id="copy_if_misaligned"), args=[ast.Name(id=other)]):
                # Its kernels are compiled for aligned pointers only; ours by what they are given.
                if other != name:
                    steps.append(Alias(name=name, of=Named(name=other)))
            case ast.Call():
                steps.append(self._library(value, ast.unparse(value.func), result=name))
            case _:
                raise Unreadable(f"the compiler's text holds `{name} = {ast.unparse(value)[:80]}`")
        self._tensors.add(name)

    def _called(self, call: ast.Call) -> None:
        called = ast.unparse(call.func)
        kernel = called.removesuffix(".run")
        if called == "assert_size_stride":
            self._asserted(call)
        elif kernel in self._kernels:
            self._made.steps.append(
                Launch(kernel=kernel, operands=tuple(self.operand(each) for each in call.args))
            )
        elif called.endswith(".zero_") and not call.args:
            assert isinstance(call.func, ast.Attribute)
            given = self.operand(call.func.value)
            self._made.steps.append(Library(target="torch.zero_", operands=(given,)))
        elif called == "extern_kernels._mm_plus_mm":
            self._two_products(call)
        elif called not in _IGNORED:
            self._made.steps.append(self._library(call, called, result=None))

    def _asserted(self, call: ast.Call) -> None:
        """Layouts of arguments, or of what a library returned."""
        if not isinstance(call.args[0], ast.Name):
            return
        name, shape, stride = call.args[0].id, _ints(call.args[1]), _ints(call.args[2])
        if name in self._made.names:
            self._made.layouts[name] = shape, stride
        for number, step in enumerate(self._made.steps):
            if (isinstance(step, Library) and step.result == name) or (
                isinstance(step, Part) and step.name == name
            ):
                self._made.steps[number] = replace(step, shape=shape, stride=stride)

    def _two_products(self, call: ast.Call) -> None:
        a, b, c, d = (self.operand(each) for each in call.args)
        out = next(self.operand(each.value) for each in call.keywords if each.arg == "out")
        self._made.steps += [
            Library(target="torch.mm", operands=(a, b), keywords=(("out", out),)),
            Library(target="torch.addmm", operands=(out, c, d), keywords=(("out", out),)),
        ]

    def _library(self, call: ast.Call, called: str, result: str | None) -> Library:
        target = self._target(called)
        keywords, out = [], None
        for each in call.keywords:
            given = self.operand(each.value)
            if each.arg == "out" and isinstance(given, Named):
                out = given.name
            elif each.arg is not None and each.arg != "stream":
                keywords.append((each.arg, given))
        return Library(
            target=target, operands=tuple(self.operand(each) for each in call.args),
            keywords=tuple(keywords), out=out, result=result,
        )  # fmt: skip

    def _target(self, called: str) -> str:
        if called.startswith("extern_kernels."):
            found = _PUBLIC.get(called.removeprefix("extern_kernels."))
            if found is None:
                raise Unreadable(f"the compiler calls its own `{called}`")
            return found
        if called.startswith("aten."):
            called = f"torch.ops.{called}"
        if any(each in called for each in _RANDOM):
            raise Unreadable(f"the compiler draws random numbers of its own (`{called}`)")
        if called.startswith(("torch.ops.aten.", "torch.ops.prims.")):
            return called
        raise Unreadable(f"the compiler calls `{called}`, which is not public")

    def operand(self, node: ast.expr) -> Operand:
        """An argument of a call."""
        match node:
            case ast.Name(id=name) if name in self._tensors:
                return Named(name=name)
            case ast.Name(id="inf" | "nan" as name):
                return float(name)
            case ast.Constant(value=int() | float() | str() | None as value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                found = self.operand(inner)
                assert isinstance(found, int | float)
                return -found
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return Listed(items=tuple(self.operand(each) for each in elements))
            case ast.Call(func=ast.Name(id="reinterpret_tensor"), args=[base, *rest]):
                return self._view(base, rest)
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as text)]):
                return float(text)
            case ast.Call() if ast.unparse(node.func) in ("device", "torch.device"):
                return Verbatim(text="device")
            case ast.Attribute() if (text := ast.unparse(node)).startswith("torch."):
                return Verbatim(text=text)
        raise Unreadable(f"the compiler passes `{ast.unparse(node)[:80]}`")

    def _view(self, base: ast.expr, rest: list[ast.expr]) -> Operand:
        shape, stride = _ints(rest[0]), _ints(rest[1])
        offset = self.operand(rest[2]) if len(rest) > 2 else 0
        assert isinstance(offset, int)
        found = self.operand(base)
        if isinstance(found, Viewed):
            return replace(found, shape=shape, stride=stride, offset=found.offset + offset)
        if not isinstance(found, Named):
            raise Unreadable(f"the compiler views `{ast.unparse(base)[:80]}`")
        return Viewed(name=found.name, shape=shape, stride=stride, offset=offset)


def _is_dense(view: Viewed) -> bool:
    """Whether its elements fill their span, in any order."""
    size = 1
    for stride, extent in sorted(zip(view.stride, view.shape, strict=True)):
        if extent != 1 and stride != size:
            return False
        size *= extent
    return True


def _ints(node: ast.expr) -> tuple[int, ...]:
    try:
        found = ast.literal_eval(node)
    except ValueError:
        raise Unreadable(f"the compiler leaves the size `{ast.unparse(node)[:60]}` open") from None
    return tuple(int(each) for each in found)
