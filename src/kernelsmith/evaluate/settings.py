"""How thorough the judge is; every number that trades time for certainty."""

from dataclasses import dataclass, replace

from kernelsmith.evaluate.hardware import uses_gpu
from kernelsmith.evaluate.timing.sampling import StopRule

EFFORTS = ("glance", "quick", "usual", "thorough")
_STOP = StopRule(target_width=0.10, max_pairs=5, budget_s=15.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSettings:
    """Timing on a device. The switches are there to show what each of them is worth."""

    sample_us: float = 4000.0
    """How long one batch should last on the baseline's side."""
    sample_bytes: int = 1 << 31
    """How much input and output one batch may take, on each side."""
    max_launches: int = 128
    samples: int = 6
    """Batches of each round."""
    rounds: int = 1
    """Times that a pair lays out its memory and captures anew: placement moves short kernels."""
    calls: int = 4
    """Batches of plain calls, for the ratio that the paper's tables show; 0 leaves it out."""
    examined_s: float = 1.0
    """Seconds of a workload spent on full comparisons of whatever came; beyond, nine batches of ten
    get one only if they are further from the baseline's than what was found right before."""
    alone: int = 3
    """Batches of the baseline before the candidate's process exists."""
    alone_once: bool = False
    """Whether these are run once a task instead of once a pair, where several judges share the
    device. A pair that does not fit to them is measured again in full."""
    warmups: int = 2
    heat_us: float = 10_000.0
    """How long memory is kept busy before a batch that lives off it (3,000 did not settle an H200);
    smaller batches find the caches swept. 0: neither."""
    graph: bool = True
    rotate: bool = True
    interleave: bool = True
    outliers: bool = True

    def __post_init__(self) -> None:
        if min(self.samples, self.rounds, self.alone, self.max_launches) < 1:
            raise ValueError(f"some batches, rounds and launches; got {self}")


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
    rehearse: bool = True
    """Whether kernels are compiled before their turn, where a backend can. No verdict rests on it;
    off, to show what it is worth."""
    gpu: GpuSettings = GpuSettings()
    robust: bool = True
    """Whether odd strides, extremes, empty and size-one inputs are tried."""
    kernels: bool = True
    """Whether it is asked which kernels ran. Off for entrants of our own, which may call anything:
    an entrant of a hundred kernels is replayed a hundred times for that."""
    sanitize: bool = False
    """Whether a pass runs once more under a sanitizer and a profiler, if there are: champions."""

    def __post_init__(self) -> None:
        if self.trials < 5:
            raise ValueError(f"a verdict rests on at least 5 trials; got {self.trials}")
        if self.timeout_s <= 0 or self.max_launches < 1 or self.spot_checks < 1:
            raise ValueError(f"limits are above 0; got {self}")


def effort(name: str, backend: str = "cpu") -> Settings:
    """The settings of one of ``EFFORTS``, from a sweep over many tasks to numbers that are quoted.

    ``usual`` is for search, ``thorough`` for champions.

    A device's clock is steadier than a processor's, and opening a process on it costs a second:
    there a search makes do with one pair, and champions get pairs until one per cent is reached.
    """
    usual = Settings()
    if uses_gpu(backend):
        stop = StopRule(target_width=0.10, min_pairs=1, max_pairs=1, budget_s=60.0)
        if name == "glance":
            gpu = GpuSettings(
                sample_us=2000.0, sample_bytes=1 << 30, samples=4, calls=0, examined_s=0.1,
                alone=2, alone_once=True, warmups=1,
            )  # fmt: skip
            # Odd strides and extremes are a label, no verdict: whoever keeps one asks for it.
            return replace(usual, stop=stop, gpu=gpu, robust=False)
        if name == "quick":
            return replace(usual, stop=stop, gpu=GpuSettings(samples=5, calls=3))
        if name == "thorough":
            # On an H200 rounds of one pair differ by 0.04 to 0.4 %, pairs by hardly more.
            stop = StopRule(target_width=0.01, min_pairs=4, max_pairs=12, budget_s=120.0)
            gpu = GpuSettings(rounds=2)
            return replace(usual, stop=stop, gpu=gpu, sanitize=True)
        return replace(usual, stop=stop)
    if name in ("glance", "quick"):
        return replace(usual, stop=replace(usual.stop, min_pairs=1, max_pairs=1))
    if name == "thorough":
        stop = replace(usual.stop, target_width=0.02, min_pairs=6, max_pairs=16, budget_s=120.0)
        return replace(usual, stop=stop)
    return usual
