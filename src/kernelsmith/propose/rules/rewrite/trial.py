"""Holds a rewritten form against the reference, in the child process."""

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from kernelsmith.propose.rules.rewrite.cases import Case, hollow_case, make_case

_ROW = 4096
_NOTHING = 1e-3


def outline(request: dict[str, Any]) -> dict[str, Any]:
    """Shapes, dtypes and strides of the results, without contents."""
    mode = FakeTensorMode()
    with torch.no_grad():
        case = hollow_case(request["source"], request, mode)
    with mode, torch.no_grad():
        _forbid_plain(case)
        results = _results(case, case.inputs)
    return {
        "outputs": [[list(r.shape), str(r.dtype), list(r.stride())] for r in results],
    }


def compare(request: dict[str, Any]) -> dict[str, Any]:
    """Errors of the reference and of a form against the reference in float64.

    Both get the same weights and inputs: as drawn, with signs, and over four decades; and once the
    weights that the constructor draws, where the others are moved away from them. In float64 alone:
    close together and large, where functions have their jumps and their ends, and with infinities
    and a NaN, where the form's rules hold for them (``all_values``).
    """
    dtype = request["dtype"]
    with torch.no_grad():
        exact = _prepared(request["source"], request, "float64")
        doubled = _prepared(request["doubled"], request, "float64")
        written = _prepared(request["source"], request, dtype)
        form = _prepared(request["form"], request, dtype)
        for each in (doubled, form):
            _forbid_plain(each)
        found: list[dict[str, Any]] = []
        for variant in ("initial", "plain", "negative", "wide"):
            state = {} if exact.model is None else _weights(exact.model, variant == "initial")
            for each in (exact, doubled, written, form):
                if each.model is not None:
                    each.model.load_state_dict(state)
            inputs = [_varied(each, variant) for each in exact.inputs]
            answers = _results(exact, _copies(inputs, exact))
            found.append(
                {
                    "variant": variant,
                    "double": _worst(_results(doubled, _copies(inputs, doubled)), answers),
                    "written": _worst(_results(written, _copies(inputs, written)), answers),
                    "form": _worst(_results(form, _copies(inputs, form)), answers),
                }
            )
        for variant in ("near", "large", "odd") if request["all_values"] else ("near", "large"):
            inputs = [_varied(each, variant) for each in exact.inputs]
            answers = _results(exact, _copies(inputs, exact))
            if request["all_values"] or all(bool(each.isfinite().all()) for each in answers):
                worst = _worst(_results(doubled, _copies(inputs, doubled)), answers)
                found.append({"variant": variant, "double": worst, "written": 0.0, "form": 0.0})
    return {"found": found}


def _prepared(source: str, request: dict[str, Any], dtype: str | None) -> Case:
    torch.manual_seed(0)
    return make_case(source, request, dtype)


def _forbid_plain(case: Case) -> None:
    """A form must not take its way out: what is compared is what was rewritten."""

    def refuse(*_: Any) -> None:
        raise RuntimeError("the form took the written way")

    if case.model is not None and hasattr(case.model, "plain"):
        case.model.plain = refuse
    elif case.model is None and "plain" in case.call.__globals__:
        case.call.__globals__["plain"] = refuse


def _weights(model: torch.nn.Module, same: bool) -> dict[str, torch.Tensor]:
    """The weights drawn, or others near them: none constant, and variances positive."""
    generator = torch.Generator().manual_seed(1)
    state = {}
    for key, value in model.state_dict().items():
        if value.is_floating_point() and not same:
            noise = torch.randn(value.shape, generator=generator, dtype=torch.float64)
            spread = float(value.double().std(correction=0)) if value.numel() else 0.0
            value = value + 0.3 * max(spread, 0.1) * noise.to(value.dtype)
            if key.endswith("var"):
                value = value.abs() + 0.1
        state[key] = value.to(torch.float32).double() if value.is_floating_point() else value
    return state


def _varied(value: Any, variant: str) -> Any:
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    generator = torch.Generator().manual_seed(2)
    value = value.to(torch.float32).double()
    match variant:
        case "initial" | "plain":
            return value
        case "near":
            return value * 0.1 + 0.5
        case "large":
            return value * 1e3
        case "odd":
            flat = value.flatten()
            for odd in (torch.inf, -torch.inf, torch.nan) if len(flat) else ():
                flat[torch.randint(0, len(flat), (), generator=generator)] = odd
            return flat.reshape(value.shape)
    signs = torch.randint(0, 2, value.shape, generator=generator) * 2.0 - 1
    if variant == "wide":
        signs = signs * 10 ** (torch.rand(value.shape, generator=generator) * 4 - 2)
    return (value * signs).to(torch.float32).double()


def _copies(inputs: list[Any], like: Case) -> list[Any]:
    return [
        value.to(model.dtype, copy=True) if isinstance(value, torch.Tensor) else value
        for value, model in zip(inputs, like.inputs, strict=True)
    ]


def _results(case: Case, inputs: list[Any]) -> list[torch.Tensor]:
    result = case.call(*inputs)
    return [result] if isinstance(result, torch.Tensor) else list(result)


def _worst(found: list[torch.Tensor], exact: list[torch.Tensor]) -> float:
    return max((_error(f, e) for f, e in zip(found, exact, strict=True)), default=0.0)


def _error(found: torch.Tensor, exact: torch.Tensor) -> float:
    """The worst row's error, as the judge takes it; infinite where NaN or infinities differ."""
    if found.shape != exact.shape:
        return float("inf")
    if not exact.is_floating_point():
        return 0.0 if torch.equal(found, exact) else float("inf")
    f, e = found.double().reshape(-1), exact.double().reshape(-1)
    finite = torch.isfinite(e)
    if not torch.equal(torch.isfinite(f), finite):
        return float("inf")
    if not torch.equal(f[~finite].nan_to_num(nan=0.0), e[~finite].nan_to_num(nan=0.0)):
        return float("inf")
    f, e = torch.where(finite, f, 0.0), torch.where(finite, e, 0.0)
    length = exact.shape[-1] if exact.dim() > 1 and 16 <= exact.shape[-1] <= _ROW else e.numel()
    if not length:
        return 0.0
    rows, base = (f - e).reshape(-1, length).norm(dim=1), e.reshape(-1, length).norm(dim=1)
    floor = float(e.square().mean().sqrt()) * length**0.5
    # results that cancel to nothing are noise: what counts is that they are small
    scale = base.clamp(min=max(floor, _NOTHING * length**0.5))
    return float((rows / scale).max())
