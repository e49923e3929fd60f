# mypy: ignore-errors
"""PyTorch's own samples of its operators, in words: run once, in the sandbox."""

import json
import sys
import types
import unittest

import torch

_LITERAL = 512


def _import():
    """Import PyTorch's table of operators, whose module wants a package for tests only."""
    try:
        import expecttest  # noqa: F401
    except ImportError:
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db


class _Unsaid(ValueError):
    """A value that cannot be put in words."""


def _said(value):
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if value is None or isinstance(value, bool | int | float | str):
        if isinstance(value, float) and value != value:
            raise _Unsaid("nan")
        return {"is": value}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value)}
    if isinstance(value, tuple | list | torch.Size):
        return {"list": [_said(each) for each in value], "tuple": not isinstance(value, list)}
    raise _Unsaid(type(value).__name__)


def _tensor(value):
    dtype = str(value.dtype).removeprefix("torch.")
    if value.layout is not torch.strided or value.is_complex():
        raise _Unsaid(dtype)
    said = {"shape": list(value.shape), "dtype": dtype}
    if value.numel() == 0:
        raise _Unsaid("no elements")
    if value.dtype is torch.bool:
        return said
    value = value.detach().double()
    if not bool(torch.isfinite(value).all()):
        raise _Unsaid("not finite")
    if value.is_floating_point() and dtype.startswith(("float", "bfloat")):
        return said | {"low": float(value.min()), "high": float(value.max())}
    if value.numel() > _LITERAL:
        return said | {"low": float(value.min()), "high": float(value.max())}
    return said | {"values": value.long().flatten().tolist()}


def _path(name):
    """How a person calls it."""
    for prefix in ("torch", "torch.Tensor"):
        found = torch if prefix == "torch" else torch.Tensor
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not None:
            return f"{prefix}.{name}"
    return ""


def _operator(op):
    integers = torch.float32 not in op.dtypes
    dtype = torch.int64 if integers else torch.float32
    samples = []
    for sample in op.sample_inputs("cpu", dtype):
        try:
            samples.append(
                {
                    "arguments": [_said(each) for each in (sample.input, *sample.args)],
                    "options": {key: _said(each) for key, each in sample.kwargs.items()},
                }
            )
        except _Unsaid:
            continue
    return {
        "path": _path(op.name),
        "kind": type(op).__name__,
        "samples": samples,
        "integers": integers,
    }


def survey(names):
    """Describe the operators of these names, as JSON."""
    torch.manual_seed(0)
    wanted, found = set(names), {}
    for op in _import():
        if op.name in wanted and op.name not in found:
            try:
                found[op.name] = _operator(op)
            except BaseException as error:
                found[op.name] = {"why": f"{type(error).__name__}: {error}"[:200]}
    return json.dumps(found)
