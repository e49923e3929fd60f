"""From what the judge saw to what should be changed: the kernel that matters, and its levers."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Kernel
from kernelsmith.propose.rules.levers import Lever
from kernelsmith.propose.rules.occupancy import Limits, limits_of, occupancy, programs
from kernelsmith.propose.rules.space import Parameter

_SHORT_US = 60.0
"""Below this a launch is mostly overhead: how work is handed out decides."""
_LOW_OCCUPANCY = 0.3
_LOW_BANDWIDTH = 0.65
_LIBRARY = 0.5
_SELDOM = {Lever.EXACTNESS: 0.1, Lever.THREADS: 0.6}
"""Levers that are seldom the bottleneck as long as nothing points at them; more exactness never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One thing to try, as strong as ``weight``."""

    lever: Lever
    weight: float
    why: str
    step: int = 0
    """Larger (1), smaller (-1), or either."""
    kernel: str = ""
    """The one kernel that it is about."""

    def is_about(self, parameter: Parameter) -> bool:
        """Whether the parameter is such a lever, of that kernel if it belongs to one."""
        if parameter.acts_on is not self.lever:
            return False
        return not (self.kernel and parameter.kernel) or same_kernel(parameter.kernel, self.kernel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What an evaluation says about where to look."""

    advice: tuple[Advice, ...] = ()
    shares: tuple[tuple[str, float], ...] = ()
    """Share of the time of each of the candidate's own kernels, largest first."""

    def pull(self, parameter: Parameter) -> tuple[float, Advice | None]:
        """How much speaks for changing a parameter, and the strongest reason."""
        reasons = [each for each in self.advice if each.is_about(parameter)]
        strongest = max(reasons, key=lambda each: each.weight, default=None)
        weight = strongest.weight if strongest else _SELDOM.get(parameter.acts_on, 1.0)
        return weight * self._share_of(parameter), strongest

    def _share_of(self, parameter: Parameter) -> float:
        if not parameter.kernel or not self.shares:
            return 1.0
        found = [share for name, share in self.shares if same_kernel(parameter.kernel, name)]
        if not found:
            return 1.0  # another form's name for it
        # A kernel that takes a tenth of the time cannot give back more than that.
        return max(0.02, 4 * sum(found))


def same_kernel(name: str, seen: str) -> bool:
    """Whether a report's name is that of a kernel in the source; some add to it."""
    return seen == name or seen.startswith(f"{name}_") or seen.startswith(f"{name}(")


def diagnosed(evaluation: Evaluation, device: Device | None) -> Diagnosis:
    """Read an evaluation that passed; an empty diagnosis where it says nothing."""
    own = [each for each in evaluation.kernels if each.own and each.share is not None]
    own.sort(key=lambda each: -(each.share or 0.0))
    found = [*_library(evaluation), *_overhead(evaluation)]
    if own:
        found += _kernel(own[0], limits_of(device or evaluation.device), evaluation)
    elif (reached := _bandwidth(evaluation)) is not None and reached < _LOW_BANDWIDTH:
        found.append(_advice(Lever.TILE, 1.5, f"{reached:.0%} of the bandwidth are reached"))
    shares = tuple((each.name, each.share or 0.0) for each in own)
    return Diagnosis(advice=tuple(found), shares=shares)


def _advice(lever: Lever, weight: float, why: str, step: int = 0, kernel: str = "") -> Advice:
    return Advice(lever=lever, weight=weight, why=why, step=step, kernel=kernel)


def _kernel(kernel: Kernel, limits: Limits | None, evaluation: Evaluation) -> list[Advice]:
    """The kernel that takes most of the time: what holds it back."""
    name = kernel.name
    share = f"{name} takes {kernel.share or 0.0:.0%} of the time"
    if kernel.spills:
        why = f"{share} and spills {kernel.spills} bytes of registers"
        return [
            _advice(Lever.TILE, 4.0, why, -1, name),
            _advice(Lever.WARPS, 3.0, why, +1, name),
            _advice(Lever.STAGES, 1.5, why, -1, name),
        ]
    if limits is None:
        return []
    count = programs(kernel)
    if count and count < limits.processors:
        why = f"{share} in only {count} programs for {limits.processors} multiprocessors"
        return [
            _advice(Lever.TILE, 3.0, why, -1, name),
            _advice(Lever.PROGRAMS, 3.0, why, +1, name),
        ]
    fit = occupancy(kernel, limits)
    if fit is not None and fit.share < _LOW_OCCUPANCY and fit.by != "threads":
        why = f"{share} and fills {fit.share:.0%} of a multiprocessor: {fit.by} run out"
        if fit.by == "shared memory":
            return [
                _advice(Lever.STAGES, 3.0, why, -1, name),
                _advice(Lever.TILE, 2.0, why, -1, name),
            ]
        return [
            _advice(Lever.TILE, 2.5, why, -1, name),
            _advice(Lever.WARPS, 2.5, why, +1, name),
        ]
    reached = _bandwidth(evaluation)
    if reached is not None and reached < _LOW_BANDWIDTH:
        why = f"{share} and {reached:.0%} of the bandwidth are reached"
        return [
            _advice(Lever.TILE, 2.0, why, +1, name),
            _advice(Lever.PROGRAMS, 1.5, why, 0, name),
            _advice(Lever.WARPS, 1.5, why, 0, name),
        ]
    return []


def _library(evaluation: Evaluation) -> Sequence[Advice]:
    coverage = evaluation.coverage
    if coverage is None or coverage.library <= _LIBRARY:
        return ()
    why = f"the library takes {coverage.library:.0%} of the time"
    return (
        _advice(Lever.PRODUCT, 6.0, why),
        _advice(Lever.FORM, 2.0, why),
        *(_advice(lever, 2.0, why) for lever in (Lever.THREADS, Lever.PROGRAMS, Lever.WARPS)),
    )


def _overhead(evaluation: Evaluation) -> Sequence[Advice]:
    if evaluation.timing is None:
        return ()
    shortest = min(each.median_us for each in evaluation.timing.workloads)
    if shortest >= _SHORT_US:
        return ()
    why = f"a call takes {shortest:.0f} us: handing out the work decides"
    levers = (Lever.THREADS, Lever.PROGRAMS, Lever.WARPS, Lever.TILE)
    return [_advice(lever, 2.0, why) for lever in levers]


def _bandwidth(evaluation: Evaluation) -> float | None:
    """The lowest share of the bandwidth, unless arithmetic is what binds."""
    bound = [
        each.bandwidth_share
        for each in evaluation.rooflines
        if each.compute_share is None or each.compute_share < each.bandwidth_share
    ]
    return min(bound, default=None)
