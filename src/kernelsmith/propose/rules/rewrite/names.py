"""Public names of functions, and what each is in the graph."""

SAME = {
    "torch.Tensor.contiguous", "torch.Tensor.clone", "torch.clone", "torch.Tensor.detach",
    "torch.detach", "torch.nn.functional.dropout", "torch.nn.functional.dropout2d",
    "torch.nn.functional.dropout3d", "torch.nn.functional.dropout1d",
    "torch.nn.functional.alpha_dropout",
    "torch.nn.functional.feature_alpha_dropout",
    "torch.dropout",
}  # fmt: skip
"""Functions whose result has the values of their first argument (outside of training)."""

_UNARY = (
    "relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "abs", "neg", "square", "erf", "sin",
    "cos", "reciprocal", "log1p", "expm1",
)  # fmt: skip
UNARY: dict[str, str] = {
    f"{prefix}.{op}": op
    for op in (*_UNARY, "silu", "mish", "hardswish", "hardsigmoid", "softsign", "logsigmoid",
               "selu")
    for prefix in ("torch", "torch.Tensor", "torch.nn.functional", "torch.special")
} | {f"{prefix}.{op}_": op for op in _UNARY for prefix in ("torch", "torch.Tensor")} | {
    "torch.absolute": "abs", "torch.negative": "neg", "torch.Tensor.__neg__": "neg",
    "torch.Tensor.__abs__": "abs", "torch.special.expit": "sigmoid",
}  # fmt: skip
"""Elementwise functions of one tensor without further arguments (but ``inplace``)."""

_BINARY = {
    "add": ("add", "__add__", "__radd__", "add_", "__iadd__"),
    "sub": ("sub", "__sub__", "subtract", "sub_", "__isub__"),
    "mul": ("mul", "__mul__", "__rmul__", "multiply", "mul_", "__imul__"),
    "div": ("div", "__truediv__", "true_divide", "divide", "div_", "__itruediv__"),
    "maximum": ("maximum", "max"),
    "minimum": ("minimum", "min"),
}
BINARY: dict[str, str] = {
    f"{prefix}.{name}": op
    for op, known in _BINARY.items()
    for name in known
    for prefix in ("torch", "torch.Tensor")
}
"""Elementwise functions of two; ``max`` and ``min`` of one tensor are reductions."""

REVERSED = {"torch.Tensor.__rsub__": "sub", "torch.rsub": "sub", "torch.Tensor.__rdiv__": "div",
            "torch.Tensor.__rtruediv__": "div"}  # fmt: skip

REDUCTIONS: dict[str, str] = {
    f"{prefix}.{name}": op
    for op, known in {
        "sum": ("sum",), "mean": ("mean",), "amax": ("amax", "max"), "amin": ("amin", "min"),
        "logsumexp": ("logsumexp",),
    }.items()
    for name in known
    for prefix in ("torch", "torch.Tensor", "torch.special")
}  # fmt: skip

