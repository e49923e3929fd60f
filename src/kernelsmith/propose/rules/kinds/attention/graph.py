"""Attention as a task writes it: which tensors, what is done to the scores, what is masked."""

import ast
from dataclasses import dataclass, field

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds.straight import Cut, Place, Seen

_PRODUCTS = ("matmul", "bmm")
_CASTS = ("float", "type_as", "to", "contiguous")


@dataclass(slots=True)
class Attention:
    """``weigh(q @ k * scale + bias, masked) @ v``; texts are Python of ``forward``."""

    q: str = ""
    k: str = ""
    """Already turned: depth by keys."""
    v: str = ""
    weigh: str = "softmax"
    """``softmax``, ``relu`` or ``sigmoid`` of the scores."""
    scale: list[str] = field(default_factory=list)
    """Factors: ``* 2.0`` or ``/ math.sqrt(d)``."""
    bias: str = ""
    mask: str = ""
    """True where a score is replaced by ``fill``."""
    fill: str = ""
    causal: bool = False
    conditions: list[str] = field(default_factory=list)
    """When it must be left to the reference."""
    call: str = ""
    """A call of a helper that does it all, instead of the above."""

    @property
    def features(self) -> frozenset[str]:
        """What the kernel must be able to do."""
        found = {self.weigh}
        found |= {"causal"} if self.causal else set()
        found |= {"bias"} if self.bias else set()
        found |= {"mask"} if self.mask else set()
        return frozenset(found)


def find(place: Place) -> list[tuple[Cut, Attention]]:
    """Every attention in a ``forward``, with what takes its place."""
    found: list[tuple[Cut, Attention]] = []
    reasons: list[str] = []
    for at, statement in enumerate(place.body):
        if not isinstance(statement, ast.Assign | ast.Return | ast.Expr):
            continue
        for node in ast.walk(statement):
            if not isinstance(node, ast.expr):
                continue
            try:
                read = _at(place, node, at)
            except NotRecognised as error:
                reasons.append(str(error))
                continue
            if read is not None:
                place.check_pure(at, node)
                cut = _cut(place, read, node, at, len(found))
                _check_gone(place, node, at, cut)
                found.append((cut, read))
    if not found and reasons:
        raise NotRecognised(reasons[0])
    return found


def _at(place: Place, node: ast.expr, at: int) -> Attention | None:
    called = place.called(node)
    if called is not None and called[0] == "scaled_dot_product_attention":
        return _library(place, node, at)
    if called is not None and called[0] == "nn.MultiheadAttention":
        return _multihead(place, node, at)
    operands = _product(place, node)
    if operands is None:
        return None
    weights = Weights(place, at)
    if not weights.read(Seen(operands[0], at)):
        return None
    weights.found.v = place.text(Seen(operands[1], at), at)
    return weights.found


def _check_gone(place: Place, node: ast.expr, at: int, cut: Cut) -> None:
    """See that nobody else reads the weights: computing them besides would gain nothing."""
    operands = _product(place, node)
    if operands is None or not isinstance(operands[0], ast.Name):
        return
    made = place.body[place.seen(operands[0], at).at]
    if ast.unparse(made) in place.rewritten([cut]):
        raise NotRecognised("rules know attention whose weights nobody else reads")


