"""Records for tests: each names only the fields that it is about."""

from typing import Any

from kernelsmith.bench.record import Beside, Cost, Point, Record, Winner
from kernelsmith.domain.candidate import CandidateId
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.timing import Ratio

DEVICE = Device(kind="null", name="nowhere", versions=(("torch", "2.13"),))


def ratio(value: float, width: float = 0.02) -> Ratio:
    return Ratio(value=value, low=value * (1 - width / 2), high=value * (1 + width / 2))


def a_point(step: int, **changes: Any) -> Point:
    usual: dict[str, Any] = {"verdict": Verdict.PASSED, "outcome": "new", "speedup": ratio(1.5)}
    return Point(step=step, **{**usual, **changes})


def a_record(**changes: Any) -> Record:
    """A winner at 1.5 beside eager, found in the second of two steps."""
    usual: dict[str, Any] = {
        "entrant": "rules", "entry": "suite/one", "suite": "suite", "backend": "null",
        "verdict": Verdict.PASSED, "device": DEVICE,
        "beside": (Beside(baseline="eager", device=ratio(1.5), tests=6),),
        "points": (
            a_point(0, verdict=Verdict.WRONG, outcome="failed", speedup=None),
            a_point(1, parent=0, is_best=True),
        ),
        "best_step": 1, "cost": Cost(tokens=100, usd=0.5, seconds=3.0), "judge": "1/2",
    }  # fmt: skip
    return Record(**{**usual, **changes})


def failed(**changes: Any) -> Record:
    """Nothing passed."""
    usual: dict[str, Any] = {
        "verdict": Verdict.WRONG, "message": "off by 3", "beside": (), "best_step": None,
        "points": (a_point(0, verdict=Verdict.WRONG, outcome="failed", speedup=None),),
    }  # fmt: skip
    return a_record(**{**usual, **changes})


def won(text: str, path: str) -> Winner:
    from kernelsmith.bench.ledger import sha256

    return Winner(candidate=CandidateId("c0ffee"), path=path, sha256=sha256(text))
