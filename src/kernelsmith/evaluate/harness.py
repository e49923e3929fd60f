"""The judge: guard, build, check, time; one function for every backend and every caller."""

import random
import re
from contextlib import AbstractContextManager, ExitStack

from kernelsmith import __version__
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import (
    Evaluation,
    Kernel,
    Label,
    LabelName,
    Verdict,
)
from kernelsmith.domain.task import Library, Task, Weights, Workload
from kernelsmith.domain.timing import Timing
from kernelsmith.errors import EvaluationLost, UsageError
from kernelsmith.evaluate.backend import Backend, Lane, Oracle
from kernelsmith.evaluate.eager import EagerElsewhere
from kernelsmith.evaluate.failure import ProgramFailed, TooFarOff, lacks_memory
from kernelsmith.evaluate.findings import Findings
from kernelsmith.evaluate.guards.opcodes import below_float32
from kernelsmith.evaluate.guards.policy import Trivial, Violation, judge_coverage
from kernelsmith.evaluate.guards.static import FindingKind, inspect_source
from kernelsmith.evaluate.lanes import Lanes
from kernelsmith.evaluate.measure import Measurement, Stopwatch
from kernelsmith.evaluate.outcome import Trial, Worst
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.tensors import EPSILON
from kernelsmith.evaluate.trials import (
    check,
    check_statistic,
    draw_trials,
    of_18_bits,
    refuse_random,
    robustness,
)
from kernelsmith.evaluate.values import Setup
from kernelsmith.evaluate.watch import Watched

_ALGEBRA = re.compile(r"^# algebra: (\S.*)$", re.MULTILINE)
_FLOAT32_CLASS = 512 * EPSILON["float32"]
"""Errors above this are no rounding of float32; those of TF32 and half precision are."""
JUDGE = f"{__version__}/11"
"""Raised whenever the same candidate could get another verdict or another number."""


