"""Runs candidates beside their reference in float64; Triton in its interpreter."""

import copy
import re

from triton_interpreter import HEAD, loaded, runner

__all__ = ["arrived", "error", "runner"]


def error(
    source: str, reference: str, *, seed: int = 0, dtype: str = "float32", entry: str = "ModelNew",
    kept: bool = False, laid: bool = False, arguments: dict[str, object] | None = None,
    init: dict[str, object] | None = None,
) -> tuple[float, float]:  # fmt: skip
    """How far a candidate and eager are off in float64's eyes, of each result's largest value.

    ``kept`` says that the reference's own ``forward`` may run; else it must not. ``laid`` says that
    results must lie in memory as eager's do.
    """
    import torch

    names: dict[str, object] = {}
    exec(reference, names)
    torch.manual_seed(seed)
    inputs = names["get_inputs"](**(arguments or {}))  # type: ignore[operator]
    given = names["get_init_inputs"](**(init or {}))  # type: ignore[operator]
    kind = getattr(torch, dtype)
    model = names["Model"](*given).eval()  # type: ignore[operator]
    for each in model.buffers():
        if each.is_floating_point() and each.dim() == 1:
            each.data = torch.rand_like(each) + 0.5  # running statistics that do something
    made = _module(source).ModelNew(*given).eval()
    made.load_state_dict(model.state_dict())
    model, made = model.to(kind), made.to(kind)
    inputs = [each.to(kind) if _floats(each) else each for each in inputs]
    before = copy.deepcopy(inputs)
    if not kept:
        for part in made.modules():
            if hasattr(part, "plain"):
                part.plain = _forbidden
    with torch.no_grad():
        found, eager = _listed(made(*inputs)), _listed(model(*inputs))
        exact = _listed(model.double()(*[_wide(each) for each in inputs]))
    same = [
        torch.allclose(a, b, 0, 0, True) if isinstance(a, torch.Tensor) else a == b
        for a, b in zip(before, inputs, strict=True)
    ]
    assert all(same), "inputs changed"
    assert [(each.shape, each.dtype) for each in found] == [
        (each.shape, each.dtype) for each in eager
    ]
    if laid:
        assert [_strides(each) for each in found] == [_strides(each) for each in eager]
    return _worst(found, exact), _worst(eager, exact)


def _strides(value):  # type: ignore[no-untyped-def]
    """Those that matter: of dimensions with more than one element."""
    return [s for s, n in zip(value.stride(), value.shape, strict=True) if n > 1]


def _wide(value):  # type: ignore[no-untyped-def]
    return value.double() if _floats(value) else value


def _floats(value) -> bool:  # type: ignore[no-untyped-def]
    return hasattr(value, "is_floating_point") and value.is_floating_point()


def _forbidden(*_: object) -> None:
    raise AssertionError("the reference was run in place of the kernel")


def _listed(value):  # type: ignore[no-untyped-def]
    if isinstance(value, tuple | list):
        return [part for each in value for part in _listed(each)]
    return [value]


def _worst(found, exact) -> float:  # type: ignore[no-untyped-def]
    import torch

    worst = 0.0
    for a, b in zip(found, exact, strict=True):
        same = torch.isnan(a) == torch.isnan(b)
        if not bool(same.all()):
            return float("inf")
        off = (a.double() - b).abs().nan_to_num(0.0, float("inf"), float("inf")).max()
        worst = max(worst, float(off / b.abs().nan_to_num(0.0).max().clamp_min(1e-30)))
    return worst


def _module(text: str):  # type: ignore[no-untyped-def]
    from triton.runtime.interpreter import interpreter_builder

    if "bf16x6" in interpreter_builder.options.allowed_dot_input_precisions:
        return loaded(text)
    # The interpreter knows nothing finer than float32: Triton's own schemes stand for it.
    return loaded(re.sub(r"""(["'])bf16x[36]\1""", '"ieee"', text))


def arrived(wait: str, programs: int, goal: int, *, start: int = 0) -> int:
    """The counter when so many programs, one after the other, have waited for it to be ``goal``."""
    import torch

    meeting = "@triton.jit\ndef meeting(counter, goal):\n    wait(counter, goal)\n"
    counter = torch.full((1,), start, dtype=torch.int32)
    loaded(HEAD + wait + meeting).meeting[(programs,)](counter, goal)
    return int(counter)
