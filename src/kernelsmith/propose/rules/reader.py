"""From the source of ``forward`` to a graph: an interpreter over shapes that computes nothing."""

import ast
from collections.abc import Mapping

from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.attributes import attributes, check_told
from kernelsmith.propose.rules.functions import FUNCTIONS, LAYERS, RENAMED, Known, check_norm
from kernelsmith.propose.rules.graph import (
    Builder,
    Graph,
    Kind,
    Node,
    NotRecognised,
    Shape,
    check_result,
    lies_in,
    pruned,
)
from kernelsmith.propose.rules.idle import (
    check_number,
    is_idle,
    is_sequence,
    layers_of,
    number_in,
    undropped,
)
from kernelsmith.propose.rules.in_place import check_own
from kernelsmith.propose.rules.names import TAKEN
from kernelsmith.propose.rules.operators import Operators
from kernelsmith.propose.rules.promotion import check_types, is_single
from kernelsmith.propose.rules.source import Module, Unknown, read_module
from kernelsmith.propose.rules.values import Extreme, Late, Layer, ShapeOf, Tensor, Value, text_of

_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow",
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
_SIGN = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}


def read_graph(task: Task) -> Graph:
    """Say what a task computes.

    Raises:
        NotRecognised: In one line, the first thing that the rules do not know.
    """
    return _Reader(read_module(task)).graph()


