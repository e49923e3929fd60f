"""What Triton's interpreter lacks of a GPU: NVIDIA's functions, and products by parts.

Kernels call ``libdevice.tanh`` and its like, and ask for ``input_precision="bf16x6"``; the
interpreter knows neither. Functions are computed by torch in float64 and rounded once; products
are those of float32 in the interpreter, whatever is asked for.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton._C.libtriton import ir
from triton.language.extra import libdevice as public
from triton.language.extra.cuda import libdevice as nvidia
from triton.runtime import interpreter

_PRECISIONS = ("BF16x3", "BF16x6")
"""Of products; older versions of Triton do not know them at all."""
_PREFIX = "__nv_"


def _gamma(x: torch.Tensor) -> torch.Tensor:
    odd = (x < 0) & (torch.floor(x) % 2 != 0)
    found = torch.lgamma(x).exp() * torch.where(odd, -1.0, 1.0)
    found = torch.where(x == 0, 1 / x, found)
    return torch.where((x < 0) & (x == torch.floor(x)), torch.nan, found)


def _exponent(x: torch.Tensor) -> torch.Tensor:
    whole = torch.frexp(x)[1].to(x.dtype) - 1
    return torch.where(x == 0, -torch.inf, torch.where(x.isfinite(), whole, x * x))


def _away(x: torch.Tensor) -> torch.Tensor:
    """The nearest whole number, halves away from zero."""
    low = torch.floor(x.abs())
    return torch.copysign(torch.where(x.abs() - low >= 0.5, low + 1, low), x)


FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    **{name: getattr(torch, name) for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos",
        "cosh", "erf", "erfc", "exp", "exp2", "expm1", "floor", "fmod", "hypot", "isinf", "isnan",
        "lgamma", "log", "log10", "log1p", "log2", "pow", "rsqrt", "signbit", "sin", "sinh",
        "sqrt", "tan", "tanh", "trunc",
    )},
    "fabs": torch.abs,
    "rint": torch.round,
    "nearbyint": torch.round,
    "llrint": torch.round,
    "round": _away,
    "llround": _away,
    "finite": torch.isfinite,
    "powi": torch.pow,
    "exp10": lambda x: torch.pow(10.0, x),
    "cbrt": lambda x: torch.copysign(x.abs().pow(1 / 3), x),
    "rcbrt": lambda x: 1 / torch.copysign(x.abs().pow(1 / 3), x),
    "rhypot": lambda x, y: 1 / torch.hypot(x, y),
    "erfinv": torch.special.erfinv,
    "erfcinv": lambda x: -torch.special.ndtri(x / 2) / 2**0.5,
    "erfcx": torch.special.erfcx,
    "tgamma": _gamma,
    "normcdf": lambda x: torch.erfc(-x / 2**0.5) / 2,
    "normcdfinv": torch.special.ndtri,
    "j0": torch.special.bessel_j0,
    "j1": torch.special.bessel_j1,
    "y0": torch.special.bessel_y0,
    "y1": torch.special.bessel_y1,
    "cyl_bessel_i0": torch.special.i0,
    "cyl_bessel_i1": torch.special.i1,
    "sinpi": lambda x: torch.sin(torch.pi * (x % 2)),
    "cospi": lambda x: torch.cos(torch.pi * (x % 2)),
    "fdim": lambda x, y: torch.where(x > y, x - y, torch.where(x <= y, 0.0, x + y)),
    "saturate": lambda x: torch.clamp(torch.nan_to_num(x, nan=0.0), 0.0, 1.0),
    "logb": _exponent,
    "fdivide": torch.div,
    **{f"{kind}{name}_rn": function for kind in "fd" for name, function in (
        ("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", torch.div),
        ("sqrt", torch.sqrt), ("rcp", torch.reciprocal), ("rsqrt", torch.rsqrt),
    )},
    **dict.fromkeys(("fma", "fma_rn", "fmaf_rn"), lambda x, y, z: x * y + z),
}  # fmt: skip
"""By the name of the function of float64; that of float32 has an ``f`` behind it."""


def known(symbol: str) -> Callable[..., torch.Tensor] | None:
    """What a symbol of the library computes; none where nobody has written it down."""
    name = symbol.removeprefix(_PREFIX).removeprefix("fast_")
    if name in ("isinfd", "isnand", "isfinited", "signbitd"):
        name = name.removesuffix("d").replace("isfinite", "finite")
    return FUNCTIONS.get(name) or FUNCTIONS.get(name.removesuffix("f"))


def _computed(_name: str, _path: str, symbol: str, given: list[Any], kind: Any, _pure: bool) -> Any:
    """In the place of the interpreter's own answer, which is that it cannot."""
    function = known(symbol)
    if function is None:
        raise NotImplementedError(f"{symbol} is not known here: Triton's interpreter has no GPU")
    scalar = kind.scalar
    arguments = [torch.from_numpy(np.array(each.data, dtype=np.float64)) for each in given]
    found = function(*arguments).numpy()
    return interpreter.TensorHandle(found.astype(interpreter._get_np_dtype(scalar)), scalar)


def _interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """With the interpreter's own meaning of operators, which kernels do not hand on."""
    meaning = getattr(interpreter, "interpreter_semantic", None)
    handed = {"_builder": interpreter.interpreter_builder}  # Triton 3.3
    if meaning is not None:
        handed = {"_semantic": meaning}

    def call(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **{**named, **handed})

    return call


def install() -> None:
    """Let this process's interpreter know them."""
    builder = interpreter.interpreter_builder
    compiled = [each.lower() for each in _PRECISIONS if hasattr(ir.INPUT_PRECISION, each)]
    allowed = tuple(dict.fromkeys((*builder.options.allowed_dot_input_precisions, *compiled)))
    builder.options = replace(builder.options, allowed_dot_input_precisions=allowed)
    builder.create_extern_elementwise = _computed
    for name, function in list(vars(nvidia).items()):
        if callable(function) and tl.core.is_builtin(function):
            setattr(nvidia, name, _interpreted(function))
            setattr(public, name, getattr(nvidia, name))
