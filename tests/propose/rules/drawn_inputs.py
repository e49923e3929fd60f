"""Random tensors: values of several sorts, specials among them, dense or not."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from kernelsmith.domain.task import Task

SPECIAL = (float("inf"), float("-inf"), float("nan"), 0.0, -0.0, 1e-42)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A task of one family, drawn at random, and inputs for it in other sizes each time."""

    task: Task
    inputs: Callable[[random.Random], list[torch.Tensor]]
    halves: bool = True
    """Whether it says something in half precision too: not where equals by rounding decide."""


def values(rng: random.Random, shape: Sequence[int], sorts: str = "nuwts") -> torch.Tensor:
    """Normal, uniform, wide, tied or special values, in one of several layouts."""
    made = torch.Generator().manual_seed(rng.randrange(1 << 30))
    strided = rng.random() < 0.3 and len(shape) > 1
    size = (*shape[:-2], shape[-1], shape[-2]) if strided else tuple(shape)
    found = torch.randn(size, generator=made)
    match rng.choice(sorts):
        case "u":
            found = torch.rand(size, generator=made)
        case "w":
            found *= 10 ** (torch.rand(size, generator=made) * 5 - 3)
        case "t":
            found = (found * 2).round()
        case "s" if found.numel():
            for _ in range(rng.randint(1, 3)):
                found.view(-1)[rng.randrange(found.numel())] = rng.choice(SPECIAL)
    if strided:
        return found.transpose(-2, -1)
    if rng.random() < 0.2 and found.dim():
        return torch.stack([found, found + 1], -1)[..., 0]
    return found


def numbers(rng: random.Random, shape: Sequence[int], count: int) -> torch.Tensor:
    """Class numbers or rows of a table."""
    made = torch.Generator().manual_seed(rng.randrange(1 << 30))
    return torch.randint(0, count, tuple(shape), generator=made)


_UNARY = (
    "F.relu({})", "F.gelu({})", "F.gelu({}, approximate='tanh')", "torch.tanh({})", "F.silu({})",
    "torch.sigmoid({})", "F.softplus({})", "F.mish({})", "F.elu({}, alpha=0.7)", "F.selu({})",
    "F.leaky_relu({}, 0.2)", "F.hardswish({})", "F.hardsigmoid({})", "({}).clamp(-1.5, 2.0)",
    "({}).abs()", "torch.exp(-({}).abs())", "torch.log1p(({}).abs())", "({} * 0.5 + 0.25)",
    "torch.erf({})", "F.softsign({})", "F.logsigmoid({})", "F.relu6({})", "({}).square()",
    "torch.sin({})", "torch.expm1({} * 0.1)", "torch.where({0} > 0.1, {0}, 0.3 * {0})",
    "torch.sqrt({})", "torch.log({})", "({}).sign()", "torch.floor({})", "(1.0 / (2 + {}))",
)  # fmt: skip
_ODD = ("sign()", "floor", "where", "1.0 /", "sqrt", "log(")
SMOOTH = tuple(each for each in _UNARY if not any(odd in each for odd in _ODD))
"""Without steps, poles and edges: what is computed before them may differ by a rounding."""


def chain(rng: random.Random, text: str, most: int = 3, *, first: bool = False) -> str:
    """The text with up to so many functions around it; steps only around an input itself."""
    for at in range(rng.randint(0, most)):
        known = _UNARY if first and at == 0 else SMOOTH
        text = rng.choice(known).format(text)
    return text


def sizes(rng: random.Random, rank: int, most: int = 40) -> list[int]:
    """Lengths of dimensions, at times all of them small."""
    return [rng.choice([1, 2, 3, rng.randint(1, most)]) for _ in range(rank)]


def of(shape: Sequence[int]) -> str:
    """How a file makes an input of that shape."""
    return f"torch.randn({', '.join(map(str, shape))})"