class _Reader:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.build = Builder()
        self.ops = Operators(self.build)
        self._prefix: list[tuple[str, str]] = []
        self._trailing: int | None = None
        self._rank: int | None = None
        self._from_front = False
        """Whether dimensions are counted from the front, which says how many there must be."""
        self._attributes = attributes(module.constructor)
        self._names: dict[str, Value] = {}
        self._misfits: dict[str, str] = {}
        self._overall = False

    def graph(self) -> Graph:
        inputs = self._read_arguments()
        result = self._run(self.module.forward.body)
        nodes, output = pruned(self.build.nodes, self.node(result))
        prefix = self._needed(nodes)
        full = [n.text for n in nodes if n.kind is Kind.INPUT and n.shape is Shape.FULL]
        check_result(nodes, output, full, behind=bool(prefix))
        check_types(nodes, output, single=is_single(self.module.task))
        self._check_inputs(nodes)
        if self._overall and nodes[output].shape is not Shape.FULL:
            raise NotRecognised("rules must know the dimension of a reduction")
        return Graph(
            nodes=nodes, output=output, trailing=self._trailing or 1, prefix=prefix,
            inputs=inputs, shaped_like=full[0], overall=self._overall,
            rank=self._rank if self._from_front else None,
        )  # fmt: skip

    def _check_inputs(self, nodes: tuple[Node, ...]) -> None:
        """Insist that inputs lie over rows as their shapes say; products take them as they are."""
        for node in nodes:
            if node.kind is not Kind.INPUT:
                continue
            if node.text in self._misfits:
                raise NotRecognised(self._misfits[node.text])
            if (self._trailing or 1) > 1 and node.shape is not Shape.FULL:
                raise NotRecognised(
                    f"rules do not know how {node.text!r} lies over rows of several dimensions"
                )

    def _needed(self, nodes: tuple[Node, ...]) -> tuple[tuple[str, str], ...]:
        used = {n.text for n in nodes if n.kind is Kind.INPUT}
        return tuple(each for each in self._prefix if each[0] in used)

    def _read_arguments(self) -> tuple[str, ...]:
        arguments = self.module.forward.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            raise NotRecognised("rules do not know a forward with starred arguments")
        skip = 0 if self.module.task.is_function else 1
        names = [each.arg for each in arguments.args[skip:]]
        found = self.module.inputs()
        shapes = [None if isinstance(each, int | float) else each for each in found]
        if len(shapes) > len(names) or len(names) - len(shapes) > len(arguments.defaults):
            raise NotRecognised("rules cannot tell which inputs get_inputs() makes")
        known = [each for each in shapes if each is not None]
        widest = max(known, key=lambda s: (len(s), len(s) - s.count("1")), default=None)
        self._rank = len(widest) if widest is not None else None
        numbers = [isinstance(each, int | float) for each in found]
        for name, shape, number in zip(names, shapes, numbers, strict=False):
            if number:
                if name in TAKEN:
                    raise NotRecognised(f"rules do not know a number that is called {name!r}")
                self._names[name] = Late(text=name)
                continue
            lies = lies_in(shape, widest)
            if (
                shape is not None
                and widest
                and lies is Shape.FULL
                and (not shape or not self.module.same_sizes(shape, widest))
            ):
                self._misfits[name] = (
                    f"rules know inputs of one size, not {name!r} of ({', '.join(shape)}) beside "
                    f"({', '.join(widest)})"
                )
            node = Node(kind=Kind.INPUT, text=name, shape=lies)
            self._names[name] = Tensor(node=self.build.add(node), text=name)
        defaults = arguments.defaults
        for name, default in zip(names[::-1], defaults[::-1], strict=False):
            if name not in self._names:
                self._names[name] = self.module.plain(default)
        return tuple(name for name, plain in zip(names, numbers, strict=False) if not plain)

    def _run(self, body: list[ast.stmt]) -> Value:
        for statement in body:
            match statement:
                case ast.Return(value=value) if value is not None:
                    return self._value(value)
                case ast.Expr(value=ast.Constant()):
                    continue
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._names[name] = self._value(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                    self._names[name] = self._value(value)
                case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                    check_own(name, self._names, self.build, made={n for n, _ in self._prefix})
                    left = self._names.get(name)
                    self._names[name] = self._arithmetic(op, left, self._value(value))
                case _:
                    line = ast.unparse(statement).splitlines()[0]
                    raise NotRecognised(f"rules do not know the statement `{line[:60]}`")
        raise NotRecognised("rules find no value that forward returns")

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(id=name) if name in self._names:
                return self._names[name]
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                found = tuple(self._value(each) for each in elements)
                if all(isinstance(each, int | float | str | tuple) for each in found):
                    return found  # type: ignore[return-value]
                raise NotRecognised("rules do not know a forward that returns several values")
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return self._call_known("matmul", [self._value(left), self._value(right)], {})
            case ast.BinOp(left=left, op=op, right=right):
                return self._arithmetic(op, self._value(left), self._value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._negative(self._value(operand))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._arithmetic(op, self._value(left), self._value(right))
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript(value=value, slice=index):
                return self._subscript(self._value(value), index)
            case ast.Call():
                return self._call(node)
        try:
            return self.module.plain(node)
        except Unknown:
            raise NotRecognised(f"rules do not know `{ast.unparse(node)[:60]}`") from None

    def _negative(self, value: Value) -> Value:
        if isinstance(value, Tensor):
            return Tensor(node=self.build.unary("neg", self.node(value)))
        if isinstance(value, Late):
            return Late(text=f"-({value.text})")
        if isinstance(value, int | float):
            return -value
        raise NotRecognised("rules do not know what to negate")

    def _arithmetic(self, op: ast.AST, a: Value, b: Value) -> Value:
        name = _BINARY.get(type(op))
        if name is None:
            raise NotRecognised(f"rules do not know the operator {type(op).__name__}")
        if not isinstance(a, Tensor) and not isinstance(b, Tensor) and name in _SIGN:
            return Late(text=f"({text_of(a)} {_SIGN[name]} {text_of(b)})")
        if name == "pow":
            return Tensor(node=self.ops.power(self.node(a), self.node(b)))
        return Tensor(node=self.build.binary(name, self.node(a), self.node(b)))

    def _attribute(self, node: ast.Attribute) -> Value:
        dotted = self.module.dotted(node)
        if dotted is not None:
            return self.module.plain(node)
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return self._member(node.attr)
        held = self._value(node.value)
        if isinstance(held, Layer):
            return self._layer_member(held, node.attr)
        if isinstance(held, Extreme) and node.attr == "values":
            return held.values
        if isinstance(held, Tensor):
            if node.attr == "shape":
                return ShapeOf(tensor=held)
            if node.attr in ("T", "mT") and held.text:
                return Tensor(node=None, text=f"{held.text}.{node.attr}")
        raise NotRecognised(f"rules do not know `{ast.unparse(node)}`")

    def _member(self, name: str) -> Value:
        made = self._attributes.get(name)
        if made is None:
            raise NotRecognised(f"rules do not know where self.{name} comes from")
        path = f"self.{name}"
        if isinstance(made, ast.Call):
            kind = self.module.dotted(made.func) or ast.unparse(made.func)
            if kind == "torch.nn.Parameter" or kind.endswith("register_buffer"):
                return self._parameter(path, made.args[0])
            if kind.startswith("torch.nn."):
                return self._layer(path, kind, made)
            if kind.startswith("torch."):
                raise NotRecognised(f"rules do not know the tensor {path}")
        check_told(path, made)
        try:
            return Late(text=path, known=self.module.plain(made))
        except Unknown:
            return Late(text=path)

    def _layer(self, path: str, kind: str, made: ast.Call) -> Layer:
        if is_sequence(kind):
            parts = [self._layer(*each) for each in layers_of(self.module, path, made)]
            return Layer(path=path, kind=kind, settings={each.path: each for each in parts})
        names = LAYERS.get(kind.removeprefix("torch.nn."), ("", ""))[1].split()
        names = {
            "torch.nn.Linear": ["inputs", "outputs", "bias"],
            "torch.nn.LayerNorm": ["shape", "eps", "elementwise_affine", "bias"],
            "torch.nn.RMSNorm": ["shape", "eps", "elementwise_affine"],
        }.get(kind, names)
        settings: dict[str, Value] = {}
        given = [*zip(names, made.args, strict=False)]
        given += [(RENAMED.get(k.arg, k.arg), k.value) for k in made.keywords if k.arg]
        for name, value in given:
            try:
                settings[name] = self.module.plain(value)
            except NotRecognised:
                settings[name] = Late(text=f"{path}.{name}")
        if len(made.args) > len(names) and not is_idle(self.module, kind):
            raise NotRecognised(f"rules do not know {kind}")
        return Layer(path=path, kind=kind, settings=settings)

    def _layer_member(self, layer: Layer, name: str) -> Value:
        absent = layer.settings.get("bias") is False or (
            layer.settings.get("elementwise_affine") is False
        )
        if name == "bias" and not absent:
            return self._column(f"{layer.path}.bias")
        if name == "weight" and layer.kind == "torch.nn.Linear":
            return Tensor(node=None, text=f"{layer.path}.weight")
        if name == "weight" and layer.settings.get("elementwise_affine") is not False:
            return self._column(f"{layer.path}.weight")
        if name == "eps":
            return Late(text=f"{layer.path}.eps")
        raise NotRecognised(f"rules do not know {layer.path}.{name}")

    def _column(self, path: str) -> Tensor:
        node = self.build.add(Node(kind=Kind.PARAMETER, text=path, shape=Shape.COLUMN))
        return Tensor(node=node, text=path)

    def _parameter(self, path: str, value: ast.expr) -> Tensor:
        rank, size = self._parameter_rank(value)
        if rank is None:
            return Tensor(node=None, text=path)
        if rank == 0 or size == 1:
            shape = Shape.SCALAR
        elif rank == (self._trailing or 1):
            shape = Shape.COLUMN
        else:
            return Tensor(node=None, text=path)
        node = self.build.add(Node(kind=Kind.PARAMETER, text=path, shape=shape))
        return Tensor(node=node, text=path)

    def _parameter_rank(self, value: ast.expr) -> tuple[int | None, int | None]:
        """How many dimensions a parameter has, and how many elements where that is one."""
        while isinstance(value, ast.BinOp):
            value = value.left if isinstance(value.left, ast.Call) else value.right
        if not isinstance(value, ast.Call):
            return None, None
        maker = (self.module.dotted(value.func) or "").rpartition(".")[2]
        args = value.args[:1] if maker == "full" else value.args
        if maker == "tensor":
            scalar = len(args) == 1 and not isinstance(args[0], ast.List | ast.Tuple | ast.Name)
            return (0, 1) if scalar else (None, None)
        if maker not in ("ones", "zeros", "rand", "randn", "empty", "full"):
            return None, None
        dims: list[object] = []
        for each in args:
            try:
                found = self.module.plain(each)
            except Unknown:
                return None, None
            except NotRecognised:
                found = 0  # one number, not the same in all workloads
            dims += found if isinstance(found, tuple) else [found]
        return len(dims), 1 if dims and all(each == 1 for each in dims) else None

    def _subscript(self, held: Value, index: ast.expr) -> Value:
        at = self.module.plain(index) if not isinstance(index, ast.Slice) else None
        if isinstance(held, ShapeOf) and isinstance(at, int):
            return self._size(held.tensor, at)
        if isinstance(held, Extreme) and at == 0:
            return held.values
        raise NotRecognised("rules do not know indexing of tensors")

    def _size(self, tensor: Tensor, at: int) -> Value:
        rank = self._rank
        if at >= 0 and rank is not None:
            at -= rank
        self.check_row(-1)
        if tensor.node is not None and self.build.shape(tensor.node) is Shape.FULL:
            if at == -1:
                return Tensor(node=self.build.count("dim"))
            if rank == 2:
                return Tensor(node=self.build.count("rows"))
        raise NotRecognised("rules do not know this use of a shape")

    def _call(self, node: ast.Call) -> Value:
        if (kept := undropped(self.module, node)) is not None:
            return self._value(kept)
        if (number := number_in(self.module, node)) is not None:
            value = self._value(number)
            check_number(value, value.known if isinstance(value, Late) else None)
            return Tensor(node=self.node(value))
        args = [self._value(each) for each in node.args]
        keywords = {RENAMED.get(k.arg, k.arg): self._value(k.value) for k in node.keywords if k.arg}
        dotted = self.module.dotted(node.func)
        if dotted is not None:
            if dotted.startswith("math."):
                return self.module.plain(node)
            name = dotted.rpartition(".")[2]
            if dotted in ("torch.max", "torch.min") and (len(args) > 1 or keywords):
                return self._extreme(name, args, keywords)
            check_norm(dotted, len(args), args[2] if len(args) > 2 else keywords.get("dim"))
            if not dotted.startswith("torch.") or name not in FUNCTIONS:
                raise NotRecognised(f"rules do not know {dotted}")
            return self._call_known(name, args, keywords)
        if isinstance(node.func, ast.Attribute) and not (
            isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
        ):
            return self._method(node.func.attr, self._value(node.func.value), args, keywords)
        held = self._value(node.func)
        if isinstance(held, Layer):
            return self._call_layer(held, args, keywords)
        raise NotRecognised(f"rules do not know `{ast.unparse(node)[:60]}`")

    def _extreme(self, name: str, args: list[Value], keywords: Mapping[str, Value]) -> Value:
        """``max`` of two tensors, or over a dimension, where it gives indices too."""
        if len(args) == 2 and isinstance(args[1], Tensor):
            return self._call_known(f"{name}imum", args, keywords)
        return Extreme(values=self._tensor(f"a{name}", args, keywords))

    def _method(
        self, name: str, held: Value, args: list[Value], keywords: Mapping[str, Value]
    ) -> Value:
        if not isinstance(held, Tensor):
            raise NotRecognised(f"rules do not know the method .{name}()")
        if (name in ("t", "transpose") and held.text and held.node is None) or name == "t":
            inside = ", ".join(text_of(each) for each in args)
            return Tensor(node=None, text=f"{held.text}.{name}({inside})")
        if name == "transpose" and held.text:
            inside = ", ".join(text_of(each) for each in args)
            return Tensor(node=None, text=f"{held.text}.transpose({inside})")
        if name == "size" and len(args) == 1 and isinstance(args[0], int):
            return self._size(held, args[0])
        if name in ("squeeze", "unsqueeze") and args in ([-1], [1]) and held.node is not None:
            if args == [1] and self._rank != 2:
                raise NotRecognised(f"rules do not know .{name}({args[0]}) here")
            self._from_front = self._from_front or args == [1]
            return self._resized(held.node, name)
        if name in ("max", "min") and (args or keywords):
            return self._extreme(name, [held, *args], keywords)
        if name not in FUNCTIONS:
            raise NotRecognised(f"rules do not know the method .{name}()")
        return self._call_known(name, [held, *args], keywords)

    def _resized(self, node: int, name: str) -> Tensor:
        before, after = Shape.ROW, Shape.SQUEEZED
        if name == "unsqueeze":
            before, after = after, before
        if self.build.shape(node) is not before:
            raise NotRecognised(f"rules do not know .{name}() of a {self.build.shape(node)} tensor")
        return Tensor(node=self.build.view(node, after))

    def _call_known(self, name: str, args: list[Value], keywords: Mapping[str, Value]) -> Value:
        return self._tensor(name, args, keywords)

    def _tensor(self, name: str, args: list[Value], keywords: Mapping[str, Value]) -> Tensor:
        known: Known = FUNCTIONS[name]
        return Tensor(node=known.make(self, known.bind(name, args, keywords)))

    def _call_layer(self, layer: Layer, args: list[Value], keywords: Mapping[str, Value]) -> Value:
        short = layer.kind.removeprefix("torch.nn.")
        if is_sequence(layer.kind):
            for part in layer.settings.values():
                assert isinstance(part, Layer)
                args = [self._call_layer(part, args, {})]
            return args[0]
        if is_idle(self.module, layer.kind) and len(args) == 1:
            return args[0]
        if short in LAYERS:
            return self._call_known(LAYERS[short][0], args, {**layer.settings, **keywords})
        given: dict[str, Value] = {}
        if short in ("LayerNorm", "RMSNorm", "Linear"):
            for name in ("weight", "bias"):
                if short == "RMSNorm" and name == "bias":
                    continue
                if layer.settings.get("elementwise_affine") is False:
                    continue
                if layer.settings.get("bias") is False and name == "bias":
                    continue
                given[name] = self._layer_member(layer, name)
        if short == "LayerNorm" or (short == "RMSNorm" and layer.settings.get("eps") is not None):
            given["eps"] = Late(text=f"{layer.path}.eps")
        if short in ("LayerNorm", "RMSNorm"):
            shape = layer.settings["shape"]
            given["shape"] = shape if isinstance(shape, tuple) else 0
            return self._call_known(
                "layer_norm" if short == "LayerNorm" else "rms_norm", args, given
            )
        if short == "Linear":
            return self._call_known("linear", args, given)
        raise NotRecognised(f"rules do not know {layer.kind}")

    def node(self, value: Value) -> int:
        """A tensor or number as a node."""
        if isinstance(value, Tensor):
            if value.node is None:
                raise NotRecognised(f"rules do not know `{value.text}` outside of a matrix product")
            return value.node
        if isinstance(value, Late):
            return self.build.add(Node(kind=Kind.NUMBER, shape=Shape.SCALAR, text=value.text))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self.build.constant(value)
        raise NotRecognised(f"rules do not know what to compute with {value!r}")

    def check_row(self, dim: Value) -> None:
        """Insist that these dimensions are the trailing ones, and the same ones everywhere."""
        known = dim.known if isinstance(dim, Late) else dim
        dims = known if isinstance(known, tuple) else (known,)
        if not dims:
            raise NotRecognised("rules know reductions over some dimension, not over ()")
        wanted = set()
        for each in dims:
            if not isinstance(each, int) or isinstance(each, bool):
                raise NotRecognised("rules must know the dimension of a reduction")
            if each >= 0 and self._rank is None:
                raise NotRecognised(f"rules cannot tell whether dimension {each} is the last")
            self._from_front = self._from_front or each >= 0
            wanted.add(each if each < 0 else each - (self._rank or 0))
        if wanted != set(range(-len(wanted), 0)):
            raise NotRecognised(f"rules know reductions over the last dimension, not over {known}")
        if self._trailing not in (None, len(wanted)):
            raise NotRecognised("rules do not know reductions over different dimensions")
        self._trailing = len(wanted)

    def check_all(self) -> None:
        """Take all dimensions for one row; what is found of it meets everything."""
        if not self._rank:
            raise NotRecognised("rules must know the dimension of a reduction")
        self.check_row(tuple(range(-self._rank, 0)))
        self._overall = self._from_front = True

    def check_matrix(self, what: str) -> None:
        """Insist on inputs of two dimensions."""
        if self._rank != 2:
            raise NotRecognised(f"rules know {what} for two dimensions only")
        self._from_front = True

    def product(self, text: str) -> Tensor:
        """Run a library product first, and take it as an input."""
        name = f"product{len(self._prefix) or ''}"
        self._prefix.append((name, text))
        node = self.build.add(Node(kind=Kind.INPUT, text=name, shape=Shape.FULL))
        return Tensor(node=node)
