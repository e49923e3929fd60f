"""Layers and functions that are others in disguise: embeddings, bags, maxima with their places."""

from dataclasses import replace

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds.spread.shapes import given, tensor
from kernelsmith.propose.rules.kinds.trace import Expr, Value, plain_of

_BAGS = {"sum": "sum", "mean": "mean", "max": "amax"}
_TABLE = {"kind", "num_embeddings", "embedding_dim"}
_BAG = "x weight offsets max_norm norm_type scale_grad_by_freq mode sparse per_sample_weights"
_POOLS = {f"adaptive_{name}_pool{n}d": (op, n) for n in (1, 2, 3)
          for name, op in (("avg", "mean"), ("max", "amax"))}  # fmt: skip
_LAYER_POOLS = {name.replace("_", ""): name for name in _POOLS}
_RESTING = ("scale_grad_by_freq", "sparse")
"""Settings that change gradients alone."""


def normal(expr: Expr) -> Expr:
    """The same with look-ups as ``embedding(numbers, table)`` and bags as reductions of them."""
    args = tuple(_inner(each) for each in expr.args)
    settings = tuple((name, _inner(value)) for name, value in expr.settings)
    expr = replace(expr, args=args, settings=settings)
    kind = expr.setting("kind") if expr.op == "layer" else expr.op
    match kind:
        case "Embedding":
            if not {name for name, _ in expr.settings} <= {*_TABLE, "padding_idx", *_RESTING}:
                raise NotRecognised("rules do not know an embedding with norms")
            return Expr("embedding", (tensor(expr.args[0]), _weight(expr)))
        case "embedding":
            b = given(expr, "x weight padding_idx max_norm norm_type scale_grad_by_freq sparse")
            if b.get("max_norm") is not None:
                raise NotRecognised("rules do not know an embedding with norms")
            return Expr("embedding", (tensor(b["x"]), tensor(b["weight"])))
        case str() if kind in _POOLS or kind.lower() in _LAYER_POOLS:
            return _pooled(expr, _LAYER_POOLS.get(kind.lower(), kind))
        case "EmbeddingBag":
            return _bag(expr, expr.settings)
        case "embedding_bag":
            b = given(expr, f"{_BAG} include_last_offset padding_idx")
            rest = tuple((k, v) for k, v in b.items() if k not in ("x", "weight"))
            return _bag(Expr("layer", (b["x"],), rest), rest, tensor(b["weight"]))
        case "item" if expr.args[1] == 0:
            inner = expr.args[0]
            if isinstance(inner, Expr) and inner.op in ("max", "min") and _over(inner):
                return replace(inner, op=f"a{inner.op}")
    return expr


def _pooled(expr: Expr, name: str) -> Expr:
    """An adaptive pool as a reduction of tiles; at call time sizes must be whole multiples."""
    op, ndim = _POOLS[name]
    names = "x output_size return_indices"
    layer = expr.op == "layer"
    settings = tuple((k, v) for k, v in expr.settings if k != "kind")
    b = given(Expr(name, expr.args if not layer else expr.args[:1], settings), names)
    x = tensor(b["x"])
    size = plain_of(b.get("output_size"))
    sizes = size if isinstance(size, tuple) else (size,) * ndim
    whole = [each for each in sizes if type(each) is int and each > 0]
    if plain_of(b.get("return_indices", False)) or len(whole) != ndim or len(sizes) != ndim:
        raise NotRecognised("rules know adaptive pools to sizes that stand in the source")
    if x.op != "input" or x.integer or x.rank != ndim + 2:
        raise NotRecognised("rules know adaptive pools of an input")
    if all(each == 1 for each in whole):
        return Expr(op, (x, tuple(range(2, ndim + 2)), True))
    tiles = Expr("tiled", (x, tuple(whole)))
    return Expr(op, (tiles, tuple(range(3, 2 * ndim + 2, 2))))


def is_pool(expr: Expr) -> bool:
    """Whether an adaptive pool is somewhere in it."""
    kind = str(expr.setting("kind") if expr.op == "layer" else expr.op)
    inner = [each for each in expr.args if isinstance(each, Expr)]
    return kind in _POOLS or kind.lower() in _LAYER_POOLS or any(is_pool(each) for each in inner)


def _inner(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(_inner(each) for each in value)
    return normal(value) if isinstance(value, Expr) else value


def _over(expr: Expr) -> bool:
    dim = expr.setting("dim", expr.args[1] if len(expr.args) > 1 else None)
    return dim is not None and not (isinstance(dim, Expr) and dim.op != "number")


def _weight(layer: Expr) -> Expr:
    sizes = [layer.setting(name) for name in ("num_embeddings", "embedding_dim")]
    dims = tuple(each.text if isinstance(each, Expr) else str(each) for each in sizes)
    return Expr("parameter", text=f"{layer.text}.weight", dims=dims)


def _bag(expr: Expr, settings: tuple[tuple[str, Value], ...], table: Expr | None = None) -> Expr:
    """A bag per row of numbers."""
    held = {name: value for name, value in settings if value is not None and value is not False}
    known = {*_TABLE, "mode", "per_sample_weights", "norm_type", *_RESTING}
    if not set(held) <= known or len(expr.args) != 1:
        raise NotRecognised("rules know bags of equal sizes, without norms, offsets or padding")
    mode = plain_of(held.get("mode", "mean"))
    numbers = tensor(expr.args[0])
    if mode not in _BAGS or numbers.rank != 2:
        raise NotRecognised("rules know bags of equal sizes: their sum, mean or maximum")
    rows = Expr("embedding", (numbers, table or _weight(expr)))
    weights = held.get("per_sample_weights")
    if weights is not None:
        if mode != "sum":
            raise NotRecognised("rules know weights in sums over bags")
        rows = Expr("mul", (rows, Expr("unsqueeze", (tensor(weights), -1))))
    return Expr(_BAGS[str(mode)], (rows, 1))