_LEADING = {
    "relu6": ("input", "inplace"),
    "gelu": ("input", "approximate"),
    "hardtanh": ("input", "min_val", "max_val", "inplace"),
    "leaky_relu": ("input", "negative_slope", "inplace"),
    "elu": ("input", "alpha", "inplace"),
    "softplus": ("input", "beta", "threshold"),
    "softmax": ("input", "dim", "_stacklevel", "dtype"),
    "log_softmax": ("input", "dim", "_stacklevel", "dtype"),
    "linear": ("input", "weight", "bias"),
    "conv1d": ("input", "weight", "bias", "stride", "padding", "dilation", "groups"),
    "conv_transpose1d": ("input", "weight", "bias", "stride", "padding", "output_padding",
                         "groups", "dilation"),
    "batch_norm": ("input", "running_mean", "running_var", "weight", "bias", "training",
                   "momentum", "eps"),
    "instance_norm": ("input", "running_mean", "running_var", "weight", "bias",
                      "use_input_stats", "momentum", "eps"),
    "group_norm": ("input", "num_groups", "weight", "bias", "eps"),
    "layer_norm": ("input", "normalized_shape", "weight", "bias", "eps"),
    "avg_pool2d": ("input", "kernel_size", "stride", "padding", "ceil_mode",
                   "count_include_pad", "divisor_override"),
    "avg_pool1d": ("input", "kernel_size", "stride", "padding", "ceil_mode",
                   "count_include_pad"),
    "max_pool1d": ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode",
                   "return_indices"),
    "adaptive_avg_pool1d": ("input", "output_size"),
}  # fmt: skip
_ALIKE = {
    "conv2d": "conv1d", "conv3d": "conv1d", "conv_transpose2d": "conv_transpose1d",
    "conv_transpose3d": "conv_transpose1d", "avg_pool3d": "avg_pool2d", "max_pool2d": "max_pool1d",
    "max_pool3d": "max_pool1d", "adaptive_avg_pool2d": "adaptive_avg_pool1d",
    "adaptive_avg_pool3d": "adaptive_avg_pool1d",
}  # fmt: skip

FUNCTIONAL: dict[str, tuple[str, ...]] = {
    name: _LEADING[_ALIKE.get(name, name)] for name in (*_LEADING, *_ALIKE)
}
"""Functions of ``torch.nn.functional``, with the names of their arguments in order."""

OTHERS: dict[str, tuple[str, ...]] = {
    "torch.softmax": ("input", "dim", "dtype"),
    "torch.Tensor.softmax": ("input", "dim", "dtype"),
    "torch.log_softmax": ("input", "dim", "dtype"),
    "torch.Tensor.log_softmax": ("input", "dim", "dtype"),
    "torch.clamp": ("input", "min", "max"),
    "torch.Tensor.clamp": ("input", "min", "max"),
    "torch.Tensor.clamp_": ("input", "min", "max"),
    "torch.clip": ("input", "min", "max"),
    "torch.Tensor.clip": ("input", "min", "max"),
    "torch.Tensor.clamp_min": ("input", "min"),
    "torch.clamp_min": ("input", "min"),
    "torch.Tensor.clamp_max": ("input", "max"),
    "torch.clamp_max": ("input", "max"),
    "torch.pow": ("input", "exponent"),
    "torch.Tensor.pow": ("input", "exponent"),
    "torch.Tensor.__pow__": ("input", "exponent"),
    "torch.matmul": ("input", "other"),
    "torch.Tensor.matmul": ("input", "other"),
    "torch.Tensor.__matmul__": ("input", "other"),
    "torch.mm": ("input", "other"),
    "torch.Tensor.mm": ("input", "other"),
    "torch.bmm": ("input", "other"),
    "torch.Tensor.bmm": ("input", "other"),
    "torch.tril": ("input", "diagonal"),
    "torch.Tensor.tril": ("input", "diagonal"),
    "torch.triu": ("input", "diagonal"),
    "torch.Tensor.triu": ("input", "diagonal"),
    "torch.diag": ("input", "diagonal"),
    "torch.Tensor.diag": ("input", "diagonal"),
    "torch.cat": ("tensors", "dim"),
    "torch.concat": ("tensors", "dim"),
    "torch.stack": ("tensors", "dim"),
    "torch.transpose": ("input", "dim0", "dim1"),
    "torch.Tensor.transpose": ("input", "dim0", "dim1"),
    "torch.Tensor.t": ("input",),
    "torch.t": ("input",),
    "torch.Tensor.T.__get__": ("input",),
    "torch.Tensor.mT.__get__": ("input",),
    "torch.var": ("input", "dim", "unbiased", "keepdim", "correction"),
    "torch.Tensor.var": ("input", "dim", "unbiased", "keepdim", "correction"),
}

SHAPED = {
    f"{prefix}.{name}"
    for prefix in ("torch", "torch.Tensor")
    for name in ("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as",
                 "reshape_as")
}  # fmt: skip
"""Functions that keep values and their order: the traced shape says all."""
