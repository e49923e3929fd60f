"""Runs what replaces a convolution in Triton's interpreter, in a process of its own."""

from triton_interpreter import HEAD, loaded, runner

__all__ = ["error", "runner"]


def error(text, name, call, layouts) -> float:  # type: ignore[no-untyped-def]
    """How far the written function is off float64, of the largest value."""
    import torch

    module = loaded(HEAD + text)
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