def _product(place: Place, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right
    called = place.called(node)
    if called is not None and called[0] in _PRODUCTS and len(called[1]) == 2 and not called[2]:
        return called[1][0], called[1][1]
    return None


class Weights:
    """Reads the weights of an attention backwards, from ``softmax`` to the product of q and k."""

    def __init__(self, place: Place, at: int) -> None:
        self.found = Attention()
        self._place = place
        self._at = at

    def read(self, seen: Seen) -> bool:
        """Whether this is a softmax (or the like) of scores."""
        seen = self._through(seen)
        called = self._place.called(seen.node)
        if called is None:
            return False
        name, args, keywords = called
        if name in ("nn.Softmax", "nn.ReLU", "nn.Sigmoid"):
            made = self._place.made(_layer(seen.node))
            assert isinstance(made, ast.Call)
            keywords = {each.arg: each.value for each in made.keywords if each.arg}
            args = [*args, *made.args] if name == "nn.Softmax" else args
            name = name[3:].lower()
        if name not in ("softmax", "relu", "sigmoid") or not args:
            return False
        if name == "softmax" and not self._last(args[1:], keywords):
            raise NotRecognised("rules know a softmax over keys: the last dimension")
        self.found.weigh = name
        return self._scores(Seen(args[0], seen.at))

    def _last(self, args: list[ast.expr], keywords: dict[str, ast.expr]) -> bool:
        dim = args[0] if args else keywords.get("dim")
        try:
            value = ast.literal_eval(dim) if dim is not None else None
        except ValueError:
            return False
        if isinstance(value, int) and value > 0:
            self.found.conditions.append(f"({{q}}).dim() != {value + 1}")
            return True
        return value == -1

    def _through(self, seen: Seen) -> Seen:
        """Past names, casts and dropout that does nothing."""
        while True:
            seen = self._place.seen(seen.node, seen.at)
            called = self._place.called(seen.node)
            if called is None or not called[1]:
                return seen
            name, args, keywords = called
            if name == "nn.Dropout":
                path = ast.unparse(_layer(seen.node))
                self.found.conditions.append(f"{path}.training and {path}.p > 0")
            elif name == "dropout":
                given = dict(zip(("p", "training"), args[1:], strict=False)) | keywords
                if "training" not in given:
                    raise NotRecognised("rules do not know attention with dropout")
                self.found.conditions.append(ast.unparse(given["training"]))
            elif name not in _CASTS:
                return seen
            seen = Seen(args[0], seen.at)

    def _scores(self, seen: Seen) -> bool:
        seen = self._through(seen)
        product = _product(self._place, seen.node)
        if product is not None:
            self.found.q = self._text(Seen(product[0], seen.at))
            self.found.k = self._text(Seen(product[1], seen.at))
            return True
        match seen.node:
            case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
                sign = "*" if isinstance(op, ast.Mult) else "/"
                if self._tried(Seen(left, seen.at)):
                    self._scaled(sign, Seen(right, seen.at))
                    return True
                if sign == "*" and self._tried(Seen(right, seen.at)):
                    self._scaled(sign, Seen(left, seen.at))
                    return True
                return False
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                for inner, other in ((left, right), (right, left)):
                    if self._tried(Seen(inner, seen.at)):
                        return self._added(Seen(other, seen.at))
                return False
        called = self._place.called(seen.node)
        if called is None:
            return False
        name, args, keywords = called
        plain = len(args) == 2 and not keywords
        if name in ("mul", "div") and plain and self._tried(Seen(args[0], seen.at)):
            self._scaled("*" if name == "mul" else "/", Seen(args[1], seen.at))
            return True
        if name == "masked_fill":
            given = dict(zip(("input", "mask", "value"), args, strict=False)) | keywords
            if set(given) == {"input", "mask", "value"}:
                mask, value = Seen(given["mask"], seen.at), Seen(given["value"], seen.at)
                return self._tried(Seen(given["input"], seen.at)) and self._masked(
                    mask, value, keep=False
                )
        if name == "where" and len(args) == 3:
            return self._tried(Seen(args[1], seen.at)) and self._masked(
                Seen(args[0], seen.at), Seen(args[2], seen.at), keep=True)  # fmt: skip
        return False

    def _tried(self, seen: Seen) -> bool:
        return self._scores(seen)

    def _text(self, seen: Seen) -> str:
        """Names stay where they still stand for the same; else what they stood for is taken."""
        try:
            return self._place.text(seen, self._at)
        except NotRecognised:
            deeper = self._place.seen(seen.node, seen.at)
            if deeper == seen:
                raise
            return self._text(deeper)

    def _scaled(self, sign: str, by: Seen) -> None:
        if self.found.bias or self.found.mask or self.found.causal:
            raise NotRecognised("rules know scores that are scaled before anything is added")
        self.found.scale.append(f"{sign} ({self._text(by)})")

    def _added(self, other: Seen) -> bool:
        if _causal(self._place, other, added=True):
            self.found.causal = True
            self.found.conditions.append(_SQUARE)
            return True
        if self.found.bias or self.found.mask:
            raise NotRecognised("rules know one bias, added before scores are masked")
        self.found.bias = self._text(other)
        return True

    def _masked(self, mask: Seen, value: Seen, *, keep: bool) -> bool:
        fill = self._text(value)
        endless = _endless(self._place, self._place.seen(value.node, value.at).node)
        if endless and not keep and _causal(self._place, mask, added=False):
            self.found.causal = True
            self.found.conditions.append(_SQUARE)
            return True
        if self.found.mask:
            raise NotRecognised("rules know one mask")
        text = self._text(mask)
        self.found.mask = f"torch.logical_not({text})" if keep else text
        self.found.fill = fill
        return True


_SQUARE = "{q}.shape[-2] != {v}.shape[-2]"
"""A mask as long as it is wide means something else for fewer queries than keys."""


def _layer(node: ast.expr) -> ast.expr:
    assert isinstance(node, ast.Call)
    return node.func


def _endless(place: Place, node: ast.expr) -> bool:
    """Whether a value is minus infinity."""
    text = ast.unparse(node).replace('"', "'")
    if text in ("float('-inf')", "-float('inf')"):
        return True
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return place.module.dotted(operand) in ("math.inf", "torch.inf")
    return False


def _causal(place: Place, seen: Seen, *, added: bool) -> bool:
    """Whether this masks exactly what lies ahead: columns above the diagonal.

    Only of what is written out in ``forward``: a buffer may hold something else by now.
    """
    seen = place.seen(seen.node, seen.at)
    match seen.node:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=0 | False)]):
            return not added and _triangle(place, Seen(left, seen.at), "tril", ("ones",))
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return not added and _triangle(place, Seen(operand, seen.at), "tril", ("ones",))
    called = place.called(seen.node)
    if called is not None and called[0] == "logical_not" and called[1]:
        return not added and _triangle(place, Seen(called[1][0], seen.at), "tril", ("ones",))
    return _triangle(place, seen, "triu", ("full",) if added else ("ones",))


