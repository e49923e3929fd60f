"""Which operators the ``aten`` suite holds, and how large the calls are that are timed."""

from typing import Any

Said = dict[str, Any]
"""A call or an argument, as ``parts/opinfo.py`` puts it in words."""

_UNARY = (
    "abs", "acos", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "digamma", "erf",
    "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "frac", "isfinite", "isnan", "lgamma", "log",
    "log10", "log1p", "log2", "logical_not", "logit", "nan_to_num", "neg", "rad2deg", "reciprocal",
    "round", "rsqrt", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "sqrt", "square", "tan",
    "tanh", "trunc", "bitwise_not",
)  # fmt: skip
_ACTIVATIONS = tuple(
    f"nn.functional.{each}"
    for each in (
        "relu", "relu6", "gelu", "silu", "mish", "elu", "celu", "selu", "leaky_relu", "hardswish",
        "hardsigmoid", "hardtanh", "hardshrink", "softshrink", "softplus", "softsign",
        "tanhshrink", "logsigmoid", "threshold", "prelu", "glu",
    )
)  # fmt: skip
_BINARY = (
    "add", "sub", "mul", "div", "pow", "maximum", "minimum", "fmod", "remainder", "atan2", "hypot",
    "copysign", "floor_divide", "eq", "ne", "lt", "ge", "logical_and", "bitwise_and", "xlogy",
    "logaddexp",
)  # fmt: skip
_REDUCTIONS = (
    "sum", "mean", "amax", "amin", "argmax", "argmin", "prod", "std", "var", "any", "all",
    "count_nonzero", "nansum",
)  # fmt: skip


def _t(*shape: int, dtype: str = "float32", low: float = -1.0, high: float = 1.0) -> Said:
    return {"shape": list(shape), "dtype": dtype, "low": low, "high": high}


def _i(high: int, *shape: int) -> Said:
    """Indices below ``high``."""
    return _t(*shape, dtype="int64", low=0, high=high - 1)


def _is(value: object) -> Said:
    return {"is": value}


def _list(*values: Said) -> Said:
    return {"list": list(values), "tuple": False}


_SPECIAL: dict[str, tuple[Said, ...]] = {
    "logit": (_t(2048, 1024, low=0.1, high=0.9), _is(0.2)),
    "nn.functional.threshold": (_t(2048, 1024), _is(0.1), _is(2.0)),
    "nn.functional.prelu": (_t(2048, 1024), _t(1024)),
    "nn.functional.glu": (_t(2048, 1024), _is(-1)),
    "copysign": (_t(2048, 1024), _t(2048, 1024)),
    "prod": (_t(2048, 1024, low=0.9, high=1.1), _is(-1)),
}
"""Operators of the kinds above whose samples take more than tensors of one shape."""

