"""Runs what replaces a convolution in Triton's interpreter, in a process of its own."""

import importlib.util
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"


def runner() -> ProcessPoolExecutor:
    """A process with Triton's interpreter; it takes seconds to start and serves many runs."""
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_begin)


def _begin() -> None:
    os.environ["TRITON_INTERPRET"] = "1"
    import torch

    torch.set_num_threads(1)


def error(text, name, call, layouts) -> float:  # type: ignore[no-untyped-def]
    """How far the written function is off float64, of the largest value."""
    import torch

    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(HEAD + text)
    spec = importlib.util.spec_from_file_location(Path(file.name).stem, file.name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (step,) = call.steps
    torch.manual_seed(0)
    tensors = []
    for each, channels_last in zip(call.arguments, layouts, strict=True):
        drawn = torch.randn(each.shape)
        if channels_last:
            drawn = drawn.movedim(1, -1).contiguous().movedim(-1, 1)
        tensors.append(drawn)
    found = getattr(module, name)(*tensors, step.shape, step.stride)
    given = dict(step.keywords)
    lists = [list(given[name].items) for name in ("stride", "padding", "dilation")]
    exact = torch.convolution(
        *(each.double() for each in tensors), None, *lists, given["transposed"],
        list(given["output_padding"].items), given["groups"],
    )  # fmt: skip
    assert found.stride() == step.stride, "another layout than the call relies on"
    return float((found.double() - exact).abs().max() / exact.abs().max())