class Judge:
    """Judges candidates on one task with one backend; the reference stays open in between."""

    def __init__(
        self, backend: Backend, task: Task, settings: Settings | None = None, *,
        oracle: Oracle | None = None,
    ) -> None:  # fmt: skip
        """Open the reference, or take one over from a judge that is used no more."""
        self._backend, self._task = backend, task
        self._settings = settings or Settings()
        self._secrets = random.SystemRandom()
        self._oracle: Oracle = backend.oracle(task) if oracle is None else oracle
        self._degenerate: dict[str, list[str]] = {}
        self._elsewhere = EagerElsewhere()
        self._at = task.workloads[0]
        """The workload that is checked or timed."""
        self._lanes = Lanes(backend, self._oracle, task, self._settings)

    def hand_over(self) -> Oracle:
        """Give the reference to another judge; this one is used no more."""
        self._lanes.close()
        return self._oracle

    def close(self) -> None:
        """End the reference's process."""
        self._lanes.close()
        self._oracle.close()

    def judge(self, candidate: Candidate, *, baseline: Candidate | None = None) -> Evaluation:
        """Return the verdict on one candidate.

        Args:
            candidate: What to judge.
            baseline: Measured beside it instead of the task's own baseline.

        Raises:
            UsageError: The task itself cannot be judged.
            EvaluationLost: Our machinery failed; judge again.
        """
        findings = Findings()
        timing: Timing | None = None
        verdict, message = Verdict.PASSED, ""
        try:
            self._guard(candidate)
            if baseline is not None:
                self._guard(baseline)
            timing = self._timed(candidate, baseline, findings)
            self._sanitize(candidate, findings)
            self._profile(candidate, findings)
        except ProgramFailed as failed:
            verdict, message = failed.verdict, failed.message
        if findings.short:
            findings.log = (*findings.log, ("judged again", findings.short))
        if findings.elsewhere:
            findings.log = (*findings.log, ("eager elsewhere", findings.elsewhere))
        if asked := getattr(self._oracle, "asked", None):
            findings.log = (*findings.log, ("asked", asked()))
        return Evaluation(
            task=self._task.name,
            candidate=candidate.id,
            device=self._backend.device(),
            verdict=verdict,
            timing=timing if verdict is Verdict.PASSED else None,
            message=message,
            labels=tuple(Label(name=n, reason=r) for n, r in findings.labels.items()),
            accuracy=tuple(findings.accuracy),
            coverage=findings.coverage,
            output=findings.output,
            kernels=findings.kernels,
            rooflines=tuple(findings.rooflines),
            device_log=findings.log,
            spent=tuple((name, round(s, 3)) for name, s in findings.spent.items()),
            judge=JUDGE,
        )

    def _guard(self, candidate: Candidate) -> None:
        if candidate.backend != self._backend.name:
            raise UsageError(
                f"the candidate is for backend {candidate.backend!r}, "
                f"the judge's is {self._backend.name!r}"
            )
        if candidate.backend == "null" or not self._settings.static:
            return  # a null expression cannot reach anything; there is nothing to look for
        finding = inspect_source(candidate, self._task)
        if finding is not None:
            refused = finding.kind is FindingKind.REFUSED
            verdict = Verdict.REFUSED if refused else Verdict.BUILD_FAILED
            raise ProgramFailed(verdict, finding.message)

    def _timed(
        self, candidate: Candidate, baseline: Candidate | None, findings: Findings
    ) -> Timing | None:
        """Check and time; too far off is who is further off than eager in any process of it."""
        while True:
            try:
                return self._through(candidate, baseline, findings)
            except TooFarOff as failed:  # once a workload: then it is known
                if self._elsewhere.is_known(self._at) or not self._eager_is_off_elsewhere(findings):
                    raise
                findings.elsewhere = failed.message[:400]
                findings.begin_anew()

    def _eager_is_off_elsewhere(self, findings: Findings) -> bool:
        """Whether eager's own process, as it is timed, computes in another way than is trusted."""
        if self._task.baseline is not None:
            return False
        opened = self._lanes.opener_of_baseline(None)
        try:
            with ExitStack() as stay:
                self._enter(stay, findings)
                with self._checking(), findings.spent.on("eager"):
                    return self._elsewhere.look(self._oracle, self._at, self._draw, opened)
        except (ProgramFailed, UsageError, EvaluationLost):  # nobody can look: the verdict stands
            return False

    def _through(
        self, candidate: Candidate, baseline: Candidate | None, findings: Findings
    ) -> Timing | None:
        """Check and time; where memory was short beside others, with more of it or without them."""
        alone = bool(getattr(self._oracle, "is_short", False))
        earlier, whose = None, set[type[Exception]]()
        while True:
            beside = entered = False
            try:
                with ExitStack() as stay:
                    beside = self._enter(stay, findings, alone=alone)
                    entered = True
                    stay.callback(self._lanes.end_checked)
                    found = self._checked_and_timed(candidate, baseline, findings)
                    self._narrow_after(whose)
                    return found
            except (ProgramFailed, UsageError) as failed:
                short = lacks_memory(str(failed))
                if short:
                    whose.add(type(failed))
                    if alone:
                        self._narrow_after(whose)
                most = alone and beside and short and isinstance(failed, UsageError)
                if earlier is not None and (most or not entered):
                    raise earlier from failed  # with more than there is here nobody can say more
                if alone or not beside or not short:
                    raise
                earlier = failed if isinstance(failed, ProgramFailed) else None
                question = getattr(self._oracle, "unanswered", "")
                asked = f"{question}: " if question and isinstance(failed, UsageError) else ""
                findings.short = f"{asked}{failed}"[:400]
            widen = getattr(self._oracle, "widen", None)
            alone = widen is None or not widen()
            findings.begin_anew()

    def _narrow_after(self, whose: set[type[Exception]]) -> None:
        """Where nobody but the candidate was short of memory, the next one has the usual rooms."""
        narrow = getattr(self._oracle, "narrow", None)
        if whose == {ProgramFailed} and narrow is not None:
            narrow()

    def _enter(self, stay: ExitStack, findings: Findings, *, alone: bool = False) -> bool:
        """Have room on the device; a backend may know how many can at a time."""
        staying = getattr(self._backend, "staying", None)
        if staying is None:
            return False
        with findings.spent.on("room"):
            batch = self._settings.gpu.sample_bytes
            room = staying(self._oracle, alone=alone, batch_bytes=batch)
            return bool(stay.enter_context(room))

    def _checked_and_timed(
        self, candidate: Candidate, baseline: Candidate | None, findings: Findings
    ) -> Timing | None:
        task = self._task
        with self._checking():
            for workload in task.workloads:
                self._check(candidate, workload, findings)
        if imitated := getattr(self._backend, "emulates", ""):
            findings.labels[LabelName.EMULATED] = f"stands in for {imitated}"
        if not self._backend.timed:
            where = self._backend.device().name
            findings.labels[LabelName.UNTIMED] = (
                f"checked on {where}: nothing was timed, and nobody saw whose code ran"
            )
            return None
        watched, timings = Watched(), []
        clock = getattr(self._backend, "stopwatch", Stopwatch)
        for workload in task.workloads:
            if workload.held_out:
                continue
            self._at = workload
            with findings.spent.on("time"):
                stopwatch = clock(
                    self._backend, self._oracle, task, workload,
                    open_baseline=self._lanes.opener_of_baseline(baseline),
                    open_candidate=lambda setup: self._lanes.to_time(candidate, setup),
                    settings=self._settings, draw=self._draw, rng=self._secrets, watched=watched,
                    elsewhere=self._elsewhere.errors(workload), **self._lanes.keeping,
                )  # fmt: skip
                measured = stopwatch.measure()
            timings.append(measured.timing)
            findings.output = measured.output or findings.output
            findings.add(measured)
        if measured.coverage is not None or measured.kernels:
            self._judge_precision(findings.kernels, findings)
            self._judge_device(measured, findings)
        else:
            self._judge_coverage(watched, findings)
        named = "eager" if task.baseline is None else "the task's baseline"
        return Timing(
            workloads=tuple(timings),
            baseline=named if baseline is None else f"candidate {baseline.id}",
        )

    def _checking(self) -> AbstractContextManager[None]:
        """Hold the device for checking, with others where the backend knows them."""
        checking = getattr(self._backend, "checking", None)
        return self._backend.shared() if checking is None else checking(self._oracle)

    def _sanitize(self, candidate: Candidate, findings: Findings) -> None:
        """Run a pass once more where its memory accesses are watched; a finding is no verdict."""
        examine = getattr(self._backend, "examined", None)
        if not self._settings.sanitize or examine is None:
            return
        with findings.spent.on("sanitize"):
            for tool, said, clean in examine(self._task, candidate):
                findings.log = (*findings.log, (tool, said))
                if not clean:
                    findings.labels.pop(LabelName.ROBUST, None)
                    findings.labels[LabelName.FRAGILE] = f"{tool}: {said}"[:1000]

    def _profile(self, candidate: Candidate, findings: Findings) -> None:
        """Read the device's counters, for the next proposer; no verdict rests on them."""
        look = getattr(self._backend, "profiled", None)
        if not self._settings.sanitize or look is None:
            return
        with findings.spent.on("profile"):
            for each in look(self._task, candidate):
                findings.log = (*findings.log, (f"ncu {each.kernel[:80]}", str(each)))

    def _check(self, candidate: Candidate, workload: Workload, findings: Findings) -> None:
        task, self._at = self._task, workload
        with findings.spent.on("reference"):
            setup = self._oracle.workload(workload, self._draw())
            trials = draw_trials(self._oracle, task, self._settings, self._draw)
            kept = enumerate(trials[0].answers.kept)
            self._lanes.spared = frozenset(position for position, own in kept if own)
            is_random = refuse_random(self._oracle, task, trials[0])
            self._label(workload, setup, trials, findings)
        with findings.spent.on("build"):
            lane = self._lanes.candidate(candidate, setup)
        stays = False
        try:
            with findings.spent.on("check"):
                if is_random:
                    found = check_statistic(lane, self._oracle, workload, trials[0].inputs)
                else:
                    found, worst = check(
                        lane, self._oracle, task, workload, trials,
                        state=setup.state, draw=self._draw, rng=self._secrets,
                        elsewhere=self._elsewhere.errors(workload),
                    )  # fmt: skip
                    if findings.is_float32 and worst.error > _FLOAT32_CLASS:
                        findings.coarse.append((workload, worst))
                findings.accuracy.append(found)
                self._convict_compiler(lane)
                lane.settle()
            if claim := _ALGEBRA.search(candidate.source):
                findings.labels[LabelName.ALGEBRAIC] = claim[1].strip()[:300]
            if lane.prepares and task.weights is Weights.STATIC:
                findings.labels[LabelName.PREPARED] = "prepare() ran once, outside the clock"
            if self._settings.robust and workload is task.workloads[0]:
                with findings.spent.on("robust"):
                    self._robust(lane, findings)
            stays = self._lanes.stays(lane)
        finally:
            findings.output = lane.output or findings.output
            findings.kernels = getattr(lane, "compiled", ()) or findings.kernels
            if not stays:
                lane.close()
            self._oracle.release()

    def _label(
        self, workload: Workload, setup: Setup, trials: list[Trial], findings: Findings
    ) -> None:
        task = self._task
        if workload.name not in self._degenerate:
            plain = [trial.inputs for trial in trials if trial.variant == "plain"][:3]
            self._degenerate[workload.name] = self._oracle.degenerate(plain)
        if reasons := self._degenerate[workload.name]:
            findings.labels[LabelName.DEGENERATE] = "; ".join(reasons)
        if not all(trial.answers.exact for trial in trials):
            findings.labels[LabelName.NO_FLOAT64] = "the reference does not run in float64"
        if task.weights is Weights.SEED and setup.state.keys:
            findings.labels[LabelName.SEED_WEIGHTS] = "weights were matched by seed only"
        seen = [leaf.spec.dtype for trial in trials[:1] for leaf in trial.inputs.leaves]
        seen += [leaf.spec.dtype for leaf in setup.state.leaves]
        seen += [answer.eager.dtype for trial in trials[:1] for answer in trial.answers.outputs]
        floats = {dtype for dtype in seen if dtype in EPSILON}
        findings.is_float32 = floats == {"float32"} and task.compute_dtype in (None, "float32")
        if task.compute_dtype is not None and task.compute_dtype in EPSILON:
            dtypes = {a.eager.dtype for trial in trials for a in trial.answers.outputs}
            widest = min((EPSILON[d] for d in dtypes if d in EPSILON), default=0.0)
            if EPSILON[task.compute_dtype] > widest:
                findings.labels[LabelName.LOW_PRECISION] = f"may compute in {task.compute_dtype}"

    def _robust(self, lane: Lane, findings: Findings) -> None:
        """Try what callers do later, in the process that has passed."""
        failure = robustness(
            lane, self._oracle, self._task, self._draw, elsewhere=self._elsewhere.errors(self._at)
        )
        if failure is None:
            findings.labels[LabelName.ROBUST] = ""
        else:
            findings.labels[LabelName.FRAGILE] = failure[:1000]

    def _convict_compiler(self, lane: Lane) -> None:
        loaded = lane.modules()
        if any(name.startswith("torch._inductor") for name in loaded):
            raise ProgramFailed(
                Verdict.REFUSED,
                "torch._inductor was loaded: torch.compile in disguise is not a kernel",
            )

    def _judge_coverage(self, watched: Watched, findings: Findings) -> None:
        findings.coverage = watched.coverage
        if self._task.library is Library.ANY:
            return
        if not watched.built:
            raise ProgramFailed(
                Verdict.CHEATED, "torch fallback: the candidate built no code of its own"
            )
        if findings.coverage is None:
            findings.labels[LabelName.NO_COVERAGE] = "no samples of where the time went"
            return
        said = judge_coverage(findings.coverage, self._task.library, library_us=watched.library_us)
        if isinstance(said, Violation):
            raise ProgramFailed(Verdict.CHEATED, said.message)
        if isinstance(said, Trivial):
            findings.labels[LabelName.TRIVIAL] = said.reason

    def _judge_precision(self, kernels: tuple[Kernel, ...], findings: Findings) -> None:
        """Half precision inside a float32 task, hidden in a budget that TF32 has made wide.

        Opcodes alone prove nothing: a float32 product split into parts of half precision is as
        exact as any. Nor does an error where the task itself magnifies the last bits of float32.
        """
        narrow = [
            (kernel, halves)
            for kernel in kernels
            if kernel.own and (halves := below_float32(frozenset(kernel.precision.split(", "))))
        ]
        for workload, worst in findings.coarse if narrow else ():
            with findings.spent.on("precision"):
                allowed = self._of_18_bits(workload, worst)
            if worst.error <= allowed:
                continue
            kernel, halves = narrow[0]
            raise ProgramFailed(
                Verdict.REFUSED,
                f"half precision inside: {kernel.name} computes in {', '.join(halves)}, its "
                f"error of {worst.error:.2g} shows it, and the task does not allow it",
            )

    def _of_18_bits(self, workload: Workload, worst: Worst) -> float:
        """What inputs of 18 bits alone would do to what was furthest off; 0 if nobody can say."""
        with self._checking():
            try:
                self._oracle.workload(workload, self._draw())
                return of_18_bits(self._oracle, worst, self._draw)
            except UsageError as error:
                if lacks_memory(str(error)):
                    raise  # with more of it, somebody can
                return 0.0
            finally:
                self._oracle.release()

    def _judge_device(self, measured: Measurement, findings: Findings) -> None:
        """Hold what ran on the device against what the task allows, kernel by kernel."""
        findings.coverage = measured.coverage
        if self._task.library is Library.ANY:
            return
        if not measured.built:
            raise ProgramFailed(
                Verdict.CHEATED,
                "torch fallback: none of the kernels that ran is one of the candidate's own",
            )
        if measured.coverage is None:
            findings.labels[LabelName.NO_COVERAGE] = "nobody saw where the time went"
            return
        said = judge_coverage(
            measured.coverage,
            self._task.library,
            certain=True,
            # Glue is a fill or a copy here, half as long as on a processor.
            library_us=None if measured.library_us is None else 2 * measured.library_us,
        )
        if isinstance(said, Violation):
            raise ProgramFailed(Verdict.CHEATED, said.message)
        if isinstance(said, Trivial):
            findings.labels[LabelName.TRIVIAL] = said.reason

    def _draw(self) -> int:
        return self._secrets.getrandbits(62)


def judge(
    task: Task, candidate: Candidate, *, backend: Backend, settings: Settings | None = None,
    baseline: Candidate | None = None,
) -> Evaluation:  # fmt: skip
    """Judge one candidate once, with everything opened for it and closed after it."""
    session = Judge(backend, task, settings)
    try:
        return session.judge(candidate, baseline=baseline)
    finally:
        session.close()
