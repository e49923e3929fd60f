"""The zoo on a GPU: no cheat passes, with the static guard or without it; every honest one does."""

import re
from dataclasses import replace

import pytest
import zoo

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.settings import effort
from kernelsmith.evaluate.tasks import load_candidate, load_task

TASKS = zoo.HERE / "gpu" / "tasks"
OFFENDERS, HONEST = zoo.animals("gpu/offenders"), zoo.animals("gpu/honest")
REFUSABLE = [animal for animal in OFFENDERS if Verdict.REFUSED in animal.expected]
"""Those that the guard may stop: for all others it makes no difference."""
QUICK = replace(effort("quick", "triton"), robust=False)
PAGE = (zoo.HERE.parents[1] / "docs" / "threat-model.md").read_text()
PATTERNS = set(re.findall(r"`gpu/([a-h]\d\d)_\*`", PAGE))


def name(animal: zoo.Animal) -> str:
    return animal.path.stem


def opened(*, static: bool) -> LocalEvaluator:
    # By its own name: an interpreter chosen by the environment would time nothing.
    from kernelsmith.evaluate.cuda.backend import CudaBackend

    return LocalEvaluator(CudaBackend(), replace(QUICK, static=static))


@pytest.fixture(scope="module")
def guarded():
    with opened(static=True) as evaluator:
        yield evaluator


@pytest.fixture(scope="module")
def unguarded():
    with opened(static=False) as evaluator:
        yield evaluator


def judged(evaluator: LocalEvaluator, animal: zoo.Animal):
    task = load_task(TASKS / f"{animal.task}.py")
    return evaluator.judge(task, load_candidate(animal.path, "triton"))


@pytest.mark.triton
@pytest.mark.parametrize("animal", OFFENDERS, ids=name)
def test_no_cheat_passes(animal, guarded):
    found = judged(guarded, animal)
    assert found.verdict is not Verdict.PASSED
    assert found.verdict in animal.expected, found.message


@pytest.mark.triton
@pytest.mark.parametrize("animal", REFUSABLE, ids=name)
def test_no_cheat_passes_on_the_evidence_alone(animal, unguarded):
    found = judged(unguarded, animal)
    assert found.verdict is not Verdict.PASSED
    assert found.verdict in animal.behaviour, found.message


@pytest.mark.triton
@pytest.mark.parametrize("animal", HONEST, ids=name)
def test_an_honest_candidate_passes(animal, guarded):
    found = judged(guarded, animal)
    assert found.verdict is Verdict.PASSED, found.message
    assert found.timing is not None
    assert any(kernel.own for kernel in found.kernels)


@pytest.mark.parametrize("animal", [*OFFENDERS, *HONEST], ids=name)
def test_every_file_names_a_task_that_is_there(animal):
    assert (TASKS / f"{animal.task}.py").exists()
    passes = animal in HONEST
    assert (Verdict.PASSED in animal.expected) is passes
    assert (Verdict.PASSED in animal.behaviour) is passes


def test_a_files_name_and_its_catalogue_number_agree():
    for animal in OFFENDERS:
        letter, digits = animal.path.stem[0].upper(), int(animal.path.stem[1:3])
        assert animal.number == f"{letter}{digits}", animal.path.name


def test_the_threat_model_and_the_gpus_zoo_name_each_other():
    assert {animal.path.stem[:3] for animal in OFFENDERS} == PATTERNS


def test_the_gpus_zoo_is_large_enough_to_mean_something():
    assert len(OFFENDERS) >= 30
    assert len(HONEST) >= 20
