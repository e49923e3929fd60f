"""Small calls as the compiler's reader gives them."""

from kernelsmith.propose.rules.compiler.call import (
    Alias,
    Allocate,
    Argument,
    Call,
    Drop,
    Kernel,
    Launch,
    Library,
    Listed,
    Named,
    Step,
    Viewed,
)


def dense(*shape):
    """Row-major strides."""
    found = [1]
    for size in reversed(shape[1:]):
        found.insert(0, found[0] * size)
    return tuple(found)


def an_argument(name, *shape, stride=None, dtype="float32"):
    """A tensor that a call is given."""
    return Argument(name=name, path=name, shape=shape, stride=stride or dense(*shape), dtype=dtype)


def made(name, *shape):
    """A new tensor."""
    return Allocate(name=name, shape=shape, stride=dense(*shape), dtype="float32")


def pointwise(name, count, parameters, body, **changes):
    """A pointwise kernel in the compiler's style; ``body`` after the index."""
    lines = [
        "@triton.jit",
        f"def {name}({', '.join(parameters)}, xnumel, XBLOCK: tl.constexpr):",
        f"    xnumel = {count}",
        "    xoffset = tl.program_id(0) * XBLOCK",
        "    xindex = xoffset + tl.arange(0, XBLOCK)",
        "    xmask = xindex < xnumel",
        *(f"    {each}" for each in body),
    ]
    usual = dict(
        name=name, text="\n".join(lines), schedule="pointwise", sizes=(("x", count),),
        blocks=("XBLOCK",), grid="Grid1D", defaults=(("XBLOCK", 128), ("num_warps", 4)),
        types=(*((each, "*fp32") for each in parameters), ("xnumel", "i32"),
               ("XBLOCK", "constexpr")),
    )  # fmt: skip
    return Kernel(**(usual | changes))


M, N, K = 40, 96, 64
BIAS_RELU = [
    "x0 = xindex % 96",
    "x2 = xindex",
    "tmp0 = tl.load(in_ptr0 + x0, xmask, eviction_policy='evict_last')",
    "tmp1 = tl.load(in_out_ptr0 + x2, xmask)",
    "tmp2 = tmp0 + tmp1",
    "tmp3 = tl.full([1], 0, tl.int32)",
    "tmp4 = tl.maximum(tmp3, tmp2)",
    "tmp5 = tl.full([1], 0.5, tl.float32)",
    "tmp6 = tmp4 * tmp5",
    "tl.store(in_out_ptr0 + x2, tmp6, xmask)",
]


def linear_relu(body=BIAS_RELU, *, later: tuple[Step, ...] = (), results=("buf1",)):
    """``relu(x @ w.T + bias) / 2``, in place behind the library's product."""
    kernel = pointwise("bias_relu", M * N, ("in_out_ptr0", "in_ptr0"), body)
    return Call(
        arguments=(an_argument("w", N, K), an_argument("bias", N), an_argument("x", M, K)),
        kernels=(kernel,),
        steps=(
            made("buf0", M, N),
            Library(
                target="torch.mm", out="buf0",
                operands=(Named(name="x"), Viewed(name="w", shape=(K, N), stride=(1, K))),
            ),
            Drop(name="w"),
            Drop(name="x"),
            Alias(name="buf1", of=Named(name="buf0")),
            Drop(name="buf0"),
            Launch(kernel="bias_relu", operands=(Named(name="buf1"), Named(name="bias"), M * N)),
            Drop(name="bias"),
            *later,
        ),
        results=tuple(Named(name=each) for each in results),
    )  # fmt: skip


def a_convolution(*, channels_last=False, bias=True, kernel=1):
    """A convolution over two images of 6 x 5, 16 channels to 24."""
    shape, out = (2, 16, 6, 5), (2, 24, 6, 5)
    stride = (480, 1, 80, 16) if channels_last else dense(*shape)
    out_stride = (720, 1, 120, 24) if channels_last else dense(*out)
    both = Listed(items=(1, 1))
    none = Listed(items=(0, 0))
    return Call(
        arguments=(
            an_argument("x", *shape, stride=stride),
            an_argument("w", 24, 16, kernel, kernel),
            an_argument("bias", 24),
        ),
        kernels=(),
        steps=(
            Library(
                target="torch.convolution", operands=(Named(name="x"), Named(name="w")),
                keywords=(("stride", both), ("padding", none), ("dilation", both),
                          ("transposed", False), ("output_padding", none), ("groups", 1),
                          ("bias", Named(name="bias") if bias else None)),
                result="buf0", shape=out, stride=out_stride,
            ),
        ),
        results=(Named(name="buf0"),),
    )  # fmt: skip
