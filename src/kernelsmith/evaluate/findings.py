"""What is known of a candidate so far; becomes an evaluation whatever happens next."""

from dataclasses import dataclass, field

from kernelsmith.domain.evaluation import Accuracy, Coverage, Kernel, LabelName, Roofline
from kernelsmith.domain.task import Workload
from kernelsmith.evaluate.measure import Measurement
from kernelsmith.evaluate.outcome import Worst
from kernelsmith.evaluate.spent import Spent


@dataclass(slots=True)
class Findings:
    """Collected by the judge while it checks and times one candidate."""

    labels: dict[LabelName, str] = field(default_factory=dict)
    accuracy: list[Accuracy] = field(default_factory=list)
    coverage: Coverage | None = None
    output: str = ""
    is_float32: bool = False
    """Whether inputs, weights and outputs of the workload at hand are, and nothing less will do."""
    coarse: list[tuple[Workload, Worst]] = field(default_factory=list)
    """Errors in such workloads that are no rounding of float32."""
    kernels: tuple[Kernel, ...] = ()
    rooflines: list[Roofline] = field(default_factory=list)
    log: tuple[tuple[str, str], ...] = ()
    short: str = ""
    """What was short of memory beside others, so that all was done again."""
    elsewhere: str = ""
    """In which outputs eager was off otherwise in a process as it is timed."""
    spent: Spent = field(default_factory=Spent)

    def begin_anew(self) -> None:
        """Forget what is found again; how that came about stays in the log."""
        self.labels.clear()
        self.accuracy.clear()
        self.coarse.clear()
        self.rooflines.clear()

    def add(self, measured: Measurement) -> None:
        """Take over what the clock said besides times."""
        if measured.noisy:
            self.labels[LabelName.NOISY] = measured.noisy
        if measured.no_graph:
            self.labels[LabelName.NO_GRAPH] = measured.no_graph
        if measured.throttled:
            self.labels[LabelName.THROTTLED] = measured.throttled
        self.kernels = measured.kernels or self.kernels
        self.log = measured.log or self.log
        self.rooflines += [measured.roofline] if measured.roofline is not None else []
