"""An audit: kernels that others published, judged like anyone's, beside what is claimed of them.

Each is matched to a task of a suite, or to the reference that was published with it. Library code
is allowed, since that says nothing about right or wrong; who writes no kernel of its own is marked.
Weights go by state-dict keys; kernels that keep them under other names are matched by seed, as the
suites they were written for do, and are labelled so. A claim is held against a measurement on the
same kind of device only.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kernelsmith.bench.job import task_hash
from kernelsmith.bench.ledger import sha256
from kernelsmith.bench.published.kernel import Published
from kernelsmith.bench.record import Fault
from kernelsmith.bench.suite import Absent, Entry, Suite
from kernelsmith.bench.suites.reading import promised, task_from_text
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Library, Task, Weights
from kernelsmith.domain.timing import Ratio
from kernelsmith.errors import EvaluationLost, SmithError, UsageError
from kernelsmith.evaluate.backend import known_backends, load_backend
from kernelsmith.evaluate.backends.triton import has_gpu
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.evaluate.settings import effort
from kernelsmith.evaluate.tasks import fitting

NEEDS_CUDA = "CUDA source: needs the cuda backend and an NVIDIA GPU"
_KEYS = "must take the reference's state-dict keys"
_NO_GPU = (
    "Torch not compiled with CUDA", "Found no NVIDIA driver", "No CUDA GPUs", "no CUDA-capable",
    "tensors on cuda", "CUDA driver", "is_cuda", "must be on CUDA",
)  # fmt: skip
_FALLBACK = re.compile(r"\bis_cuda\b|device\.type\b|cuda\.is_available")
"""A source that asks where its tensors are may take another way off a GPU."""
_MESSAGE = 1500


class Opinion(StrEnum):
    """What the audit says of a kernel."""

    HOLDS = "holds"
    """Right, and as fast as claimed, on a device like the one of the claim."""
    RIGHT = "right"
    """Right; its speed was claimed for another device, or not claimed, or is not measured here."""
    SLOWER = "slower"
    """Right, and the whole interval lies below the claim, or below 1 without one."""
    WRONG = "wrong"
    """Its outputs are not the reference's."""
    CHEATED = "cheated"
    """It games a benchmark; the evidence says how."""
    REFUSED = "refused"
    """Its source reaches around the benchmark; it was not run."""
    FAILS = "fails"
    """It does not build, crashes or takes too long."""
    UNJUDGED = "unjudged"
    """It could not be judged here; that says nothing against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One kernel with what was found, and the evidence."""

    id: str
    task: str = ""
    language: str
    opinion: Opinion
    verdict: Verdict | None = None
    evidence: str = ""
    claim: float | None = None
    claimed_on: str = ""
    speedup: Ratio | None = None
    call: Ratio | None = None
    if_run: str = ""
    """What a refused one does when it is run all the same: the verdict, and why."""
    worst: str = ""
    """The workload with the largest error: its error, what was allowed, and what eager has."""
    own_kernel: bool = True
    """Whether the source brings a kernel of its own, or calls the library only."""
    labels: tuple[str, ...] = ()
    device: str = ""
    judge: str = ""
    sha256: str = ""
    suite: str = ""
    """Where its task was looked for; empty: only beside it."""
    task_hash: str = ""
    """Of the task that it was judged on; a task that was changed is another."""
    effort: str = ""
    fault: Fault | None = None
    """Whose, where it is unjudged through no doing of its own."""


