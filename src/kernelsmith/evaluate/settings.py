"""How thorough the judge is; every number that trades time for certainty."""

from dataclasses import dataclass

from kernelsmith.evaluate.timing.sampling import StopRule

_STOP = StopRule(target_width=0.10, max_pairs=5, budget_s=15.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The defaults are what an evaluation in a search uses; champions get narrower ones."""

    trials: int = 5
    """Input sets drawn plainly, per workload; variants come on top."""
    timeout_s: float = 30.0
    """How long a program may take over one request (building not counted)."""
    stop: StopRule = _STOP
    sample_us: float = 2500.0
    """How long one sample should last at least."""
    sample_bytes: int = 24 << 20
    """How much input one sample may take; fresh inputs are drawn for each."""
    max_launches: int = 512
    warmups: int = 1
    """Unmeasured samples at the start of each pair, at least; more while new memory is touched."""
    profiled: int = 2
    """Samples per pair that are watched for coverage instead of being timed."""
    parts: int = 2
    """Batches per pair in which only some of the inputs are launched, against reading ahead."""
    spot_checks: int = 2
    """Launches of each timed sample whose outputs are compared, chosen afterwards."""
    contention: float = 0.05
    """A sample is dropped when others kept cores from its threads for more than this share."""
    static: bool = True
    """Whether source is read before it runs. Off in tests, to show that behaviour decides."""
    robust: bool = True
    """Whether odd strides, extremes, empty and size-one inputs are tried."""

    def __post_init__(self) -> None:
        if self.trials < 5:
            raise ValueError(f"a verdict rests on at least 5 trials; got {self.trials}")
        if self.timeout_s <= 0 or self.max_launches < 1 or self.spot_checks < 1:
            raise ValueError(f"limits are above 0; got {self}")
