"""What is added to a product's tile as it is stored."""

from kernelsmith.propose.rules.products.epilogue import Bias
from kernelsmith.propose.rules.products.finish import _biased

AXES = ("batch", "rows", "columns")


def test_a_bias_of_one_number_is_read_without_a_mask():
    """Triton has no masks of many for a pointer to one."""
    assert _biased(Bias(strides=(0, 0, 0)), AXES, ", mask=inside") == [
        "value += tl.load(bias_ptr + 0).to(tl.float32)"
    ]


def test_a_bias_of_many_is_read_inside_only():
    (line,) = _biased(Bias(strides=(0, 0, 1)), AXES, ", mask=inside")
    assert "columns, mask=inside, other=0.0)" in line
