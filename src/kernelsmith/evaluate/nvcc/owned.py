"""How much of a launch's device time the candidate's own kernels take, without timing anything."""

from kernelsmith.domain.evaluation import Coverage
from kernelsmith.evaluate.nvcc.lane import CudaLane


def coverage_of(lane: CudaLane) -> Coverage | None:
    """Capture one launch on the inputs that lie there, and look at it; none where that fails."""
    if isinstance(lane.capture([0]), str):
        return None
    found = lane.kernels([0], 1)
    own = sum(us for kernel, us in found if kernel.own)
    total = sum(us for _, us in found)
    if total <= 0:
        return None
    return Coverage(own=own / total, library=1 - own / total, samples=len(found))
