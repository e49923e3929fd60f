"""What may run twice: a kernel that does not fit hands over to the reference, which begins anew.

Whatever stands before the kernel has run by then. So it must not change a tensor that somebody else
holds, draw at random, count, or keep what it was given.
"""

import ast
from typing import TYPE_CHECKING

from kernelsmith.propose.rules.constants import bound
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.idle import DROPOUTS, HAND_ON, undropped

if TYPE_CHECKING:
    from kernelsmith.propose.rules.kinds.straight import Place

_IN_PLACE = {
    **dict.fromkeys(("relu", "relu6", "silu", "mish", "selu", "hardswish", "hardsigmoid"), 1),
    **dict.fromkeys(("leaky_relu", "elu", "celu"), 2),
    "hardtanh": 3, "threshold": 3, "rrelu": 4,
}  # fmt: skip
"""Which argument says that a function changes the one before it; a layer's is one place earlier."""
_LAYERS = {
    "ReLU": "relu", "ReLU6": "relu6", "SiLU": "silu", "Mish": "mish", "SELU": "selu",
    "Hardswish": "hardswish", "Hardsigmoid": "hardsigmoid", "LeakyReLU": "leaky_relu",
    "ELU": "elu", "CELU": "celu", "Hardtanh": "hardtanh", "Threshold": "threshold",
    "RReLU": "rrelu",
}  # fmt: skip
_DRAWS = {
    "bernoulli", "gumbel_softmax", "manual_seed", "multinomial", "normal", "poisson", "rand",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "rrelu", "seed",
}  # fmt: skip
_COUNTS = ("BatchNorm", "InstanceNorm", "SyncBatchNorm", "LazyBatchNorm", "LazyInstanceNorm")
_GIVEN = {"append", "extend", "insert", "pop", "popitem", "remove", "clear", "update",
          "setdefault"}  # fmt: skip
"""What puts something into a list or a dictionary, or takes it out."""
_BUILT_IN = {
    "abs", "all", "any", "bool", "dict", "enumerate", "float", "getattr", "hasattr", "int",
    "isinstance", "len", "list", "max", "min", "pow", "print", "range", "reversed", "round", "set",
    "sorted", "sum", "tuple", "type", "zip",
}  # fmt: skip
_WHY = "rules do not cut a forward that changes tensors in place, draws at random or keeps count"


def check(
    place: "Place", at: int, part: ast.expr | None = None, within: frozenset[str] = frozenset()
) -> None:
    """See that running the reference from the start is no different after some statements.

    Args:
        place: A class or function of the file.
        at: How many of its statements run before.
        part: What is cut out of the next one; what it is made of may be evaluated before, too.
        within: Classes and functions that this is looked at for.

    Raises:
        NotRecognised: They change something, or it cannot be told.
    """
    reader = _Reader(place, within | {place.name})
    for index, statement in enumerate(place.body[:at]):
        for node in ast.walk(statement):
            if reader.changes(node) and not (node is statement and reader.is_own(index)):
                raise NotRecognised(_WHY)
    if part is not None and any(map(reader.changes, ast.walk(part))):
        raise NotRecognised(_WHY)


