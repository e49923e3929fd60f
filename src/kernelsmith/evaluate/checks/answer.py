"""What the reference answered, how far off a candidate may be, and how far off it was."""

import math
from dataclasses import dataclass
from enum import StrEnum

from kernelsmith.evaluate.tensors import EPSILON, Float64, Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """One output of the reference on one input set."""

    path: str
    """``out``, ``out[0]``, ``out['loss']``, ``input[1]`` (mutated), ``buffer running_mean``."""
    exact: Tensor
    """From the float64 run: floating outputs as float64; integers and bools as they came."""
    eager: Tensor
    """As PyTorch eager gave it, with the dtype and shape that a candidate must match."""
    alternatives: tuple[Tensor, ...] = ()
    """Integers and bools: what the reference says on inputs nudged within the budget."""
    scores: Float64 | None = None
    """Index outputs: what the indices point into."""
    dim: int | None = None
    """Index outputs: the dimension of ``scores`` that they index."""

    def __post_init__(self) -> None:
        if self.exact.shape != self.eager.shape:
            raise ValueError(
                f"{self.path}: float64 gives shape {self.exact.shape}, eager {self.eager.shape}"
            )
        if self.exact.is_float is not self.eager.is_float:
            raise ValueError(
                f"{self.path}: float64 gives {self.exact.dtype}, eager {self.eager.dtype}"
            )
        if (self.scores is None) is not (self.dim is None):
            raise ValueError(f"{self.path}: scores and the dimension indexed go together")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How large the worst row's error may be, in the judge's norm."""

    eager_error: float
    """Eager's worst error of this output over the trials of the workload."""
    compute_dtype: str
    """The lowest precision that the task lets a candidate compute in."""
    k: float = 10.0
    floor_ulps: float = 8.0
    """Where eager is exact or lucky (ReLU), this many units in the last place are allowed."""

    def __post_init__(self) -> None:
        if self.compute_dtype not in EPSILON:
            raise ValueError(f"a budget is for {', '.join(EPSILON)}; got {self.compute_dtype!r}")
        if not (0 <= self.eager_error < math.inf and self.k >= 1 and self.floor_ulps >= 0):
            raise ValueError(f"errors and factors are finite and not negative; got {self}")

    @property
    def allowed(self) -> float:
        """The error up to which an output is right."""
        return max(self.k * self.eager_error, self.floor_ulps * EPSILON[self.compute_dtype])


class Kind(StrEnum):
    """In which way an output is wrong."""

    DTYPE = "dtype"
    SHAPE = "shape"
    NONFINITE = "nonfinite"
    """NaN or infinity where the reference has none, or the other way round."""
    ERROR = "error"
    """The worst row exceeds the error budget."""
    TOLERANCE = "tolerance"
    """An element exceeds the task's own tolerance."""
    INTEGER = "integer"
    BOOL = "bool"
    INDEX = "index"
    """An index out of range, taken twice, or pointing at a worse value than the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """Why an output is wrong, in words that a proposer can act on."""

    path: str
    kind: Kind
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """An output that is right, with how far off it and eager are."""

    path: str
    error: float
    eager_error: float
