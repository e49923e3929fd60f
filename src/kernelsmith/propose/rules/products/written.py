"""A product and what follows it, read from the task's source: a call as the compiler gives it.

Nothing is run and nobody is asked: sizes, weights and numbers are what the file says. A candidate
compares all of them with what it is given and else runs the reference, so that a file that was read
wrongly costs time and never a wrong result.
"""

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kernelsmith.domain.task import Task, Workload
from kernelsmith.propose.rules.compiler.call import (
    Allocate,
    Argument,
    Call,
    Kernel,
    Launch,
    Library,
    Named,
    Operand,
    Step,
    Viewed,
)
from kernelsmith.propose.rules.compiler.compiled import distinct
from kernelsmith.propose.rules.compiler.triton_writer import Shaped, named_apart
from kernelsmith.propose.rules.graph import Kind, Node, NotRecognised, Shape
from kernelsmith.propose.rules.idle import evaluated
from kernelsmith.propose.rules.kinds.lowering import Lowering
from kernelsmith.propose.rules.kinds.texts import Texts, triton_functions
from kernelsmith.propose.rules.kinds.trace import Expr, Traced, Value, plain_of, safe_name, trace
from kernelsmith.propose.rules.products.factors import (
    Factor,
    Factors,
    contracted,
    convolved,
    dense,
    multiplied,
)
from kernelsmith.propose.rules.source import Module, read_module

_PRODUCTS = {"matmul", "mm", "bmm"}
_CONVOLUTIONS = {"Conv1d", "Conv2d", "Conv3d"}
_TYPES = {"float32": "*fp32", "float16": "*fp16", "bfloat16": "*bf16"}
_OTHER_TYPE = re.compile(r"dtype|half|double|float64|float16|complex")
_LAYS_ANEW = {"T", "mT", "t", "transpose", "permute", "expand", "movedim", "swapaxes", "as_strided"}
_PRODUCT, _KEPT = "<product>", "<kept>"


def written_products(task: Task) -> tuple[Shaped, ...]:
    """One call per set of shapes: the library's product, and one pointwise kernel behind it.

    Raises:
        NotRecognised: The task is something else, or the source does not tell its sizes.
    """
    module = read_module(task)
    traced = trace(module)
    if any(_OTHER_TYPE.search(ast.unparse(each)) for each in module.makers()):
        raise NotRecognised("rules cannot tell what the inputs of a product are kept in")
    found = [
        Shaped(call=_Reading(module, traced, each).call(), label=each.name)
        for each in distinct(task)
    ]
    apart = named_apart([each.call for each in found])
    return tuple(replace(each, call=call) for each, call in zip(found, apart, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What ``forward`` computes behind the one product."""

    nodes: tuple[Node, ...]
    output: int
    factors: Factors
    tensors: dict[int, str] = field(default_factory=dict)
    """Arguments that are read element by element, by node."""


class _Reading:
    """Reads one task for one workload."""

    def __init__(self, module: Module, traced: Traced, workload: Workload) -> None:
        self._module, self._traced, self._workload = module, traced, workload
        self._dtype = workload.dtype or "float32"
        if self._dtype not in _TYPES:
            raise NotRecognised(f"rules do not know products of {self._dtype}")
        self._arguments: dict[str, Argument] = {}
        self._conditions = {f"{path}.training": "False" for path in evaluated(module)}
        self._product: Expr | None = None
        self._factors: Factors | None = None
        function = module.forward.args.args[0 if module.task.is_function else 1 :]
        self._given = {safe_name(each.arg): each.arg for each in function}

    def call(self) -> Call:
        """The whole."""
        read = self._read()
        factors, dtype = read.factors, self._dtype
        shape = (*([factors.batch] if factors.batch else []), factors.m, factors.n)
        steps: list[Step] = [
            Allocate(name="buf0", shape=shape, stride=dense(shape), dtype=dtype),
            Library(target=f"torch.{'bmm' if factors.batch else 'mm'}", out="buf0",
                    operands=(factors.a, factors.b)),
        ]  # fmt: skip
        if factors.library is not None:
            steps, shape = [factors.library], factors.shape
        kernels: tuple[Kernel, ...] = ()
        if read.nodes[read.output].text != _PRODUCT:
            kernel, operands = self._behind(read)
            kernels = (kernel,)
            steps.append(Launch(kernel=kernel.name, operands=operands))
        result = Viewed(name="buf0", shape=factors.shape, stride=dense(factors.shape))
        return Call(
            arguments=tuple(self._arguments.values()), kernels=kernels, steps=tuple(steps),
            results=(Named(name="buf0") if factors.shape == shape else result,),
            prelude=triton_functions(read.nodes).strip(),
            conditions=tuple(self._conditions.items()),
        )  # fmt: skip

    def _read(self) -> _Read:
        result = self._traced.result
        if not isinstance(result, Expr):
            raise NotRecognised("rules find no product")
        lowering = Lowering(self._leaf)
        output = lowering.lower(result)
        if self._factors is None:
            raise NotRecognised("rules find no product")
        nodes, output = lowering.needed(output, self._traced.module.task)
        numbers = {each.text: each for each in _inside(result) if each.op == "number"}
        nodes = tuple(self._settled(each, numbers) for each in nodes)
        if "pow" in {each.op for each in nodes}:
            raise NotRecognised("rules do not know a general power in Triton")
        if not any(each.text == _PRODUCT for each in nodes):
            raise NotRecognised("rules find no product that the result depends on")
        tensors = {
            number: each.text for number, each in enumerate(nodes)
            if each.kind in (Kind.INPUT, Kind.PARAMETER) and each.text in self._arguments
        }  # fmt: skip
        return _Read(nodes=nodes, output=output, factors=self._factors, tensors=tensors)

    def _settled(self, node: Node, numbers: dict[str, Expr]) -> Node:
        """A number as what the file says it is; the candidate asks whether it still is."""
        if node.kind is not Kind.NUMBER:
            return node
        known = numbers[node.text].known if node.text in numbers else None
        if isinstance(known, bool) or not isinstance(known, int | float):
            raise NotRecognised(f"rules must know `{node.text}` before anything runs")
        self._conditions[node.text] = repr(known)
        return Node(kind=Kind.CONSTANT, shape=Shape.SCALAR, value=float(known))

    def _leaf(self, lowering: Lowering, expr: Expr) -> int | None:
        if (found := self._as_product(expr)) is not None:
            if self._product not in (None, expr):
                raise NotRecognised("rules know one product at a time")
            self._product, (self._factors, bias) = expr, found
            node = Node(kind=Kind.INPUT, text=_PRODUCT, shape=Shape.FULL)
            made = lowering.build.add(node)
            return made if bias is None else lowering.build.binary("add", made, self._node(
                lowering, bias))  # fmt: skip
        match expr.op:
            case "input" if (number := self._number(expr)) is not None:
                return lowering.build.constant(number)
            case "input" | "parameter":
                return self._node(lowering, self._tensor(expr).name)
            case "tril" | "triu":
                return self._triangle(lowering, expr)
            case "layer" if expr.setting("kind") == "BatchNorm1d":
                return self._batch_norm(lowering, expr)
        return None

    def _node(self, lowering: Lowering, argument: str) -> int:
        return lowering.build.add(Node(kind=Kind.INPUT, text=argument, shape=Shape.FULL))

    def _as_product(self, expr: Expr) -> tuple[Factors, str | None] | None:
        """The product that an expression is, and the argument that is added to it."""
        args, settings = expr.args, dict(expr.settings)
        if expr.op in _PRODUCTS and len(args) == 2 and not settings:
            return multiplied(self._factor(args[0]), self._factor(args[1])), None
        if expr.op == "einsum" and len(args) == 3 and isinstance(args[0], str) and not settings:
            return contracted(self._factor(args[1]), self._factor(args[2]), args[0]), None
        if expr.op == "addmm" and len(args) == 3 and not settings:
            added = self._tensor(args[0]).name
            return multiplied(self._factor(args[1]), self._factor(args[2])), added
        if expr.op == "linear" and len(args) in (2, 3) and not settings:
            bias = self._tensor(args[2]).name if len(args) == 3 and args[2] is not None else None
            return multiplied(self._factor(args[0]), self._factor(args[1]).turned(0, 1)), bias
        if expr.op == "layer" and settings.get("kind") == "Linear" and len(args) == 1:
            wide = plain_of(settings.get("out_features")), plain_of(settings.get("in_features"))
            if not (isinstance(wide[0], int) and isinstance(wide[1], int)):
                raise NotRecognised("rules must know the sizes of a linear layer")
            weight = self._argument(f"{expr.text}.weight", (wide[0], wide[1]))
            held = plain_of(settings.get("bias", True)) is not False
            bias = self._argument(f"{expr.text}.bias", wide[:1]).name if held else None
            return multiplied(self._factor(args[0]), weight.turned(0, 1)), bias
        if expr.op == "layer" and settings.get("kind") in _CONVOLUTIONS and len(args) == 1:
            return self._convolution(expr), None
        return None

    def _convolution(self, expr: Expr) -> Factors:
        """A layer whose kernel is one point."""
        given = dict(expr.settings)
        sizes = [plain_of(given.get(each)) for each in ("out_channels", "in_channels")]
        size, stride, padding, groups = (
            plain_of(given.get(name, usual)) for name, usual in
            (("kernel_size", None), ("stride", 1), ("padding", 0), ("groups", 1))
        )  # fmt: skip
        if not all(isinstance(each, int) for each in sizes) or groups != 1 or any(
            not _all(each, value) for each, value in ((size, 1), (stride, 1), (padding, 0))
        ):  # fmt: skip
            raise NotRecognised("rules know convolutions of one point as products here")
        ones = (1,) * int(str(given["kind"])[4])
        weight = self._argument(f"{expr.text}.weight", (*sizes, *ones))
        bias = None
        if plain_of(given.get("bias", True)) is not False:
            bias = self._argument(f"{expr.text}.bias", (sizes[0],)).name
        return convolved(self._tensor(expr.args[0]), weight, bias)

    def _factor(self, value: Value) -> Factor:
        match value:
            case Expr(op="T" | "t", args=(Expr() as inner,)):
                held = self._factor(inner)
                if len(held.shape) == 2:
                    return held.turned(0, 1)
            case Expr(op="mT", args=(Expr() as inner,)):
                return self._factor(inner).turned(-1, -2)
            case Expr(op="transpose", args=(Expr() as inner, int() as one, int() as other)):
                held = self._factor(inner)
                if all(-len(held.shape) <= each < len(held.shape) for each in (one, other)):
                    return held.turned(one, other)
            case Expr(op="input" | "parameter"):
                return self._tensor(value)
        raise NotRecognised("rules know products of inputs and weights")

    def _tensor(self, value: Value) -> Factor:
        """An input or a parameter, dense as it was made."""
        if not isinstance(value, Expr) or value.integer:
            raise NotRecognised("rules know products of inputs and weights")
        if value.op == "parameter":
            if value.dims is None:
                raise NotRecognised(f"rules cannot tell the size of {value.text}")
            return self._argument(value.text, self._parameter(value.dims))
        written, maker = self._input(value.text)
        if not isinstance(written, tuple) or _lays_anew(maker):
            raise NotRecognised(f"rules cannot tell the size of {value.text!r}")
        return self._argument(self._given[value.text], self._module.sizes(written, self._workload))

    def _parameter(self, dims: tuple[str, ...]) -> tuple[int, ...]:
        found: list[int] = []
        for each in dims:
            said = self._module.plain(ast.parse(each, mode="eval").body)
            for size in said if isinstance(said, tuple) else (said,):
                if not isinstance(size, int):
                    raise NotRecognised(f"rules cannot tell the size `{each}`")
                found.append(size)
        return tuple(found)

    def _argument(self, path: str, shape: tuple[object, ...]) -> Factor:
        sizes = tuple(each for each in shape if isinstance(each, int))
        if 0 in sizes or len(sizes) != len(shape):
            raise NotRecognised(f"rules cannot tell the size of {path}")
        known = {each.path: each for each in self._arguments.values()}
        if path not in known:
            known[path] = Argument(
                name=f"arg{len(self._arguments)}", path=path, shape=sizes, stride=dense(sizes),
                dtype=self._dtype,
            )  # fmt: skip
            self._arguments[known[path].name] = known[path]
        return Factor(name=known[path].name, shape=sizes, stride=dense(sizes))

    def _input(self, name: str) -> tuple[tuple[str, ...] | float | None, ast.expr]:
        """The form of an input, and what makes it."""
        made = list(zip(self._module.inputs(), self._module.makers(), strict=True))
        names = [each.text for each in self._traced.inputs]
        if len(made) != len(names):
            raise NotRecognised("rules cannot tell which inputs get_inputs() makes")
        if name not in names:
            raise NotRecognised(f"{name} is computed in between: rules know products of inputs")
        return made[names.index(name)]

    def _number(self, expr: Expr) -> float | None:
        """An input that is a plain number."""
        found, _ = self._input(expr.text)
        if not isinstance(found, int | float):
            return None
        self._conditions[self._given[expr.text]] = repr(found)
        return float(found)

    def _triangle(self, lowering: Lowering, expr: Expr) -> int:
        """``tril`` and ``triu``: an element's place says whether it stays."""
        inner, *rest = expr.args
        given = dict(expr.settings)
        by = plain_of(rest[0] if rest else given.get("diagonal", 0))
        if len(rest) > 1 or set(given) - {"diagonal"} or not isinstance(by, int):
            raise NotRecognised(f"rules do not know these arguments of {expr.op}")
        if not isinstance(inner, Expr):
            raise NotRecognised(f"rules do not know {expr.op} of this")
        value, build = lowering.lower(inner), lowering.build
        text = f"{_KEPT} {'>=' if expr.op == 'tril' else '<='} {by}"
        kept = build.add(Node(kind=Kind.INPUT, text=text, shape=Shape.FULL))
        return build.select(kept, value, build.constant(0.0))

    def _batch_norm(self, lowering: Lowering, expr: Expr) -> int:
        """By running statistics, of a matrix of features."""
        size = plain_of(expr.setting("num_features"))
        eps = plain_of(expr.setting("eps", 1e-5))
        affine = plain_of(expr.setting("affine", True)) is not False
        tracked = plain_of(expr.setting("track_running_stats", True)) is not False
        if self._module.task.training or not tracked or len(expr.args) != 1:
            raise NotRecognised("rules know batch norm with running statistics")
        value = lowering.lower(expr.args[0]) if isinstance(expr.args[0], Expr) else None
        known = isinstance(eps, float) and isinstance(size, int)
        if value is None or not known or self._factors is None or len(self._factors.shape) != 2:
            raise NotRecognised("rules know batch norm of a matrix here")
        self._conditions |= {f"{expr.text}.training": "False", f"{expr.text}.eps": repr(eps)}
        build = lowering.build

        def held(name: str) -> int:
            return self._node(lowering, self._argument(f"{expr.text}.{name}", (size,)).name)

        spread = build.binary("add", held("running_var"), build.constant(float(str(eps))))
        scale = build.unary("rsqrt", spread)
        if affine:
            scale = build.binary("mul", scale, held("weight"))
        made = build.binary("mul", build.binary("sub", value, held("running_mean")), scale)
        return build.binary("add", made, held("bias")) if affine else made

    def _behind(self, read: _Read) -> tuple[Kernel, tuple[Operand, ...]]:
        """What follows the product as one pointwise kernel, in the compiler's manner."""
        out, dtype = read.factors.shape, self._dtype
        count = math.prod(out)
        names = dict.fromkeys(read.tensors.values())
        pointers = {name: f"in_ptr{number}" for number, name in enumerate(names)}
        lines, given = ["x0 = xindex"], {}
        cast = "" if dtype == "float32" else ".to(tl.float32)"
        for number, node in enumerate(read.nodes):
            if node.kind is not Kind.INPUT:
                continue
            given[number] = f"tmp{number}"
            if node.text == _PRODUCT:
                lines.append(f"tmp{number} = tl.load(in_out_ptr0 + (x0), xmask){cast}")
            elif node.text.startswith(_KEPT):
                _, sign, by = node.text.split()
                rows, columns = f"x{2 * number + 1}", f"x{2 * number + 2}"
                lines += [f"{rows} = xindex // {out[-1]} % {out[-2]}",
                          f"{columns} = xindex % {out[-1]}",
                          f"tmp{number} = {rows} + {by} {'>=' if sign == '>=' else '<='} "
                          f"{columns}"]  # fmt: skip
            else:
                argument = self._arguments[node.text]
                assert argument.shape is not None
                place = _place(argument.shape, out)
                at = "0"
                if place:
                    at = f"x{2 * number + 1}"
                    lines.append(f"{at} = {place}")
                pointer = pointers[node.text]
                load = f"tl.load({pointer} + ({at}){', xmask' if place else ''}){cast}"
                lines.append(f"tmp{number} = {load}")
        texts = Texts(read.nodes, given, cpp=False)
        lines += [re.sub(r"\b[vs](\d+)\b", r"tmp\1", each) for each in texts.lines([read.output])]
        last = re.sub(r"\b[vs](\d+)\b", r"tmp\1", texts.name(read.output))
        lines.append(f"tl.store(in_out_ptr0 + (x0), {last}, xmask)")
        parameters = ["in_out_ptr0", *pointers.values()]
        kernel = Kernel(
            name="behind", text=_pointwise(parameters, count, lines), schedule="pointwise",
            sizes=(("x", count),), blocks=("XBLOCK",), grid="Grid1D",
            defaults=(("XBLOCK", 1024), ("num_warps", 4)),
            types=(*((each, _TYPES[dtype]) for each in parameters), ("xnumel", "i32"),
                   ("XBLOCK", "constexpr")),
        )  # fmt: skip
        return kernel, (Named(name="buf0"), *(Named(name=each) for each in pointers), count)


def _pointwise(parameters: list[str], count: int, lines: list[str]) -> str:
    return "\n".join([
        "@triton.jit",
        f"def behind({', '.join(parameters)}, xnumel, XBLOCK: tl.constexpr):",
        f"    xnumel = {count}",
        f"    xoffset = tl.program_id(0){'.to(tl.int64)' if count >= 1 << 31 else ''} * XBLOCK",
        "    xindex = xoffset + tl.arange(0, XBLOCK)",
        "    xmask = xindex < xnumel",
        *(f"    {each}" for each in lines),
    ])  # fmt: skip


def _place(shape: tuple[int, ...], out: tuple[int, ...]) -> str:
    """Where an element of a tensor that broadcasts lies, by the result's flat index.

    Raises:
        NotRecognised: It does not broadcast into the result.
    """
    if len(shape) > len(out) or any(
        a not in (1, b) for a, b in zip(shape[::-1], out[::-1], strict=False)
    ):
        raise NotRecognised("rules know what broadcasts into a product, not the other way round")
    if shape == out:
        return "xindex"
    if math.prod(shape) == 1:
        return ""
    terms: list[str] = []
    strides = dense(shape)
    for back in range(1, len(shape) + 1):
        size, by = shape[-back], strides[-back]
        if size == 1:
            continue
        inner = math.prod(out[len(out) - back + 1 :])
        text = "xindex" if inner == 1 else f"xindex // {inner}"
        if back < len(out):
            text += f" % {size}"
        terms.insert(0, text if by == 1 else f"{text} * {by}")
    return terms[0] if len(terms) == 1 else " + ".join(f"({each})" for each in terms)


def _all(given: object, value: int) -> bool:
    """Whether a setting is this number, in every dimension."""
    several = given if isinstance(given, tuple) else (given,)
    return all(type(each) is int and each == value for each in several)


def _lays_anew(maker: ast.expr) -> bool:
    """Whether an input may lie otherwise than row by row."""
    return any(
        isinstance(each, ast.Attribute) and each.attr in _LAYS_ANEW
        for each in ast.walk(maker.func if isinstance(maker, ast.Call) else maker)
        if not isinstance(maker, ast.BinOp)
    )


def _inside(value: Value) -> Iterator[Expr]:
    """All expressions of one."""
    if isinstance(value, Expr):
        yield value
        for each in (*value.args, *(given for _, given in value.settings)):
            yield from _inside(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from _inside(each)
