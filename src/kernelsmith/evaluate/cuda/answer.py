"""Answers that stay on the device: the judge holds their form and asks for distances."""

from dataclasses import dataclass
from typing import Protocol

from kernelsmith.domain.task import Tolerance
from kernelsmith.evaluate.checks.answer import Budget, Kind, Measured, Mismatch
from kernelsmith.evaluate.checks.floats import EAGER_SLACK
from kernelsmith.evaluate.tensors import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A tensor in device memory: which allocation, where in it, and in what form."""

    allocation: str
    """``arena``, or the handle of one of a lane's own allocations."""
    offset: int
    spec: Spec

    def to_message(self) -> dict[str, object]:
        """As the trusted process reads it."""
        return {
            "in": self.allocation,
            "offset": self.offset,
            "dtype": self.spec.dtype,
            "shape": list(self.spec.shape),
            "strides": list(self.spec.strides),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the trusted process measured of one tensor."""

    error: float = 0.0
    strangers: int = 0
    excess: float = 0.0
    wrong: int = 0
    message: str | None = ""
    """Of wrong indices; none where a plain comparison must say it."""


class Ruler(Protocol):
    """Measures tensors against one answer, in the trusted process."""

    def measure(self, place: Placed, *, allowed: float, tolerance: Tolerance) -> Seen:
        """Numbers of one comparison."""
        ...

    def error(self, place: Placed) -> float:
        """How far off, whatever is allowed."""
        ...

    def eager_excess(self, tolerance: Tolerance) -> float:
        """By how much eager itself leaves the tolerance."""
        ...

    def explain(
        self, place: Placed, *, kind: Kind, budget: Budget, tolerance: Tolerance
    ) -> Mismatch | Measured:
        """Say in words what is wrong."""
        ...

    def magnified(self) -> float:
        """How far off the output is in float64 on inputs that carry 18 bits."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceAnswer:
    """One output of the reference on one input set, known by its form and by numbers."""

    path: str
    eager: Spec
    eager_error: float
    scale: float
    """Root of the mean square of what is exact."""
    is_finite: bool
    ruler: Ruler

    def check(self, found: Placed, *, budget: Budget, tolerance: Tolerance) -> Mismatch | Measured:
        """Hold one output of a candidate against it; the same rules as for ``check_output``."""
        for what, kind, got, wanted in (
            ("dtype", Kind.DTYPE, found.spec.dtype, self.eager.dtype),
            ("shape", Kind.SHAPE, found.spec.shape, self.eager.shape),
        ):
            if got != wanted:
                message = f"{self.path}: expected {what} {wanted}, found {got}"
                return Mismatch(path=self.path, kind=kind, message=message)
        seen = self.ruler.measure(found, allowed=budget.allowed, tolerance=tolerance)
        if not self.eager.is_float:
            if seen.wrong and seen.message:
                return Mismatch(path=self.path, kind=Kind.INDEX, message=seen.message)
            if seen.wrong:
                return self.ruler.explain(
                    found, kind=Kind.INTEGER, budget=budget, tolerance=tolerance
                )
            return Measured(path=self.path, error=0.0, eager_error=0.0)
        wrong = self._wrong(seen, budget, tolerance)
        if wrong is None:
            return Measured(path=self.path, error=seen.error, eager_error=budget.eager_error)
        return self.ruler.explain(found, kind=wrong, budget=budget, tolerance=tolerance)

    def _wrong(self, seen: Seen, budget: Budget, tolerance: Tolerance) -> Kind | None:
        if seen.strangers:
            return Kind.NONFINITE
        if not seen.error <= budget.allowed:
            return Kind.ERROR
        if seen.excess > 1.0 and seen.excess > EAGER_SLACK * self.ruler.eager_excess(tolerance):
            return Kind.TOLERANCE
        return None
