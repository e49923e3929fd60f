"""Optimises one task after the other, as ``kernelsmith optimize`` does; JSON lines in and out.

Not imported by anyone: ``rules`` starts it as a module, so that a task that hangs can be ended. An
answer grows: each line holds all that is known so far, the last one says ``done``.
"""

import contextlib
import dataclasses
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.gpu_ledger import NOT_NOW
from benchmarks.report import without_paths
from benchmarks.rules_capture import finder
from benchmarks.rules_compiled import OURS, TIMEOUT_S, in_a_plain_process, judged, named, taken
from benchmarks.rules_growth import LOST, judged_again
from benchmarks.rules_numbers import ON_A_PROCESSOR
from benchmarks.rules_runs import Runs, ended, folder_for
from benchmarks.rules_tasks import Chosen, file_name
from kernelsmith.bench.compiled import Compilers, compiling, eager
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Library, Task
from kernelsmith.domain.trajectory import Exemplar, Step
from kernelsmith.errors import EvaluationLost, SmithError
from kernelsmith.evaluate.backend import Backend, load_backend
from kernelsmith.evaluate.cuda.backend import CudaBackend
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.failure import lacks_memory
from kernelsmith.evaluate.sandbox.syscalls import PR_SET_PDEATHSIG, prctl
from kernelsmith.evaluate.settings import effort
from kernelsmith.propose.rules.families import families_for
from kernelsmith.propose.rules.proposer import RulesProposer
from kernelsmith.run.config import Budget, Remeasure, RunConfig
from kernelsmith.run.journal import read
from kernelsmith.run.start import JOURNAL, Judges
from kernelsmith.run.stopping import roofline_share

_TIMEOUT_S = 90.0
"""What a request may take; without others 30 s are enough."""
_GRACE_S = 15.0
"""For what is under way when a run is interrupted."""
_FEW = 5
"""Evaluations up to which each is asked for with as many verdicts known as possible."""
Send = Callable[[dict[str, Any]], None]


