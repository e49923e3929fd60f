"""Library calls that are matrix products."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

from kernelsmith.propose.rules.compiler.call import Allocate, Library, Listed, Named, Operand
from kernelsmith.propose.rules.products.epilogue import Bias
from kernelsmith.propose.rules.products.product import HALF, Product
from kernelsmith.propose.rules.products.tensors import Tensor, Tensors

_TYPES = ("float32", *HALF)
_ADDS = {"addmm", "baddbmm", "addmv"}
_CONVOLUTIONS = {"torch.convolution", "torch.ops.aten.convolution.default"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A library step as a product."""

    product: Product
    a: Operand
    b: Operand
    bias: Operand = None
    added: Bias | None = None
    c: str
    """The tensor that it writes."""
    made: Allocate | None = None
    """How C comes into being, where the library made it."""


def product_of(step: Library, tensors: Tensors) -> Found | None:
    """The product that a library call is; ``None`` of any other call, or an unusual one."""
    if step.target in _CONVOLUTIONS:
        return _convolution(step, tensors)
    name = step.target.rpartition(".")[2]
    if step.target != f"torch.{name}" or step.out is None:
        return None
    operands = list(step.operands)
    bias = operands.pop(0) if name in _ADDS else None
    if name not in ("mm", "bmm", "mv", *_ADDS) or len(operands) != 2:
        return None
    keywords = dict(step.keywords)
    alpha, beta = keywords.pop("alpha", 1), keywords.pop("beta", 1)
    if keywords or not isinstance(alpha, int | float) or not isinstance(beta, int | float):
        return None
    a, b, c = tensors.of(operands[0]), tensors.of(operands[1]), tensors.of(Named(name=step.out))
    if a is None or b is None or c is None:
        return None
    if name in ("mv", "addmv"):
        b, c = _column(b), _column(c)
    found = _dense(a, b, c)
    if found is None:
        return None
    added = None
    if bias is not None:
        extra = tensors.of(bias)
        if extra is None or extra.root == c.root:
            return None
        strides = _broadcast(extra, c if name != "addmv" else _column(c))
        if strides is None:
            return None
        added = Bias(strides=strides, alpha=float(alpha), beta=float(beta))
    elif alpha != 1:
        return None
    if c.root in (a.root, b.root):
        return None
    return Found(product=found, a=operands[0], b=operands[1], bias=bias, added=added, c=step.out)


def _column(vector: Tensor) -> Tensor:
    """A vector as a matrix of one column."""
    if len(vector.shape) != 1:
        return vector
    return replace(vector, shape=(*vector.shape, 1), stride=(*vector.stride, 1))


def _dense(a: Tensor, b: Tensor, c: Tensor) -> Product | None:
    rank = len(a.shape)
    if not (rank == len(b.shape) == len(c.shape) and rank in (2, 3)):
        return None
    if a.dtype != b.dtype or a.dtype not in _TYPES or c.dtype != a.dtype:
        return None
    batch = a.shape[0] if rank == 3 else 1
    (m, k), (k_b, n) = a.shape[-2:], b.shape[-2:]
    if k != k_b or c.shape[-2:] != (m, n) or any(0 in each.shape for each in (a, b, c)):
        return None
    if rank == 3 and not b.shape[0] == c.shape[0] == batch:
        return None
    strides = [
        (each.stride[0] if rank == 3 and batch > 1 else 0, *each.stride[-2:]) for each in (a, b, c)
    ]
    a3, b3, c3 = ((s[0], s[1], s[2]) for s in strides)
    return Product(batch=batch, m=m, n=n, k=k, a=a3, b=b3, c=c3, dtype=a.dtype, out=c.dtype)


def _broadcast(bias: Tensor, c: Tensor) -> tuple[int, int, int] | None:
    """A bias's strides over C's axes, 0 where it is the same for all."""
    if len(bias.shape) > len(c.shape):
        return None
    found = [0] * (3 - len(bias.shape))
    for size, by, whole in zip(
        bias.shape, bias.stride, c.shape[len(c.shape) - len(bias.shape) :], strict=True
    ):
        if size not in (1, whole):
            return None
        found.append(0 if size == 1 else by)
    return found[0], found[1], found[2]