class _Reader:
    def __init__(self, place: "Place", within: frozenset[str]) -> None:
        self._place, self._within = place, within
        self._module = place.module
        arguments = {each.arg for each in place.function.args.args}
        self._local = set[str]().union(*map(bound, place.body)) - arguments

    def changes(self, node: ast.AST) -> bool:
        """Whether a node may change what outlives the call, or a tensor that others hold, too."""
        match node:
            case ast.AugAssign() | ast.Global() | ast.Nonlocal() | ast.Delete():
                return True
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                return True
            case ast.Call():
                return any(_asks(each) for each in node.keywords) or self._called(node)
        return False

    def is_own(self, index: int) -> bool:
        """Whether ``name += ...`` changes what nobody but this name has held since it was made."""
        body = self._place.body
        statement = body[index]
        if not isinstance(statement, ast.AugAssign) or not isinstance(statement.target, ast.Name):
            return False
        name = statement.target.id
        if name in read(statement.value):
            return False
        for before in range(index - 1, -1, -1):
            match body[before]:
                case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                    return isinstance(value, ast.BinOp | ast.Constant)
                case ast.AugAssign(target=ast.Name(id=found)) if found == name:
                    return self.is_own(before)
            if name in bound(body[before]) | read(body[before]):
                return False
        return False

    def _called(self, node: ast.Call) -> bool:
        func = node.func
        dotted = self._module.dotted(func)
        if dotted is not None:
            return self._torch(dotted, node)
        match func:
            case ast.Name(id=name):
                return name not in _BUILT_IN and self._within_file(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return self._own_method(func, name)
            case ast.Attribute(value=value, attr=name):
                if name.endswith("_") and not name.endswith("__"):
                    return True
                # What a list or a dictionary of somebody else's is given stays in it.
                kept = name in _GIVEN and not (
                    isinstance(value, ast.Name) and value.id in self._local
                )
                return kept or name in _DRAWS
        return True

    def _torch(self, dotted: str, node: ast.Call) -> bool:
        name = dotted.rpartition(".")[2]
        if not dotted.startswith("torch."):
            return dotted.startswith(("random.", "numpy.random."))
        try:
            if undropped(self._module, node) is not None:
                place = node.args[3:4]
                return bool(place) and not _is_off(place[0])
        except NotRecognised:
            return True
        if name in ("batch_norm", "instance_norm") and self._module.task.training:
            return True
        inside = name.endswith("_") and not name.endswith("__")
        at = _IN_PLACE.get(name)
        asked = at is not None and len(node.args) > at and not _is_off(node.args[at])
        return inside or asked or name in _DRAWS or name.startswith(("set_", "manual_"))

    def _own_method(self, func: ast.Attribute, name: str) -> bool:
        made = self._place.made(func)
        if isinstance(made, ast.Call):
            kind = self._module.dotted(made.func)
            if kind is None:
                return isinstance(made.func, ast.Name) and self._within_file(made.func.id)
            return not kind.startswith("torch.nn.") or self._layer(made) or self._stirs(made)
        return self._runs(self._place.method(name))

    def _layer(self, made: ast.Call) -> bool:
        """Whether a layer, or the first one in a sequence that computes, changes its argument."""
        kind = self._kind(made)
        if kind != "Sequential":
            at = _IN_PLACE.get(_LAYERS.get(kind, ""), 2 if kind in DROPOUTS else 0) - 1
            asked = 0 <= at < len(made.args) and not _is_off(made.args[at])
            return asked or any(_asks(each) for each in made.keywords)
        for each in made.args:
            if not isinstance(each, ast.Call):
                return False
            if self._layer(each):
                return True
            if self._kind(each) not in HAND_ON:
                return False
        return False

    def _stirs(self, made: ast.Call) -> bool:
        """Whether a layer, or one in a sequence, draws or counts, as some do in training."""
        if not self._module.task.training:
            return False
        kind = self._kind(made)
        stirs = kind in DROPOUTS or kind == "RReLU" or kind.startswith(_COUNTS)
        return stirs or any(self._stirs(each) for each in made.args if isinstance(each, ast.Call))

    def _kind(self, made: ast.Call) -> str:
        return (self._module.dotted(made.func) or "").removeprefix("torch.nn.")

    def _within_file(self, name: str) -> bool:
        """Whether a class or function of the file, called, does such a thing; unknown: it may."""
        return self._runs(next((each for each in self._place.others() if each.name == name), None))

    def _runs(self, place: "Place | None") -> bool:
        return place is None or (place.name not in self._within and _stirred(place, self._within))


def _stirred(place: "Place", within: frozenset[str]) -> bool:
    try:
        check(place, len(place.body), within=within)
    except NotRecognised:
        return True
    return False


def _asks(keyword: ast.keyword) -> bool:
    """``inplace=True``, or ``out=`` something."""
    return keyword.arg in ("inplace", "out") and not _is_off(keyword.value)


def _is_off(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and not value.value


def read(node: ast.AST) -> set[str]:
    """Names whose values it asks for."""
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }
