"""From recorded calls to the graph."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.rewrite import names
from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import FLOATS, NONE, Arena, Dims, Value
from kernelsmith.propose.rules.rewrite.known import FUNCTIONS, Otherwise, dims


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """One workload of a task: its graph, and what it was traced for."""

    roots: tuple[int, ...]
    returns: str
    """``Tensor``, ``tuple`` or ``list``."""
    arguments: tuple[tuple[str, Value, Dims | None, str], ...]
    """Name, value if it is no tensor, shape, dtype."""
    init: tuple[tuple[str, Value], ...]


def read_graph(arena: Arena, reply: Mapping[str, Any]) -> Traced:
    """Make the nodes of a traced forward pass.

    Raises:
        NotRecognised: A constructor argument or input is no plain value.
    """
    reader = _Reader(Build(arena), reply["tensors"])
    for number, tensor in enumerate(reply["tensors"]):
        shape, dtype = tuple(tensor["shape"]), tensor["dtype"]
        if "input" in tensor:
            reader.nodes[number] = reader.build.input(tensor["input"], shape, dtype)
        elif "weight" in tensor:
            reader.nodes[number] = reader.build.weight(tensor["weight"], shape, dtype)
    for call in reply["calls"]:
        reader.read(call)
    arguments: list[tuple[str, Value, Dims | None, str]] = []
    for name, said in reply["arguments"]:
        if isinstance(said, dict) and "ref" in said:
            tensor = reply["tensors"][said["ref"]]
            arguments.append((name, None, tuple(tensor["shape"]), tensor["dtype"]))
        else:
            arguments.append((name, _plain(said), None, ""))
    return Traced(
        roots=tuple(reader.nodes[each] for each in reply["outputs"]), returns=reply["returns"],
        arguments=tuple(arguments), init=tuple((n, _plain(v)) for n, v in reply["init"]),
    )  # fmt: skip


def _plain(said: Any) -> Value:
    match said:
        case {"tuple": items} | {"list": items}:
            return ("list" if "list" in said else "tuple", *[_plain(each) for each in items])
        case {"float": text}:
            return float(text)
        case dict():
            raise NotRecognised("rules rewrite only tasks whose arguments are plain values")
    assert said is None or isinstance(said, bool | int | float | str)
    return said


_PACKED = {"float64": "d", "float32": "f", "float16": "e"}


@dataclass(slots=True)
class _Reader:
    build: Build
    tensors: list[dict[str, Any]]
    nodes: dict[int, int] = field(default_factory=dict)
    scalars: dict[int, int] = field(default_factory=dict)
    """Numbers that were made tensors, as such: for functions that take no numbers."""

    def read(self, call: dict[str, Any]) -> list[int]:
        """Add one call; answer with its results' nodes."""
        out = call["out"]
        try:
            if isinstance(out, dict) and "ref" in out:
                if (number := self._scalar(call)) is not None:
                    self._called(call, out)
                    self.scalars[out["ref"]] = self.nodes[out["ref"]]
                    self.nodes[out["ref"]] = number
                    return []
                number = self._known(call)
                want = self.tensors[out["ref"]]
                node = self.build.arena[number]
                if (node.shape, node.dtype) != (tuple(want["shape"]), want["dtype"]):
                    raise Otherwise
                self.nodes[out["ref"]] = number
                return [number]
            return self._several(call, out)
        except (Otherwise, KeyError, ValueError, AssertionError, IndexError, ArithmeticError,
                struct.error):  # fmt: skip
            return self._called(call, out)

    def _scalar(self, call: dict[str, Any]) -> int | None:
        """A number that was made a tensor without dimensions gives way to any other dtype."""
        data = call["args"][0] if call["args"] else None
        floating = self.tensors[call["out"]["ref"]]["dtype"] in FLOATS
        if call["name"] != "torch.tensor" or not isinstance(data, int | float) or not floating:
            return None
        kind = self.tensors[call["out"]["ref"]]["dtype"]
        if kind not in _PACKED:
            return None
        # the number that the tensor holds: 0.1 in float32 is another one than in float64
        return self.build.number(*struct.unpack(_PACKED[kind], struct.pack(_PACKED[kind], data)))

    def _several(self, call: dict[str, Any], out: Any) -> list[int]:
        """``max`` and ``min`` over a dimension give values and positions."""
        if call["name"].rpartition(".")[2] not in ("max", "min"):
            raise Otherwise
        refs = [each["ref"] for each in next(iter(out.values()))]
        if len(refs) != 2:
            raise Otherwise
        value = self._reduction(call, names.REDUCTIONS[call["name"]])
        # Positions are made by the call itself; dead code if nobody asks for them.
        called = self._called(call, out)
        self.nodes[refs[0]] = value
        return [value, called[1]]

    def _called(self, call: dict[str, Any], out: Any) -> list[int]:
        inputs: list[int] = []
        form: Value = (
            ("args", *[self._form(each, inputs) for each in call["args"]]),
            ("kwargs", *self._named(call["kwargs"], inputs)),
        )
        if isinstance(out, dict) and "ref" in out:
            want = self.tensors[out["ref"]]
            number = self.build.call(call["name"], tuple(inputs), form, tuple(want["shape"]),
                                     want["dtype"])  # fmt: skip
            self.nodes[out["ref"]] = number
            return [number]
        if not isinstance(out, dict):
            raise NotRecognised(f"rules do not know the result of {call['name']}")
        whole = self.build.call(call["name"], tuple(inputs), form, (), "several")
        made = []
        for index, each in enumerate(next(iter(out.values()))):
            if not (isinstance(each, dict) and "ref" in each):
                continue
            want = self.tensors[each["ref"]]
            number = self.build.item(whole, index, tuple(want["shape"]), want["dtype"])
            self.nodes[each["ref"]] = number
            made.append(number)
        return made

    def _named(self, kwargs: dict[str, Any], inputs: list[int]) -> list[Value]:
        return [(key, self._form(said, inputs)) for key, said in kwargs.items()]

    def _form(self, said: Any, inputs: list[int]) -> Value:
        match said:
            case {"ref": number}:
                inputs.append(self.scalars.get(number, self.nodes[number]))
                return ("node", len(inputs) - 1)
            case {"tuple": items}:
                return ("tuple", *[self._form(each, inputs) for each in items])
            case {"list": items}:
                return ("list", *[self._form(each, inputs) for each in items])
            case {"slice": items}:
                return ("slice", *[self._form(each, inputs) for each in items])
            case {"dtype": name}:
                return ("dtype", name)
            case {"device": _}:
                return ("device",)
            case {"layout": name}:
                return ("layout", name)
            case {"ellipsis": _}:
                return ("ellipsis",)
            case {"float": text}:
                return ("float", text)
        return ("value", said)

    def node(self, said: Any) -> int:
        """The node of a tensor or number."""
        match said:
            case {"ref": number}:
                return self.nodes[number]
            case bool():
                raise Otherwise
            case int() | float():
                return self.build.number(said)
        raise Otherwise

    def optional(self, said: Any) -> int:
        """The same, or ``NONE``."""
        return NONE if said is None else self.node(said)

    def _known(self, call: dict[str, Any]) -> int:
        name, args, kwargs = call["name"], call["args"], call["kwargs"]
        want = self.tensors[call["out"]["ref"]]
        if want["dtype"] not in FLOATS:
            raise Otherwise
        if name in names.SAME:
            return self.node(args[0])
        if name in names.SHAPED:
            return self.build.reshape(self.node(args[0]), tuple(want["shape"]))
        if name in names.UNARY and len(args) == 1 and set(kwargs) <= {"inplace"}:
            return self.build.unary(names.UNARY[name], self.node(args[0]))
        if name in names.BINARY and len(args) == 2 and not kwargs and _is_elementwise(name, args):
            return self._binary(names.BINARY[name], args[0], args[1])
        if name in names.REVERSED and len(args) == 2 and not kwargs:
            return self._binary(names.REVERSED[name], args[1], args[0])
        if name in names.REDUCTIONS:
            return self._reduction(call, names.REDUCTIONS[name])
        if name in ("torch.permute", "torch.Tensor.permute"):
            return self._permute(args, kwargs)
        if name in ("torch.Tensor.expand", "torch.Tensor.expand_as"):
            return self.build.expand(self.node(args[0]), tuple(want["shape"]))
        short = name.rpartition(".")[2]
        functional = name.startswith("torch.nn.functional.")
        order = names.FUNCTIONAL.get(short) if functional else names.OTHERS.get(name)
        if order is None:
            raise Otherwise
        given = dict(zip(order, args, strict=False)) | kwargs
        if len(args) > len(order):
            raise Otherwise
        return FUNCTIONS[short if short != "__get__" else name.split(".")[2]](self, given)

    def _binary(self, op: str, a: Any, b: Any) -> int:
        left, right = self.node(a), self.node(b)
        kinds = {self.build.arena[each].dtype for each in (left, right)} - {"number"}
        if len(kinds) != 1 or not kinds <= FLOATS:
            raise Otherwise
        if op in ("maximum", "minimum"):
            for x, y in ((left, right), (right, left)):
                if self.build.arena[y].op == "number":
                    bound = self.build.arena[y].number()
                    return self.build.clamp(
                        x, *((bound, None) if op == "maximum" else (None, bound))
                    )
        return self.build.binary(op, left, right)

    def _reduction(self, call: dict[str, Any], op: str) -> int:
        order = ("input", "dim", "keepdim")
        given = dict(zip(order, call["args"], strict=False)) | call["kwargs"]
        if set(given) - set(order) or len(call["args"]) > 3:
            raise Otherwise
        x = self.node(given["input"])
        shape = self.build.arena.shape(x)
        dim = given.get("dim")
        over = dims(dim) if dim is not None else tuple(range(len(shape)))
        if dim is not None and not over:  # an empty list means all of them, in most functions
            raise Otherwise
        if not shape or 0 in shape or len({d % len(shape) for d in over}) != len(over):
            raise Otherwise
        return self.build.reduce(op, x, over, keep=bool(given.get("keepdim", False)))

    def _permute(self, args: list[Any], kwargs: dict[str, Any]) -> int:
        x = self.node(args[0])
        rank = len(self.build.arena.shape(x))
        order = dims(kwargs["dims"] if "dims" in kwargs else
                     args[1] if isinstance(args[1], dict) else {"tuple": args[1:]})  # fmt: skip
        return self.build.permute(x, tuple(d % rank for d in order))


def _is_elementwise(name: str, args: list[Any]) -> bool:
    """``max(x, 1)`` is a reduction over dimension 1; ``max(x, y)`` is not."""
    return not name.endswith((".max", ".min")) or (isinstance(args[1], dict) and "ref" in args[1])
