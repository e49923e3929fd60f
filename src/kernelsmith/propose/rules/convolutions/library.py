"""The library's convolutions in a call, as all who replace them read them."""

from collections.abc import Iterator

from kernelsmith.propose.rules.compiler.call import Call, Library, Listed, Operand
from kernelsmith.propose.rules.kinds.sizes import Three
from kernelsmith.propose.rules.products.tensors import Tensors

DTYPES = ("float32", "float16", "bfloat16")
"""That kernels of our own know."""


def library_convolutions(call: Call) -> Iterator[tuple[int, Library, Tensors]]:
    """The library's, each with what is known of the tensors when its turn comes."""
    tensors = Tensors(call)
    for at, step in enumerate(call.steps):
        if isinstance(step, Library) and step.target == "torch.convolution":
            yield at, step, tensors
        tensors.follow(step)


def listed(operand: Operand) -> tuple[int, ...]:
    """The numbers of a list, such as a stride's."""
    assert isinstance(operand, Listed)
    return tuple(each for each in operand.items if isinstance(each, int))


def three(values: tuple[int, ...], missing: int) -> Three:
    """One for each dimension, those that are missing first."""
    z, y, x = (*[missing] * (3 - len(values)), *values)
    return z, y, x
