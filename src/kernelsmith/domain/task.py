"""A task: what to compute, on which workloads, how exactly, and with how much library code.

Forward computation only, for now: nothing here says how gradients would be checked.
"""

import ast
import math
from dataclasses import dataclass
from enum import StrEnum

Scalar = str | int | float | bool | None

DTYPES = (
    "float64", "float32", "float16", "bfloat16",
    "int64", "int32", "int16", "int8", "uint8", "bool",
)  # fmt: skip


class Weights(StrEnum):
    """How a candidate receives the reference's parameters."""

    DYNAMIC = "dynamic"
    """By state-dict key; the judge rewrites them in place at any time between launches."""
    STATIC = "static"
    """By state-dict key, then fixed: an untimed ``prepare()`` may repack them, as engines do."""
    SEED = "seed"
    """Both sides construct under the same seed (foreign suites); results carry a label."""


class Library(StrEnum):
    """How much of the time may be spent in code that the candidate did not build."""

    ANY = "any"
    """All of it: calling torch is a legitimate answer."""
    SOME = "some"
    """Some of it: part of the time must be the candidate's own."""
    NONE = "none"
    """None beyond allocation and glue: the candidate must do the work itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """An upper bound on element-wise error that holds besides the judge's own error budget."""

    atol: float = 1e-2
    rtol: float = 1e-2

    def __post_init__(self) -> None:
        if not (self.atol >= 0 and self.rtol >= 0 and math.isfinite(self.atol + self.rtol)):
            raise ValueError(f"tolerances are finite and not negative; got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One concrete set of shapes, dtypes and an input recipe."""

    name: str = "default"
    arguments: tuple[tuple[str, Scalar | tuple[Scalar, ...]], ...] = ()
    """Keyword arguments for ``get_inputs``."""
    init: tuple[tuple[str, Scalar | tuple[Scalar, ...]], ...] = ()
    """Keyword arguments for ``get_init_inputs``."""
    dtype: str | None = None
    """Floating inputs and weights are cast to this; as written where it is absent."""
    held_out: bool = False
    """Checked for correctness, never timed, never shown to a proposer."""

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a workload needs a name")
        if self.dtype is not None and self.dtype not in DTYPES:
            raise ValueError(f"no dtype {self.dtype!r}; known are {', '.join(DTYPES)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A reference (KernelBench form) with everything the judge needs to hold others against it."""

    name: str
    source: str
    """Defines ``Model`` (or the function ``entry``), ``get_inputs``, ``get_init_inputs``."""
    entry: str = "Model"
    workloads: tuple[Workload, ...] = (Workload(),)
    tolerance: Tolerance = Tolerance()
    compute_dtype: str | None = None
    """The lowest precision a candidate may compute in; the workload's own where absent."""
    weights: Weights = Weights.DYNAMIC
    library: Library = Library.SOME
    training: bool = False
    """Whether the module runs in train mode."""
    structure: tuple[str, ...] = ()
    """What the inputs promise (``sorted``, ``triangular``, ``probabilities``); empty: nothing,
    and the judge may draw negatives and wide ranges."""
    baseline: str | None = None
    """Source to be measured against instead of the reference run eagerly."""

    def __post_init__(self) -> None:
        names = [workload.name for workload in self.workloads]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"workloads need names of their own; got {names}")
        if all(workload.held_out for workload in self.workloads):
            raise ValueError("at least one workload must be timed; all are held out")
        if self.compute_dtype is not None and self.compute_dtype not in DTYPES:
            raise ValueError(f"no dtype {self.compute_dtype!r}; known are {', '.join(DTYPES)}")

    @property
    def is_function(self) -> bool:
        """Whether the reference is a plain function; a candidate then defines that name too."""
        return self.entry != "Model"

    @property
    def candidate_entry(self) -> str:
        """What a candidate must define."""
        return self.entry if self.is_function else "ModelNew"


def cuda_in(source: str) -> str | None:
    """The verified CUDA candidate that a task's file brings along as its constant ``CUDA``."""
    for node in ast.parse(source).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "CUDA"
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            return node.value.value.lstrip("\n")
    return None
