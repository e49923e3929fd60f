"""Agreement of large tensors, looked at in blocks."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelsmith.evaluate.worker.closeness import close


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(0, 5), max_size=4),
    block=st.integers(1, 40),
    place=st.integers(0, 10_000),
)
def test_blocks_say_what_the_whole_says(shape, block, place):
    a = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    assert close(a, a.clone(), rtol=0, atol=0, block=block)
    if a.numel():
        b = a.clone()
        b.view(-1)[place % b.numel()] += 1
        assert not close(a, b, rtol=0, atol=0.5, block=block)
        assert close(a, b, rtol=0, atol=1.5, block=block)


def test_shapes_must_be_the_same():
    assert not close(torch.zeros(2, 3), torch.zeros(3, 2), rtol=1, atol=1)


@pytest.mark.parametrize("block", [1, 4, 100])
def test_nan_agrees_with_nan_only(block):
    a = torch.tensor([[1.0, float("nan")], [2.0, 3.0]])
    assert close(a, a.clone(), rtol=0, atol=0, block=block)
    assert not close(a, torch.ones(2, 2), rtol=1, atol=1, block=block)


def test_a_transposed_tensor_is_compared_in_logical_order():
    a = torch.arange(12.0).reshape(3, 4)
    assert close(a.t(), a.t().contiguous(), rtol=0, atol=0, block=3)