_OTHERS: dict[str, tuple[Said, ...] | None] = {
    "addcmul": (_t(2048, 1024), _t(2048, 1024), _t(2048, 1024)),
    "addcdiv": (_t(2048, 1024), _t(2048, 1024), _t(2048, 1024, low=1.0, high=2.0)),
    "lerp": (_t(2048, 1024), _t(2048, 1024), _t(2048, 1024)),
    "where": (_t(2048, 1024), _t(2048, 1024, dtype="bool"), _t(2048, 1024)),
    "clamp": (_t(2048, 1024), _t(2048, 1024, high=0.0), _t(2048, 1024, low=0.0)),
    "masked_fill": (_t(2048, 1024), _t(2048, 1024, dtype="bool"), _is(0.5)),
    "logsumexp": (_t(2048, 1024), _list(_is(-1)), _is(False)),
    "cumsum": (_t(1024, 2048), _is(-1)),
    "cumprod": (_t(1024, 2048, low=0.9, high=1.1), _is(-1)),
    "cummax": (_t(1024, 2048), _is(-1)),
    "logcumsumexp": (_t(1024, 2048), _is(-1)),
    "mm": (_t(512, 512), _t(512, 512)),
    "bmm": (_t(16, 128, 128), _t(16, 128, 128)),
    "addmm": (_t(512, 512), _t(512, 512), _t(512, 512)),
    "addmv": (_t(2048), _t(2048, 1024), _t(1024)),
    "baddbmm": (_t(16, 128, 128), _t(16, 128, 128), _t(16, 128, 128)),
    "mv": (_t(2048, 1024), _t(1024)),
    "dot": (_t(1048576), _t(1048576)),
    "outer": (_t(2048), _t(1024)),
    "matmul": (_t(512, 512), _t(512, 512)),
    "tril": (_t(2048, 1024), _is(0)),
    "triu": (_t(2048, 1024), _is(0)),
    "nn.functional.linear": (_t(256, 512), _t(512, 512), _t(512)),
    "nn.functional.conv1d": None,
    "nn.functional.conv2d": (_t(8, 32, 32, 32), _t(64, 32, 3, 3), _t(64)),
    "nn.functional.conv3d": None,
    "nn.functional.conv_transpose2d": (_t(4, 32, 16, 16), _t(32, 32, 3, 3), _t(32)),
    "nn.functional.avg_pool2d": (_t(16, 32, 64, 64), _is(2)),
    "nn.functional.max_pool2d": None,
    "nn.functional.adaptive_avg_pool2d": (_t(16, 32, 64, 64), _is(7)),
    "nn.functional.layer_norm": (_t(2048, 1024), _list(_is(1024)), _t(1024), _t(1024)),
    "nn.functional.group_norm": (_t(16, 32, 64, 64), _is(8)),
    "nn.functional.batch_norm": None,
    "nn.functional.rms_norm": (_t(2048, 1024), _list(_is(1024)), _t(1024)),
    "nn.functional.normalize": None,
    "softmax": (_t(2048, 1024), _is(-1)),
    "log_softmax": (_t(2048, 1024), _is(-1)),
    "nn.functional.scaled_dot_product_attention": None,
    "nn.functional.mse_loss": (_t(2048, 1024), _t(2048, 1024)),
    "nn.functional.l1_loss": (_t(2048, 1024), _t(2048, 1024)),
    "nn.functional.smooth_l1_loss": (_t(2048, 1024), _t(2048, 1024)),
    "nn.functional.huber_loss": (_t(2048, 1024), _t(2048, 1024)),
    "nn.functional.cross_entropy": (_t(2048, 1024), _i(1024, 2048)),
    "nn.functional.nll_loss": (_t(2048, 1024, low=-8.0, high=0.0), _i(1024, 2048)),
    "nn.functional.binary_cross_entropy_with_logits": (_t(2048, 1024), _t(2048, 1024, low=0.0)),
    "nn.functional.cosine_similarity": (_t(2048, 1024), _t(2048, 1024)),
    "nn.functional.pairwise_distance": (_t(2048, 1024), _t(2048, 1024)),
    "gather": (_t(2048, 1024), _is(1), _i(1024, 2048, 256)),
    "index_select": (_t(2048, 1024), _is(0), _i(2048, 512)),
    "scatter_add": (_t(2048, 256), _is(1), _i(256, 2048, 1024), _t(2048, 1024)),
    "index_add": (_t(2048, 1024), _is(0), _i(2048, 1024), _t(1024, 1024)),
    "nn.functional.embedding": (_t(8192, 256), _i(8192, 2048)),
    "cat": (_list(_t(2048, 512), _t(2048, 512)),),
    "stack": (_list(_t(1024, 1024), _t(1024, 1024)), _is(1)),
    "roll": (_t(2048, 1024), _is(3), _is(1)),
    "sort": None,
    "topk": (_t(2048, 1024), _is(8)),
    "nn.functional.pixel_shuffle": (_t(16, 64, 32, 32), _is(2)),
    "nn.functional.interpolate": None,
    "nn.functional.grid_sample": None,
}
"""Operators of other kinds with a larger call; none where only the samples say what is allowed."""

NAMES = (*_UNARY, *_ACTIVATIONS, *_BINARY, *_REDUCTIONS, *_OTHERS)

ORDER = {"where": (1, 0, 2), "nn.functional.embedding": (1, 0)}
"""Where the samples begin with another argument than the function does."""


def count_of(name: str) -> int | None:
    """How many arguments the larger call takes, where there is one."""
    arguments = (_SPECIAL | _OTHERS).get(name)
    return None if arguments is None else len(arguments)


def larger(name: str, kind: str, sample: Said, *, integers: bool) -> list[Said]:
    """Calls to be timed, for a processor and for a GPU; empty where only samples are to be had."""
    if name in _SPECIAL or name in _OTHERS:
        arguments = (_SPECIAL | _OTHERS)[name]
        if arguments is None or len(arguments) != len(sample["arguments"]):
            return []
        known: Said = {"arguments": list(arguments), "options": {}}
        return [known | {"where": "cpu: "}, _scaled(known)]
    count = len(sample["arguments"])
    leaves = [each for each in sample["arguments"] if "shape" in each]
    if len(leaves) != count or count > 2 or (count == 2 and kind != "BinaryUfuncInfo"):
        return []
    dtype = "int64" if integers else "float32"
    drawn: list[Said] = [
        {"shape": [2048, 1024], "dtype": dtype}
        | {key: each[key] for key in ("low", "high") if key in each}
        | ({"low": 0, "high": 100} if integers else {})
        for each in leaves
    ]
    options: Said = {"dim": {"is": -1}} if kind == "ReductionOpInfo" else {}
    call: Said = {"arguments": drawn, "options": options}
    return [call | {"where": "cpu: "}, _scaled(call)]


def _scaled(call: Said) -> Said:
    """The same call for a GPU: the first dimension eight times as large wherever it is shared."""
    tensors = list(_tensors(call["arguments"]))
    first = tensors[0]["shape"][0]

    def grown(value: Said) -> Said:
        if "list" in value:
            return value | {"list": [grown(each) for each in value["list"]]}
        if "shape" in value and value["shape"][:1] == [first]:
            return value | {"shape": [first * 8, *value["shape"][1:]]}
        return value

    return call | {"arguments": [grown(each) for each in call["arguments"]], "where": "gpu: "}


def _tensors(values: list[Said]) -> list[Said]:
    found = []
    for each in values:
        if "list" in each:
            found += _tensors(each["list"])
        elif "shape" in each:
            found.append(each)
    return found
