"""What one call is expected to take: bytes and operations over the device's peaks."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kernelsmith.propose.rules.chip import Chip
from kernelsmith.propose.rules.products.choose import best_way, expected_us
from kernelsmith.propose.rules.products.product import Product, Triangle
from kernelsmith.propose.rules.rewrite.graph import (
    LEAVES,
    NONE,
    POINTWISE,
    REDUCTIONS,
    VIEWS,
    Arena,
    Node,
    product,
)

_BYTES = {"float64": 8, "int64": 8, "float16": 2, "bfloat16": 2, "int16": 2, "int8": 1,
          "uint8": 1, "bool": 1}  # fmt: skip
_FUSED = POINTWISE | VIEWS | {"batch_norm"}
"""Fused into what reads it: elementwise work, views, and batch norm in eval mode."""
_CONVOLUTIONS = ("conv", "conv_transpose")
_NORMS = {"softmax", "log_softmax", "group_norm", "layer_norm", "instance_norm"}
_COSTLY = {"exp", "log", "sigmoid", "tanh", "gelu", "silu", "mish", "erf", "softplus", "sin", "cos",
           "elu", "selu", "logsigmoid", "log1p", "expm1"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """What a device can do at best; the defaults are an H200's as PyTorch uses it."""

    bytes_per_s: float = 4.2e12
    products_per_s: float = 51e12
    """Operations of float32 products (no tensor cores by default)."""
    convolutions_per_s: float = 150e12
    """Operations of float32 convolutions (TF32 by default on a GPU); an estimate."""
    half_per_s: float = 600e12
    """Operations of products of half precision."""
    pointwise_per_s: float = 30e12
    launch_us: float = 3.0
    bias_is_free: bool = False
    """Whether a convolution adds its bias itself; on a GPU it is a pass over the result, unless
    elementwise work comes next."""
    own: Chip | None = None
    """The GPU whose float32 products are our own where they are expected to be faster."""


def peaks_of(chip: Chip) -> Peaks:
    """What a GPU can do with the rules' own products, by how it compares with an H200."""
    known = Peaks(own=chip)
    return replace(
        known, bytes_per_s=known.bytes_per_s * chip.memory,
        products_per_s=known.products_per_s * chip.plain,
        convolutions_per_s=known.convolutions_per_s * chip.tensor,
        half_per_s=known.half_per_s * chip.tensor,
        pointwise_per_s=known.pointwise_per_s * chip.plain,
    )  # fmt: skip


CPU = Peaks(
    bytes_per_s=2e10, products_per_s=1e11, convolutions_per_s=1e11, half_per_s=1e11,
    pointwise_per_s=2e10, launch_us=2.0, bias_is_free=True,
)  # fmt: skip
"""Two cores of a small machine, roughly; ratios matter more than the figures."""


def cost_us(arena: Arena, roots: Iterable[int], peaks: Peaks) -> float:
    """Expected microseconds of one call, with elementwise work fused into what it feeds.

    A node is written to memory if it is a result, a reduction, a product, or is read by
    something that is not elementwise; each such node is one launch that reads the nearest
    written ones behind it. Weights are read, and folded, at every call.
    """
    roots = tuple(roots)
    order = arena.reachable(roots)
    users = arena.users(roots)
    written = {n for n in order if _is_kept(arena, n, users.get(n, []), n in roots)}
    total = 0.0
    coarse = any(arena[each].op in _CONVOLUTIONS and arena[each].dtype == "float32"
                 for each in order)  # fmt: skip
    for number in order:
        node = arena[number]
        if number not in written or node.op in LEAVES - {"full"}:
            continue
        sources, work = _sources(arena, number, written)
        moved = _bytes(node) + sum(_bytes(arena[each]) for each in sources) * _passes(node)
        kept = None if number in roots else _triangle([arena[each] for each in users[number]])
        computing = _own_seconds(arena, node, peaks, exact=not coarse, kept=kept)
        if computing is None:
            computing = _operations(arena, node) / _rate(node, peaks)
        seconds = max(moved / peaks.bytes_per_s, computing)
        if _adds_bias(arena, node, users.get(number, []), number in roots, peaks):
            seconds += 2 * _bytes(node) / peaks.bytes_per_s
        total += seconds * 1e6 + work / peaks.pointwise_per_s * 1e6 + peaks.launch_us
    return total


def _adds_bias(
    arena: Arena, node: Node, users: list[int], root: bool, peaks: Peaks
) -> bool:  # fmt: skip
    if node.op not in _CONVOLUTIONS or node.inputs[2] == NONE or peaks.bias_is_free:
        return False
    return root or any(_reads_memory(arena, each) for each in users)


