"""What a task says that its index outputs point into."""

import torch

from kernelsmith.evaluate.worker.answers import Case
from kernelsmith.evaluate.worker.inputs import make


def test_a_dimension_may_be_counted_from_the_end():
    case = Case(None, lambda x: x.argmax(-1), None, lambda x: {0: (x, -1)}, None)
    chosen = make(lambda: [torch.randn(3, 5)], {}, None, 1, "plain")
    assert chosen is not None
    (output,) = case.answer_after(chosen, [], nudges=0).outputs
    assert output.dim == 1