class Worker:
    """Holds what all tasks of one process share."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.backend: Backend = load_backend(asked["backend"])
        self._asked = asked
        settings = effort(asked["effort"], backend=asked["backend"])
        # Judges side by side share cores: what compiles 52 kernels took 23 s with five of them.
        settings = dataclasses.replace(settings, timeout_s=_TIMEOUT_S)
        self._judge = LocalEvaluator(self.backend, settings)
        # What may call anything is not asked which kernels ran; it goes on with the references.
        self._free = LocalEvaluator(self.backend, dataclasses.replace(settings, kernels=False))
        # One pair takes a spread between pairs for granted, four per cent; three have seen it.
        thrice = dataclasses.replace(settings.stop, min_pairs=3, max_pairs=3)
        self._patient = dataclasses.replace(settings, robust=False, stop=thrice)

        if isinstance(self.backend, CudaBackend):
            self.backend.only_beside = asked.get("beside", False)

    @cached_property
    def _compilers(self) -> Compilers:
        beside = self._asked.get("beside", False)
        return Compilers(self.backend.name, self._patient, only_beside=beside)

    def begin(self, *, compiles: bool) -> None:
        """Start processes while there is time for it, and nobody waits for the device."""
        with contextlib.suppress(SmithError):  # whoever asks for a task is told
            self.backend.device()
            if compiles and self.backend.name == "triton":
                self._compilers.begin()

    def close(self) -> None:
        """End every process."""
        if "_compilers" in self.__dict__:
            self._compilers.close()
        self._judge.close()

    def answer(self, asked: dict[str, Any], send: Send) -> None:
        """Optimise one task, then measure the compiler beside it."""
        chosen = Chosen(
            key=asked["key"], path=Path(asked["task"]), structure=tuple(asked["structure"])
        )
        task = chosen.task(gpu=self.backend.name == "triton")
        record: dict[str, Any] = {"task": chosen.path.stem, "steps": [], "compile": {}}
        try:
            if asked["evaluations"]:
                with folder_for(chosen.key, asked["runs"]) as folder:
                    self._optimised(task, asked, folder, record, send)
            if record.get("said") == NOT_NOW:
                send(record | {"done": True})
                return
            if asked["reference"]:
                record["reference"] = self._itself(task)
        except SmithError as error:
            record |= {"said": "usage", "message": without_paths(str(error))}
        finally:
            if asked["compile"] and self.backend.name == "triton":
                self._compilers.adopt(self._free if asked["reference"] else self._judge)
            self._judge.forget()
            self._free.forget()
        refused = record.get("said") == "usage" and lacks_memory(record["message"])
        for mode in () if refused else asked["compile"]:
            record["compile"][mode] = self._compiled(chosen, task, mode, asked["seeds"].get(mode))
            send(record)
        record.setdefault("device", _device(self.backend))
        send(record | {"done": True})

    def _optimised(
        self, task: Task, asked: dict[str, Any], folder: Path, record: dict[str, Any], send: Send
    ) -> None:
        config = RunConfig(
            backend=self.backend.name, effort=self._asked["effort"],
            confirm_effort=self._asked["effort"], seed=asked["seed"], grace_s=_GRACE_S,
            budget=Budget(
                steps=asked["evaluations"], stale_steps=asked["stale"],
                # What goes on another day is interrupted instead: nothing is confirmed yet.
                roofline_share=asked["roofline"],
                seconds=None if asked["runs"] else asked["seconds"],
            ),
            # The third of three can only mend what was wrong if it is asked for after the first.
            concurrency=2 if asked["evaluations"] <= _FEW else RunConfig().concurrency,
            remeasure=Remeasure(
                champions=asked["champions"], gain=False,
                final=asked["final"], rivals=asked["rivals"],
            ),
        )  # fmt: skip
        find = finder(Path(asked["families"]).read_bytes()) if asked["families"] else families_for
        begun = time.monotonic()

        def proposer() -> RulesProposer:
            return RulesProposer(self.backend.name, families=find, in_flight=config.concurrency)

        def watch(progress: object) -> None:
            del progress
            record["steps"] = [_step(each) for each in read(folder / JOURNAL).steps]
            send(record)

        runs = Runs(
            task=task, folder=folder, config=config, device=self.backend.device(),
            proposer=proposer, watch=watch,
            judges=Judges(evaluator=self._judge, confirmer=self._judge),
        )  # fmt: skip
        earlier = runs.known()
        if earlier is not None:
            record["before"] = len(earlier.steps)
        result = ended(runs.begun(), asked["seconds"] if asked["runs"] else None)
        more = asked["again"] > asked["evaluations"] and not result.stopped
        if more and not _gains(result.best):
            budget = dataclasses.replace(config.budget, steps=asked["again"])
            left = asked["seconds"] - (time.monotonic() - begun)
            longer = runs.again(dataclasses.replace(config, budget=budget))
            result = ended(longer, max(1.0, left) if asked["runs"] else None)
        steps = read(folder / JOURNAL).steps
        record["steps"] = [_step(each) for each in steps]
        record["optimised_s"] = round(time.monotonic() - begun, 2)
        record["stop"] = result.stop.value
        if result.stopped:
            record |= {
                "said": NOT_NOW,
                "message": f"{len(steps)} steps are done; run again to go on",
            }
            return send(record)
        record |= _best(result.best, result.confirmed, steps)
        if asked["growth"]:
            send(record)
            record["again"] = self._grown(task, steps, record)
        if result.best is not None and asked["sources"]:
            name = f"{file_name(asked['key'])}.py"
            Path(asked["sources"], name).write_text(result.best.candidate.source)
        send(record)

    def _grown(self, task: Task, steps: tuple[Step, ...], record: dict[str, Any]) -> dict[str, Any]:
        """The best of the first so many, judged once more."""

        def once_more(at: int) -> dict[str, Any]:
            candidate = steps[at].candidate
            assert candidate is not None, "what was timed has a source"
            try:
                return evaluated(self._judge.judge(task, candidate))
            except SmithError as error:
                return {"said": LOST, "message": without_paths(str(error))}

        best = record["best"]
        known = {
            at: best
            for at, each in enumerate(steps)
            if best and best["confirmed"] and each.brief.number == best["number"]
        }
        return judged_again(record["steps"], once_more, known=known)

    def _itself(self, task: Task) -> dict[str, Any]:
        """The reference against itself, at a ratio of one if all is well."""
        candidate = Candidate(backend=self.backend.name, source=eager(task))
        free = dataclasses.replace(task, library=Library.ANY)
        self._free.adopt(self._judge)
        try:
            return evaluated(self._free.judge(free, candidate))
        except EvaluationLost as error:
            return {"said": "lost", "message": without_paths(str(error))}
        except SmithError as error:  # says nothing against what the rules found
            return {"said": "usage", "message": without_paths(str(error))}

    def _compiled(self, chosen: Chosen, task: Task, mode: str, files: str | None) -> dict[str, Any]:
        begun = time.monotonic()
        # A sandbox that starts from nothing compiles torch's headers for two minutes a task.
        said: dict[str, Any] = {"said": "usage", "message": ON_A_PROCESSOR}
        if self.backend.name == "triton":
            if files is not None:
                source = compiling(task, OURS[mode])
                self._compilers.seed(source, json.loads(Path(files).read_text()))
            said = judged(self._compilers, task, mode)
            self._compilers.forget()
        if said["said"] not in ("passed", "wrong"):
            device = "cuda" if self.backend.name == "triton" else "cpu"
            tried = said
            gpu = self.backend.gpu.uuid if isinstance(self.backend, CudaBackend) else ""
            said = in_a_plain_process(chosen.path, mode, device=device, limit_s=TIMEOUT_S, gpu=gpu)
            said["why_plain"] = tried["message"]
        if files is not None and self.backend.name == "triton":
            said["compiled_ahead"] = self._compilers.seeds_fit
        return said | {"seconds": round(time.monotonic() - begun, 2)}


def _step(step: Step) -> dict[str, Any]:
    found: dict[str, Any] = {
        "said": step.placement.outcome.value,
        "note": step.proposal.note,
        "seconds": step.seconds,
    }
    if step.proposal.rejection:
        found["message"] = without_paths(step.proposal.rejection)
    if step.lost:
        found["message"] = without_paths(step.lost)
    if step.evaluation is not None:
        found |= evaluated(step.evaluation)
    return found


def evaluated(found: Evaluation) -> dict[str, Any]:
    """What the benchmark keeps of an evaluation."""
    said: dict[str, Any] = {"said": found.verdict.value, "judge": found.judge}
    if found.message:
        said["message"] = without_paths(found.message)
    if found.labels:
        said["labels"] = {each.name.value: without_paths(each.reason) for each in found.labels}
    said |= taken(found)
    if found.coverage is not None:
        said["own"] = round(found.coverage.own, 3)
    if found.timing is not None:
        said |= named(found.timing.speedup)
        if found.timing.call is not None:
            said["call"] = named(found.timing.call)
        said["us"] = [round(each.median_us, 2) for each in found.timing.workloads]
        said["eager_us"] = [round(each.baseline_us, 2) for each in found.timing.workloads]
        said["samples"] = sum(each.samples for each in found.timing.workloads)
        said["pairs"] = min(len(each.pairs) for each in found.timing.workloads)
        said["mode"] = found.timing.workloads[0].mode
    if (share := roofline_share(found)) is not None:
        said["roofline"] = round(share, 3)
    return said


def _gains(best: Exemplar | None) -> bool:
    """Whether there is one at all, and it is faster than eager."""
    timing = None if best is None else best.evaluation.timing
    return timing is not None and timing.speedup.value > 1.0


def _best(best: Exemplar | None, confirmed: bool, steps: tuple[Step, ...]) -> dict[str, Any]:
    if best is None:
        return {"said": "none passed", "best": None}
    number = next(
        each.brief.number
        for each in steps
        if each.candidate is not None and each.candidate.id == best.candidate.id
    )
    about = {"number": number, "confirmed": confirmed}
    return {"said": "passed", "best": evaluated(best.evaluation) | about}


def _device(backend: Backend) -> dict[str, Any]:
    device = backend.device()
    return dataclasses.asdict(device) | {"versions": dict(device.versions)}


def main() -> None:
    # In the middle of a task it would not see for minutes that nobody waits for it any more, and
    # keep the device from whoever comes next.
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what anyone prints must not come between the answers
    asked = json.loads(sys.argv[1])
    worker = Worker(asked)
    worker.begin(compiles=asked.get("compiles", False))

    def send(record: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(record), file=answers, flush=True)

    for line in sys.stdin:
        worker.answer(json.loads(line), send)
    worker.close()


if __name__ == "__main__":
    main()
