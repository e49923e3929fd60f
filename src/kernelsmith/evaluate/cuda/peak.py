"""How much device memory judging a task takes, from the sizes of one forward."""

from dataclasses import dataclass

SLICES = 16
"""Into so many parts at least a sliced float64 run is cut."""
_SLICES_BESIDE = 8
"""The same where its outputs stay on the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What one forward takes, in bytes; the four together are its peak.

    Libraries' workspaces and the allocator's rounding are not in it.
    """

    inputs: int
    weights: int
    """Parameters, buffers and whatever else the module holds."""
    outputs: int
    activations: int
    """What is alive at the fullest moment besides the other three."""
    batched: bool = False
    """Whether every output has as many rows as the first input, so that slices may be taken."""

    def __post_init__(self) -> None:
        if min(self.inputs, self.weights, self.outputs, self.activations) < 0:
            raise ValueError(f"bytes are not negative; got {self}")

    @property
    def side(self) -> int:
        """What a side holds after one launch."""
        return self.weights + self.outputs + self.activations


def predicted_peak(
    f: Footprint, *, sets: int, context_bytes: int, sliced: bool, beside: bool = False,
    widening: int = 2,
) -> int:  # fmt: skip
    """The judge's plan for one evaluation, summed as if all of it were alive at once.

    The trusted process holds one input set of its own, the weights as they are and in float64, the
    eager run, and the float64 run; the arena holds ``sets`` input sets; each of the two sides holds
    weights, an output per set, and what one forward leaves behind; there are three contexts.

    Args:
        f: One forward.
        sets: Input sets in a timed batch.
        context_bytes: What a process takes by having the device at all.
        sliced: Whether the float64 run goes through a part of the batch at a time.
        beside: Whether others use the device, so that its outputs do not go to the host.
        widening: Bytes of float64 for one byte of the task's: 2 for float32, 4 for half.
    """
    if sets < 1:
        raise ValueError(f"a batch has at least one input set; got {sets}")
    exact = widening * (f.inputs + f.outputs + f.activations)
    if sliced and beside:
        exact = widening * f.outputs + -(-exact // _SLICES_BESIDE)
    elif sliced:
        exact = -(-exact // SLICES)
    trusted = f.inputs + (1 + widening) * f.weights + f.outputs + f.activations + exact
    side = f.weights + sets * f.outputs + f.activations
    return trusted + sets * f.inputs + 2 * side + 3 * context_bytes
