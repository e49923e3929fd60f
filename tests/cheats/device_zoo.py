"""What holds for every zoo on a device: no cheat passes, guarded or not; every honest one does."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
import zoo

from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.evaluate.backend import Backend
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.settings import Settings, effort
from kernelsmith.evaluate.tasks import load_candidate, load_task

TASKS = zoo.HERE / "gpu" / "tasks"
PAGE = (zoo.HERE.parents[1] / "docs" / "threat-model.md").read_text()


@cache
def offenders(folder: str) -> tuple[zoo.Animal, ...]:
    return tuple(zoo.animals(f"{folder}/offenders"))


@cache
def honest(folder: str) -> tuple[zoo.Animal, ...]:
    return tuple(zoo.animals(f"{folder}/honest"))


def generate(metafunc: pytest.Metafunc) -> None:
    """Hand each test of a zoo its animals; called by the hook in ``conftest.py``."""
    if metafunc.cls is None or not issubclass(metafunc.cls, DeviceZoo):
        return
    folder = metafunc.cls.folder
    cheats, fair = offenders(folder), honest(folder)
    groups = {
        "offender": cheats,
        # Those that the guard may stop: for all others it makes no difference.
        "refusable": [each for each in cheats if Verdict.REFUSED in each.expected],
        "stopped": [each for each in cheats if each.expected == (Verdict.REFUSED,)],
        "fair": fair,
        "animal": [*cheats, *fair],
    }
    for name, animals in groups.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, animals, ids=lambda animal: animal.path.stem)


class DeviceZoo:
    """Inherit, name the folder and the backend, and say how to open it."""

    folder: str
    backend: str
    timeout_s = 30.0

    @classmethod
    def open(cls) -> Backend:
        """By its own class: an interpreter chosen by the environment would time nothing."""
        raise NotImplementedError

    @classmethod
    def settings(cls, *, static: bool) -> Settings:
        usual = effort("quick", cls.backend)
        return replace(usual, robust=False, timeout_s=cls.timeout_s, static=static)

    @pytest.fixture(scope="class")
    @classmethod
    def guarded(cls) -> Iterator[LocalEvaluator]:
        with LocalEvaluator(cls.open(), cls.settings(static=True)) as evaluator:
            yield evaluator

    @pytest.fixture(scope="class")
    @classmethod
    def unguarded(cls) -> Iterator[LocalEvaluator]:
        with LocalEvaluator(cls.open(), cls.settings(static=False)) as evaluator:
            yield evaluator

    def judged(self, evaluator: LocalEvaluator, animal: zoo.Animal) -> Evaluation:
        task = load_task(TASKS / f"{animal.task}.py")
        return evaluator.judge(task, load_candidate(animal.path, self.backend))

    @pytest.mark.triton
    def test_no_cheat_passes(self, offender, guarded):
        found = self.judged(guarded, offender)
        assert found.verdict is not Verdict.PASSED
        assert found.verdict in offender.expected, found.message

    @pytest.mark.triton
    def test_no_cheat_passes_on_the_evidence_alone(self, refusable, unguarded):
        found = self.judged(unguarded, refusable)
        assert found.verdict is not Verdict.PASSED
        assert found.verdict in refusable.behaviour, found.message

    @pytest.mark.triton
    def test_an_honest_candidate_passes(self, fair, guarded):
        found = self.judged(guarded, fair)
        assert found.verdict is Verdict.PASSED, found.message
        assert found.timing is not None
        assert any(kernel.own for kernel in found.kernels)
        self.look_closer(found)

    def look_closer(self, found: Evaluation) -> None:
        """What else holds for an honest pass of this backend."""

    def test_every_file_names_a_task_that_is_there(self, animal):
        assert (TASKS / f"{animal.task}.py").exists()
        passes = animal in honest(self.folder)
        assert (Verdict.PASSED in animal.expected) is passes
        assert (Verdict.PASSED in animal.behaviour) is passes

    def test_a_files_name_and_its_catalogue_number_agree(self):
        for animal in offenders(self.folder):
            letter, digits = animal.path.stem[0].upper(), int(animal.path.stem[1:3])
            assert animal.number == f"{letter}{digits}", animal.path.name

    def test_the_threat_model_and_the_zoo_name_each_other(self):
        patterns = set(re.findall(rf"`{self.folder}/([a-h]\d\d)_\*`", PAGE))
        assert {animal.path.stem[:3] for animal in offenders(self.folder)} == patterns