class Auditor:
    """Judges published kernels, one after the other; processes stay open in between."""

    def __init__(
        self, effort: str = "usual", suite: Suite | None = None, *, timeout_s: float = 120.0
    ) -> None:
        self._effort, self._timeout_s = effort, timeout_s
        self._suite = suite.name if suite is not None else ""
        self._devices: dict[str, str] = {}
        self._gpu = has_gpu()
        self._evaluators: dict[tuple[str, bool], LocalEvaluator] = {}
        self._entries = dict(_by_name(suite)) if suite is not None else None

    def audit(self, kernel: Published) -> Finding:
        """Match one to its task, judge it, and hold it against its claim."""
        named = f"level{kernel.level}/{kernel.number}" if kernel.level else kernel.name
        found = Finding(
            id=kernel.id, task=named, language=kernel.language, opinion=Opinion.UNJUDGED,
            claim=kernel.claim, claimed_on=kernel.claimed_on,
            own_kernel=kernel.language != "pytorch", sha256=sha256(kernel.source),
            suite=self._suite, effort=self._effort,
        )  # fmt: skip
        if why := self.unfit(kernel):
            return replace(found, evidence=why)
        try:
            task = self._task(kernel)
            found = replace(found, task=found.task or task.name, task_hash=task_hash(task))
            evaluation = self._judged(task, kernel)
        except EvaluationLost as error:
            return replace(found, evidence=_short(str(error)), fault=Fault.OURS)
        except SmithError as error:
            return replace(found, evidence=_short(str(error)), fault=Fault.REQUEST)
        asks = bool(_FALLBACK.search(kernel.source))
        said = self._said(found, evaluation, asks_for_gpu=asks)
        if said.opinion is Opinion.REFUSED:
            said = replace(said, if_run=_short(self._all_the_same(task, kernel)))
        return said

    def unfit(self, kernel: Published) -> str:
        """Why a kernel is not even tried here; empty where it is."""
        if kernel.language != "cuda":
            return ""
        if not self._gpu or "cuda" not in known_backends():
            return NEEDS_CUDA
        return "" if "ModelNew" in kernel.source else "a CUDA file without a ModelNew that calls it"

    def takes(self, kernel: Published) -> bool:
        """Whether a kernel can be judged here, as far as that shows before it is built.

        Its language needs a backend that works on this machine, and its task has to be found.
        """
        if self.unfit(kernel):
            return False
        try:
            self._device(self._backend(kernel))
            self._task(kernel)
        except SmithError:
            return False
        return True

    def stands(self, found: Finding, kernel: Published) -> bool:
        """Whether a finding of before is about what would be judged now, in the same way.

        One without a judgement never stands: what kept it from being judged may be gone.
        """
        if found.opinion is Opinion.UNJUDGED:
            return False
        then = (
            found.sha256, found.claim, found.claimed_on, found.suite, found.effort, found.judge,
        )  # fmt: skip
        now = (
            sha256(kernel.source), kernel.claim, kernel.claimed_on, self._suite, self._effort,
            JUDGE,
        )  # fmt: skip
        if then != now:
            return False
        try:
            here = self._device(self._backend(kernel))
            return (found.task_hash, found.device) == (task_hash(self._task(kernel)), here)
        except SmithError:
            return False

    def close(self) -> None:
        """End every process."""
        for each in self._evaluators.values():
            each.close()
        self._evaluators.clear()

    def _task(self, kernel: Published) -> Task:
        """What it is judged on here: library code is allowed."""
        task = fitting(self._published_task(kernel), gpu=self._gpu)
        return replace(task, library=Library.ANY)

    def _device(self, backend: str) -> str:
        if backend not in self._devices:
            opened = load_backend(backend)
            try:
                self._devices[backend] = str(opened.device())
            finally:
                opened.close()
        return self._devices[backend]

    def _backend(self, kernel: Published) -> str:
        if kernel.language == "cuda":
            return "cuda"
        if kernel.language == "cpp":
            return "cpu"
        return "triton" if kernel.language == "triton" or self._gpu else "cpu"

    def _published_task(self, kernel: Published) -> Task:
        """The suite's task where there is one; else the reference that came with the kernel."""
        if self._entries is not None:
            for name in _names(kernel):
                entry = self._entries.get(name)
                if isinstance(entry, Absent):
                    raise UsageError(f"its task {entry.id} is absent: {entry.reason}")
                if entry is not None:
                    return entry.task
        if kernel.reference:
            stem = kernel.name or f"level{kernel.level}_{kernel.number}"
            said = "_".join(re.findall(r"\w+", kernel.reference.lower()))
            return promised(task_from_text(stem, kernel.reference), said)
        if self._entries is None:
            raise UsageError("no reference came with it; name where its task is: --suite SUITE")
        raise UsageError("the suite has no task for it, and no reference came with it")

    def _judged(self, task: Task, kernel: Published, *, static: bool = True) -> Evaluation:
        backend = self._backend(kernel)
        if (backend, static) not in self._evaluators:
            usual = effort(self._effort, backend)
            settings = replace(usual, timeout_s=self._timeout_s, static=static)
            self._evaluators[backend, static] = LocalEvaluator(backend, settings)
        evaluator = self._evaluators[backend, static]
        candidate = Candidate(backend=backend, source=kernel.source)
        found = evaluator.judge(task, candidate)
        if found.verdict is Verdict.REFUSED and _KEYS in found.message:
            found = evaluator.judge(replace(task, weights=Weights.SEED), candidate)
        return found

    def _all_the_same(self, task: Task, kernel: Published) -> str:
        """What a source does that was refused unread: it can do no harm in its sandbox."""
        try:
            found = self._judged(task, kernel, static=False)
        except SmithError as error:
            return f"it could not be run: {error}"
        return f"{found.verdict.value}: {found.message}".rstrip(": ")

    def _said(self, found: Finding, evaluation: Evaluation, *, asks_for_gpu: bool) -> Finding:
        timing = evaluation.timing
        found = replace(
            found, verdict=evaluation.verdict, evidence=_short(evaluation.message),
            speedup=timing.speedup if timing else None, call=timing.call if timing else None,
            labels=tuple(label.name.value for label in evaluation.labels),
            device=str(evaluation.device), judge=evaluation.judge, worst=_worst(evaluation),
        )  # fmt: skip
        if evaluation.verdict is not Verdict.PASSED:
            if any(said in evaluation.message for said in _NO_GPU):
                said = evaluation.message.strip().splitlines()[-1]
                return replace(found, evidence=f"needs an NVIDIA GPU: {_short(said)}")
            slow = evaluation.verdict is Verdict.TIMED_OUT and found.language == "triton"
            if slow and not self._gpu:
                evidence = f"too slow in Triton's interpreter: {found.evidence}"
                return replace(found, evidence=evidence)
            return replace(found, opinion=_FAILED[evaluation.verdict])
        if timing is None and asks_for_gpu:
            said = "right off a GPU, where it may not have launched its kernel: it asks for one"
            return replace(found, evidence=said)
        comparable = _is_claimed_here(found.claimed_on, evaluation.device)
        opinion, evidence = held(found, comparable=comparable)
        return replace(found, opinion=opinion, evidence=evidence)