def _is_kept(arena: Arena, number: int, users: list[int], root: bool) -> bool:
    op = arena[number].op
    if op in LEAVES:
        return True
    if op in ("item", "call") and arena[number].dtype == "several":
        return False
    if op in ("avg_pool", "max_pool") and not root:
        return any(arena[each].op not in _FUSED for each in users)
    if op not in _FUSED or root:
        return True
    if op in VIEWS:
        return False
    # a product or an opaque call reads memory; reductions and norms compute on the way
    return any(_reads_memory(arena, each) for each in users)


def _reads_memory(arena: Arena, user: int) -> bool:
    op = arena[user].op
    return op not in _FUSED and op not in REDUCTIONS and op not in _NORMS and op not in (
        "avg_pool", "max_pool", "cat", "stack", "pad", "tril", "triu",
    )  # fmt: skip


def _sources(arena: Arena, number: int, kept: set[int]) -> tuple[set[int], float]:
    """The written nodes behind one, and the elementwise operations on the way."""
    found: set[int] = set()
    seen: set[int] = set()
    node = arena[number]
    stack = list(node.inputs)
    work = _pointwise(node) if node.op in _FUSED else 0.0
    while stack:
        each = stack.pop()
        if each == NONE or each in seen:
            continue
        seen.add(each)
        if each in kept:
            if arena[each].op not in ("number", "full"):
                found.add(each)
        else:
            work += _pointwise(arena[each])
            stack += arena[each].inputs
    return found, work


def _pointwise(node: Node) -> float:
    if node.op in ("avg_pool", "max_pool"):
        return float(node.size * product(node.dims("kernel")))
    if node.op not in POINTWISE and node.op != "batch_norm":
        return 0.0
    return node.size * (20.0 if node.op in _COSTLY else 1.0)


def _passes(node: Node) -> float:
    """How often the inputs are read: statistics first, then the values."""
    if node.op in ("group_norm", "instance_norm", "layer_norm", "softmax", "log_softmax", "var"):
        return 2.0 if node.op != "var" else 1.0
    if node.op in _CONVOLUTIONS:
        return 1.5
    return 1.0


def _bytes(node: Node) -> float:
    if node.op == "expand":
        return 0.0
    return float(node.size * _BYTES.get(node.dtype, 4))


def _rate(node: Node, peaks: Peaks) -> float:
    if node.op in ("conv", "conv_transpose", "linear", "matmul", "call"):
        if node.dtype in ("float16", "bfloat16"):
            return peaks.half_per_s
        if node.dtype == "float64":
            return peaks.products_per_s / 2
        convolution = node.op in _CONVOLUTIONS
        return peaks.convolutions_per_s if convolution else peaks.products_per_s
    return peaks.pointwise_per_s


def _triangle(users: list[Node]) -> Triangle | None:
    """The triangle that all who read something keep of it."""
    kept = {
        Triangle(lower=each.op == "tril", by=each.integer("diagonal"))
        if each.op in ("tril", "triu") else None
        for each in users
    }  # fmt: skip
    return kept.pop() if len(kept) == 1 else None


def _own_seconds(
    arena: Arena, node: Node, peaks: Peaks, *, exact: bool, kept: Triangle | None
) -> float | None:
    """What a float32 product takes by whoever should compute it; ``None`` of all else.

    Beside a convolution in TF32 (not ``exact``) it is not split into planes.
    """
    if peaks.own is None or node.dtype != "float32" or node.op not in ("linear", "matmul"):
        return None
    a, b = (arena.shape(each) for each in node.inputs[:2])
    if 0 in (*a, *b):
        return None
    if node.op == "linear":
        b = b[::-1]
    m, k, n = (a[-2] if len(a) > 1 else 1), a[-1], (b[-1] if len(b) > 1 else 1)
    batch = node.size // (m * n)
    if len(b) <= 2:
        m, batch = m * batch, 1
    found = Product(
        batch=batch, m=m, n=n, k=k, a=(m * k if len(a) > 2 else 0, k, 1), b=(k * n, n, 1),
        c=(m * n, n, 1), beside_tf32=not exact, kept=kept if kept and m == node.shape[-2] else None,
    )  # fmt: skip
    way = best_way(found, fused=False, chip=peaks.own)
    return expected_us(found, way, peaks.own) * 1e-6


def _operations(arena: Arena, node: Node) -> float:
    match node.op:
        case "linear":
            return 2.0 * node.size * arena.shape(node.inputs[1])[-1]
        case "matmul":
            return 2.0 * node.size * arena.shape(node.inputs[0])[-1]
        case "conv":
            w = arena.shape(node.inputs[1])
            return 2.0 * node.size * product(w[1:])
        case "conv_transpose":
            w = arena.shape(node.inputs[1])
            return 2.0 * arena[node.inputs[0]].size * product(w[1:])
        case "avg_pool" | "max_pool":
            return float(node.size * product(node.dims("kernel")))
        case "logsumexp" | "softmax" | "log_softmax":
            return 20.0 * arena[node.inputs[0]].size
    if node.op in REDUCTIONS or node.op in _NORMS:
        return float(arena[node.inputs[0]].size)
    return 0.0
