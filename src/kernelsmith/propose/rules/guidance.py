"""A small learned model over a run's own measurements: which variant is likely to gain.

A Gaussian process over the parameters (Matern 5/2, one length for all) predicts the logarithm of
the speed-up; what failed counts as half as fast as the slowest that passed. Variants are ranked by
mean plus a fifth of the deviation: a run has few evaluations, so what is known counts more than
what is not. ``docs/design/005-rules.md`` says what it was chosen against.
"""

import math
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelsmith.propose.rules.levers import Lever
from kernelsmith.propose.rules.space import Space
from kernelsmith.propose.rules.statistics import Trial

ENOUGH = 6
"""Measurements from which on the model is asked."""
_FAILED = math.log(0.5)
_CURIOSITY = 0.2
_CAREFUL = math.log(0.65)
"""What a value that is there to be exact costs, as long as nobody has measured it: 1.5 times as
long as the same variant without, in 181 pairs of recorded measurements on processors (sums in
double 1.2, the C library's functions 1.8). Without that, each family tries them to find out."""
_NOISE = 1e-3
"""Variance of a measurement's logarithm below which the model does not look."""
_ONE_AT_A_TIME = threading.Lock()
"""What Python warns of is set for all threads, and scikit-learn sets it too: one thread that leaves
would let another's warnings out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One variant: whose it is, and what was chosen."""

    family: str
    chosen: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the model expects of one variant."""

    speedup: float
    promise: float
    """Logarithm of the speed-up that it may have: the mean and a little more where it is unsure."""
    measured: int
    """On how many measurements that rests."""


def is_available() -> bool:
    """Whether scikit-learn can be loaded; nothing else here needs it."""
    try:
        _sklearn("gaussian_process")
    except ImportError:
        return False
    return True


def expected(
    trials: Sequence[Trial], points: Sequence[Point], spaces: Mapping[str, Space]
) -> list[Expected] | None:
    """What to expect of each point; none while too little was measured or nothing can learn."""
    known = [each for each in trials if each.failed or each.gain is not None]
    passed = [each.gain for each in known if each.gain is not None]
    if len(known) < ENOUGH or len(passed) < 2 or not points or not is_available():
        return None
    low = min(passed) + _FAILED
    tried = [Point(family=each.family, chosen=each.chosen) for each in known]
    # The model is asked for what is left when that is taken off, which is nothing if it was right.
    usual = np.array([_usual(each, spaces[each.family]) for each in (*tried, *points)])
    gains = np.array([low if each.gain is None else each.gain for each in known])
    values = gains - usual[: len(known)]
    rows = encoded([*tried, *points], spaces)
    middle, spread = float(values.mean()), float(values.std()) or 1.0
    with _ONE_AT_A_TIME:
        model = _fitted(rows[: len(known)], (values - middle) / spread, noise=_NOISE / spread**2)
        mean, deviation = model.predict(rows[len(known) :], return_std=True)
    return [
        Expected(
            speedup=math.exp(middle + spread * float(m) + float(u)),
            promise=middle + spread * float(m + _CURIOSITY * d) + float(u),
            measured=len(known),
        )
        for m, d, u in zip(mean, deviation, usual[len(known) :], strict=True)
    ]


def _usual(point: Point, space: Space) -> float:
    """What is known of a variant before anything was measured, as a logarithm."""
    chosen = dict(point.chosen)
    careful = [
        each
        for each in space.parameters
        if each.acts_on is Lever.EXACTNESS and chosen[each.name] == each.safe != each.default
    ]
    return _CAREFUL * len(careful)


def encoded(points: Sequence[Point], spaces: Mapping[str, Space]) -> NDArray[np.float64]:
    """Rows of numbers: places of ordered values, one column per unordered one and per family."""
    columns: dict[tuple[str, str, str], list[float]] = {}
    for at, point in enumerate(points):
        for key, value in _coordinates(point, spaces[point.family]).items():
            columns.setdefault(key, [0.0] * len(points))[at] = value
    varied = [each for _, each in sorted(columns.items()) if len(set(each)) > 1]
    return np.array(varied).T if varied else np.zeros((len(points), 1))


def _coordinates(point: Point, space: Space) -> dict[tuple[str, str, str], float]:
    found = {(point.family, "", ""): 1.0}
    chosen = dict(point.chosen)
    for each in space.parameters:
        value = chosen[each.name]
        if each.ordered and len(each.choices) > 2:
            place = each.choices.index(value) / (len(each.choices) - 1)
            found[(point.family, each.name, "")] = place
        else:
            found[(point.family, each.name, value)] = 1.0
    return found


def _fitted(rows: NDArray[np.float64], values: NDArray[np.float64], *, noise: float) -> Any:
    """Fit one length and one noise level; deterministic."""
    process, kernels = _sklearn("gaussian_process"), _sklearn("gaussian_process.kernels")
    kernel = kernels.Matern(length_scale=1.5, length_scale_bounds=(0.3, 20.0), nu=2.5)
    # Where all gains are alike, all that is left to see is noise.
    least = min(max(noise, 1e-4), 0.9)
    kernel += kernels.WhiteKernel(noise_level=max(0.05, least), noise_level_bounds=(least, 1.0))
    model = process.GaussianProcessRegressor(kernel=kernel, random_state=0)
    with warnings.catch_warnings():
        # A length at its bound is no news for anyone.
        warnings.simplefilter("ignore", _sklearn("exceptions").ConvergenceWarning)
        return model.fit(rows, values)


def _sklearn(part: str) -> Any:
    return import_module(f"sklearn.{part}")