_FAILED = {
    Verdict.REFUSED: Opinion.REFUSED,
    Verdict.BUILD_FAILED: Opinion.FAILS,
    Verdict.CRASHED: Opinion.FAILS,
    Verdict.TIMED_OUT: Opinion.FAILS,
    Verdict.WRONG: Opinion.WRONG,
    Verdict.CHEATED: Opinion.CHEATED,
}


def held(found: Finding, *, comparable: bool) -> tuple[Opinion, str]:
    """Hold a measured speed-up of plain calls against the claim."""
    ratio = found.call or found.speedup
    if ratio is None:
        return Opinion.RIGHT, "nothing is timed on this machine"
    if found.claim is not None and comparable:
        if ratio.high < found.claim:
            return Opinion.SLOWER, f"claimed {found.claim:.3f}x, measured {ratio}"
        return Opinion.HOLDS, f"claimed {found.claim:.3f}x, measured {ratio}"
    if found.claim is None and ratio.high < 1:
        return Opinion.SLOWER, f"slower than eager here: {ratio}"
    where = f" (claimed {found.claim:.3f}x on {found.claimed_on})" if found.claim else ""
    return Opinion.RIGHT, f"{ratio} here{where}"


def _short(text: str) -> str:
    """As much of a message as evidence needs, without this machine's folders."""
    text = re.sub(r"(?<![\w.])/(?:[\w.+-]+/)+", "", text)
    if len(text) <= _MESSAGE:
        return text
    return f"{text[: _MESSAGE // 4]} ... {text[-3 * _MESSAGE // 4 :]}"


def _is_claimed_here(claimed_on: str, device: Device) -> bool:
    said = claimed_on.lower().replace("_", " ").split()
    return bool(said) and device.kind != "cpu" and all(word in device.name.lower() for word in said)


def _worst(evaluation: Evaluation) -> str:
    if not evaluation.accuracy:
        return ""
    worst = max(evaluation.accuracy, key=lambda each: each.error)
    return (
        f"{worst.workload}: error {worst.error:.3g}, allowed {worst.budget:.3g}, "
        f"eager {worst.eager_error:.3g}"
    )


def _by_name(suite: Suite) -> Iterator[tuple[str, Entry | Absent]]:
    for each in suite.entries():
        yield each.id, each
        yield each.id.rpartition("/")[2], each
        yield each.id.partition("/")[2], each
        if isinstance(each, Entry):
            yield each.task.name, each


def _names(kernel: Published) -> Sequence[str]:
    """How a suite may call the task, the surest first."""
    names = []
    if kernel.level is not None and kernel.number is not None:
        names.append(f"level{kernel.level}/{kernel.number}")
    if kernel.name:
        names.append(kernel.name)
    return names


def limited(
    kernels: Sequence[Published], limit: int | None, takes: Callable[[Published], bool]
) -> tuple[list[Published], list[Published]]:
    """The first kernels that can be judged, as many as the limit says, and those left out for it.

    What cannot be judged stays and does not count: it costs nothing, and is named with the reason.
    """
    if limit is None:
        return list(kernels), []
    kept: list[Published] = []
    left_out: list[Published] = []
    counted = 0
    for kernel in kernels:
        counts = takes(kernel)
        (left_out if counts and counted >= limit else kept).append(kernel)
        counted += counts
    return kept, left_out


def tally(findings: Sequence[Finding]) -> Mapping[str, int]:
    """How many of each opinion, the worst first."""
    order = (
        Opinion.CHEATED, Opinion.WRONG, Opinion.REFUSED, Opinion.FAILS, Opinion.SLOWER,
        Opinion.RIGHT, Opinion.HOLDS, Opinion.UNJUDGED,
    )  # fmt: skip
    counts = {each.value: sum(one.opinion is each for one in findings) for each in order}
    return {name: count for name, count in counts.items() if count}