def _triangle(place: Place, seen: Seen, half: str, makers: tuple[str, ...]) -> bool:
    seen = place.seen(seen.node, seen.at)
    called = place.called(seen.node)
    if called is None or not called[1]:
        return False
    name, args, keywords = called
    if name in ("bool", "to", "view", "unsqueeze"):
        return _triangle(place, Seen(args[0], seen.at), half, makers)
    given = dict(zip(("x", "diagonal"), args, strict=False)) | keywords
    diagonal = ast.unparse(given["diagonal"]) if "diagonal" in given else "0"
    if name != half or diagonal != ("1" if half == "triu" else "0"):
        return False
    inner = place.seen(args[0], seen.at)
    made = place.called(inner.node)
    if made is None or made[0] not in makers:
        return False
    if made[0] == "full":
        fill = made[1][1] if len(made[1]) > 1 else made[2].get("fill_value")
        return fill is not None and _endless(place, fill)
    return True


def _library(place: Place, node: ast.expr, at: int) -> Attention:
    called = place.called(node)
    assert called is not None
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
    given = dict(zip(names, called[1], strict=False)) | called[2]
    if not {"query", "key", "value"} <= set(given) or not set(given) <= set(names):
        raise NotRecognised("rules do not know these arguments of scaled_dot_product_attention")
    texts = {name: place.text(Seen(value, at), at) for name, value in given.items()}
    found = Attention()
    causal = texts.pop("is_causal", "False")
    if causal not in ("True", "False"):
        raise NotRecognised("rules must know whether attention is causal")
    found.causal = causal == "True"
    dropout = texts.pop("dropout_p", "0.0")
    if dropout not in ("0.0", "0"):
        found.conditions.append(f"({dropout}) != 0")
    q, k, v = (texts.pop(each) for each in names[:3])
    if "attn_mask" in texts and texts["attn_mask"] != "None":
        # A mask of truth values or of numbers, as it comes.
        found.bias = texts["attn_mask"]
    found.q, found.k, found.v = q, f"({k}).transpose(-2, -1)", v
    more = "".join(f", {name}={text}" for name, text in texts.items() if name != "attn_mask")
    bias = f", attn_mask={found.bias}" if found.bias else ""
    found.call = f"library_attention({q}, {k}, {v}{bias}{more})"
    return found


def _multihead(place: Place, node: ast.expr, at: int) -> Attention:
    """``self.attn(q, k, v)`` whose second result nobody takes."""
    called = place.called(node)
    assert called is not None
    _, args, keywords = called
    given = dict(zip(("query", "key", "value"), args, strict=False)) | keywords
    need = given.pop("need_weights", None)
    if set(given) != {"query", "key", "value"}:
        raise NotRecognised("rules know nn.MultiheadAttention without masks")
    unused = need is not None and ast.unparse(need) == "False"
    if not unused and not _first_only(place, node, at):
        raise NotRecognised("rules know nn.MultiheadAttention whose weights nobody takes")
    path = ast.unparse(_layer(node))
    texts = [place.text(Seen(given[name], at), at) for name in ("query", "key", "value")]
    found = Attention(call=f"multihead({path}, {', '.join(texts)})")
    found.q, found.k, found.v = texts
    return found


def _first_only(place: Place, node: ast.expr, at: int) -> bool:
    match place.body[at]:
        case ast.Assign(targets=[ast.Tuple(elts=[_, ast.Name(id=name)])], value=value):
            if value is node:
                later = {
                    each.id
                    for statement in place.body[at + 1 :]
                    for each in ast.walk(statement)
                    if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
                }
                return name not in later
    for each in ast.walk(place.body[at]):
        match each:
            case ast.Subscript(value=value, slice=ast.Constant(value=0)) if value is node:
                return True
    return False


def _cut(place: Place, read: Attention, node: ast.expr, at: int, number: int) -> Cut:
    name = f"attended_{number + 1}" if number else "attended"
    if read.call:
        call = read.call
    else:
        scale = " ".join(["1.0", *read.scale])
        call = f"attend({read.q}, {read.k}, {read.v}, scale={scale}"
        call += f", bias={read.bias}" if read.bias else ""
        call += f", mask={read.mask}, fill={read.fill}" if read.mask else ""
        call += ")"
    lines = [f"{name} = {call}"]
    test = [each.format(q=read.q, v=read.v) for each in dict.fromkeys(read.conditions)]
    if test:
        lines.insert(0, f"if {' or '.join(test)}:\n    return {{plain}}")
    lines.append(f"if {name} is None:\n    return {{plain}}")
    if read.call.startswith("multihead"):
        lines.append(f"{name} = ({name}, None)")
    return Cut(at=at, node=node, name=name, lines=tuple(lines))