def runs_in_tf32(step: Library, tensors: Tensors) -> bool:
    """Whether it is a convolution of float32, which torch computes in TF32 where it can."""
    if step.target not in _CONVOLUTIONS or not step.operands:
        return False
    x = tensors.of(step.operands[0])
    return x is None or x.dtype not in HALF


def _convolution(step: Library, tensors: Tensors) -> Found | None:
    """A convolution with a kernel of one point: a product over channels."""
    if step.result is None or step.shape is None or step.stride is None:
        return None
    names = ("input", "weight", "bias", "stride", "padding", "dilation", "transposed",
             "output_padding", "groups")  # fmt: skip
    given = dict(zip(names, step.operands, strict=False)) | dict(step.keywords)
    x, w = tensors.of(given.get("input")), tensors.of(given.get("weight"))
    if x is None or w is None or x.dtype != w.dtype or x.dtype not in _TYPES:
        return None
    plain = (
        all(size == 1 for size in w.shape[2:])
        and _all(given.get("stride"), 1)
        and _all(given.get("padding"), 0)
        and given.get("transposed") in (False, None)
        and given.get("groups") == 1
        and len(x.shape) == len(w.shape) > 2
    )
    if not plain or 0 in x.shape:
        return None
    c = Tensor(shape=step.shape, stride=step.stride, dtype=x.dtype, root=step.result)
    last = x.stride[1] == 1
    product = _pixels_by_channels(x, w, c) if last else _channels_by_pixels(x, w, c)
    if product is None:
        return None
    made = Allocate(name=step.result, shape=step.shape, stride=step.stride, dtype=x.dtype)
    bias, added = given.get("bias"), None
    if bias is not None:
        extra = tensors.of(bias)
        if extra is None or len(extra.shape) != 1:
            return None
        by = extra.stride[0]
        added = Bias(strides=(0, 0, by) if last else (0, by, 0))
    a, b = (given["input"], given["weight"]) if last else (given["weight"], given["input"])
    return Found(product=product, a=a, b=b, bias=bias, added=added, c=step.result, made=made)


def _all(given: Operand, value: int) -> bool:
    return isinstance(given, Listed) and all(each == value for each in given.items)


def _pixels_by_channels(x: Tensor, w: Tensor, c: Tensor) -> Product | None:
    """Channels last: all pixels of all images are the rows."""
    by_x, by_c = _run(x, with_batch=True), _run(c, with_batch=True)
    if by_x is None or by_c is None:
        return None
    return Product(
        m=x.shape[0] * math.prod(x.shape[2:]), n=w.shape[0], k=x.shape[1],
        a=(0, by_x, x.stride[1]), b=(0, w.stride[1], w.stride[0]), c=(0, by_c, c.stride[1]),
        dtype=x.dtype, out=x.dtype, tf32=x.dtype not in HALF,
    )  # fmt: skip


def _channels_by_pixels(x: Tensor, w: Tensor, c: Tensor) -> Product | None:
    """Channels first: one product per image, the weight the same for all."""
    by_x, by_c = _run(x, with_batch=False), _run(c, with_batch=False)
    if by_x is None or by_c is None:
        return None
    many = x.shape[0] > 1
    return Product(
        batch=x.shape[0], m=w.shape[0], n=math.prod(x.shape[2:]), k=x.shape[1],
        a=(0, w.stride[0], w.stride[1]), b=(x.stride[0] if many else 0, x.stride[1], by_x),
        c=(c.stride[0] if many else 0, c.stride[1], by_c),
        dtype=x.dtype, out=x.dtype, tf32=x.dtype not in HALF,
    )  # fmt: skip


def _run(tensor: Tensor, *, with_batch: bool) -> int | None:
    """The one stride that leads through all pixels (of all images), where there is one."""
    axes: list[int] = [*((0,) if with_batch else ()), *range(2, len(tensor.shape))]
    axes = [axis for axis in axes if tensor.shape[axis] > 1]
    if not axes:
        return 1
    for before, after in pairwise(axes):
        if tensor.stride[before] != tensor.stride[after] * tensor.shape[after]:
            return None
    return tensor.stride[axes[-1]]
