"""Measures a candidate's tensors against one answer, in the trusted process that holds it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelsmith.domain.task import Tolerance
from kernelsmith.evaluate.checks.answer import Answer, Budget, Kind, Measured, Mismatch
from kernelsmith.evaluate.checks.output import check_output
from kernelsmith.evaluate.cuda.answer import Placed, Seen

if TYPE_CHECKING:
    from kernelsmith.evaluate.cuda.oracle import DeviceOracle

_ANYTHING = 1e30
_SHOWN = 1 << 22
"""Elements up to which a wrong output is copied to the host, where the hints are found."""


@dataclass(frozen=True, slots=True)
class DeviceRuler:
    """Asks the trusted process about one answer."""

    oracle: "DeviceOracle"
    id: int
    part: str
    position: int

    def _about(self, place: Placed) -> dict[str, object]:
        return {
            "id": self.id, "part": self.part, "position": self.position,
            "place": place.to_message(),
        }  # fmt: skip

    def measure(self, place: Placed, *, allowed: float, tolerance: Tolerance) -> Seen:
        """Numbers of one comparison."""
        said = self.oracle._ask(
            {
                "do": "compare", **self._about(place), "allowed": allowed,
                "atol": tolerance.atol, "rtol": tolerance.rtol,
            }
        )  # fmt: skip
        if "wrong" in said:
            return Seen(wrong=int(said["wrong"]), message=said["message"])
        return Seen(
            error=float(said["off"]), strangers=int(said["strangers"]),
            excess=float(said["excess"]),
        )  # fmt: skip

    def error(self, place: Placed) -> float:
        """How far off, whatever is allowed."""
        return self.measure(place, allowed=_ANYTHING, tolerance=Tolerance()).error

    def eager_excess(self, tolerance: Tolerance) -> float:
        """By how much eager itself leaves the tolerance."""
        said = self.oracle._ask(
            {
                "do": "eager_excess", "id": self.id, "part": self.part,
                "position": self.position, "atol": tolerance.atol, "rtol": tolerance.rtol,
            }
        )  # fmt: skip
        return float(said["excess"])

    def explain(
        self, place: Placed, *, kind: Kind, budget: Budget, tolerance: Tolerance
    ) -> Mismatch | Measured:
        """Say in words what is wrong."""
        if place.spec.count > _SHOWN and place.spec.is_float:
            said = self.oracle._ask(
                {
                    "do": "explain", **self._about(place), "kind": kind.value,
                    "allowed": budget.allowed, "eager_error": budget.eager_error,
                    "atol": tolerance.atol, "rtol": tolerance.rtol,
                }
            )  # fmt: skip
            path = str(said["path"])
            return Mismatch(path=path, kind=kind, message=str(said["message"]))
        said = self.oracle._ask({"do": "show", **self._about(place)})
        read = self.oracle._host_leaf
        answer = Answer(
            path=str(said["path"]),
            eager=read(said["eager"]).tensor,
            exact=read(said["exact"]).tensor,
            alternatives=tuple(read(each).tensor for each in said["alternatives"]),
        )
        return check_output(read(said["found"]).tensor, answer, budget=budget, tolerance=tolerance)

    def magnified(self) -> float:
        """How far off the output is in float64 on inputs that carry 18 bits."""
        if self.part != "outputs" or "magnified" in self.oracle.avoided:
            return 0.0
        said = self.oracle._ask({"do": "magnified", "id": self.id, "runs": 4})
        return float(said["errors"][self.position])
