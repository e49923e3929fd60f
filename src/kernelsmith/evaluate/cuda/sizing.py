"""How much of a device's memory judging a task takes beside others, by one forward."""

from dataclasses import dataclass

from kernelsmith.evaluate.cuda.peak import Footprint, predicted_peak
from kernelsmith.evaluate.rooms import rooms_for

ROOM_BESIDE = 0.01
"""Of the device's memory, for inputs that are arranged at once."""
KEPT = 1 / 8
"""Of its rooms, for input sets that are kept at hand, and again for answers."""
_CONTEXT_BYTES = 600 << 20
"""What a process takes of the device before it has done anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What one forward says about the memory that a workload will take."""

    footprint: Footprint | None
    """Nothing where the forward could not be measured."""
    free: int
    total: int

    @property
    def peak(self) -> int | None:
        """Of the whole judgement, one input set at a time."""
        return self._at_most(sliced=True)

    @property
    def beside(self) -> int | None:
        """The same beside others, where float64 answers are found in one go if not by batches."""
        batched = self.footprint is not None and self.footprint.batched
        return self._at_most(sliced=batched, beside=True)

    @property
    def program(self) -> float:
        """Share of the device that a program takes while it is checked."""
        f = self.footprint
        if f is None:
            return 0.0
        return (2 * f.weights + f.inputs + f.outputs + f.activations) / self.total

    def _at_most(self, *, sliced: bool, beside: bool = False) -> int | None:
        if self.footprint is None:
            return None
        return predicted_peak(
            self.footprint, sets=1, context_bytes=_CONTEXT_BYTES, sliced=sliced, beside=beside
        )


def rooms_beside(predicted: Predicted, batch_bytes: int) -> int | None:
    """For the fuller of two moments: answers are kept at hand, or both sides are there.

    What is arranged comes on top: inputs, and outputs of the sides.
    """
    if predicted.beside is None or predicted.footprint is None:
        return None
    arranged = max(2 * int(ROOM_BESIDE * predicted.total), 3 * batch_bytes)
    kept = int(2 * KEPT * predicted.beside)
    beyond = max(0, kept - predicted.footprint.side)  # who checks has one side
    return rooms_for(predicted.beside + beyond + arranged, predicted.total)
