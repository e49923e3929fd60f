"""The zoo in CUDA C++: no cheat passes, with the static guard or without it; honest ones do."""

import re
from dataclasses import replace

import pytest
import zoo

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.guards.static import FindingKind, inspect_source
from kernelsmith.evaluate.settings import effort
from kernelsmith.evaluate.tasks import load_candidate, load_task

TASKS = zoo.HERE / "gpu" / "tasks"
OFFENDERS, HONEST = zoo.animals("cuda/offenders"), zoo.animals("cuda/honest")
REFUSABLE = [animal for animal in OFFENDERS if Verdict.REFUSED in animal.expected]
QUICK = replace(effort("quick", "cuda"), robust=False, timeout_s=120.0)
PAGE = (zoo.HERE.parents[1] / "docs" / "threat-model.md").read_text()
PATTERNS = set(re.findall(r"`cuda/([a-h]\d\d)_\*`", PAGE))


def name(animal: zoo.Animal) -> str:
    return animal.path.stem


def opened(*, static: bool) -> LocalEvaluator:
    from kernelsmith.evaluate.nvcc.backend import CudaCppBackend

    return LocalEvaluator(CudaCppBackend(), replace(QUICK, static=static))


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
    return evaluator.judge(task, load_candidate(animal.path, "cuda"))


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
    assert any(kernel.own and kernel.registers for kernel in found.kernels)


@pytest.mark.parametrize("animal", HONEST, ids=name)
def test_the_static_guard_lets_honest_ones_pass(animal):
    task = load_task(TASKS / f"{animal.task}.py")
    assert inspect_source(load_candidate(animal.path, "cuda"), task) is None


@pytest.mark.parametrize("animal", [a for a in OFFENDERS if a.expected == (Verdict.REFUSED,)],
                         ids=name)  # fmt: skip
def test_the_static_guard_stops_those_that_it_can(animal):
    task = load_task(TASKS / f"{animal.task}.py")
    found = inspect_source(load_candidate(animal.path, "cuda"), task)
    assert found is not None
    assert found.kind is FindingKind.REFUSED


def test_the_threat_model_and_the_zoo_in_cuda_name_each_other():
    assert {animal.path.stem[:3] for animal in OFFENDERS} == PATTERNS


def test_a_files_name_and_its_catalogue_number_agree():
    for animal in OFFENDERS:
        letter, digits = animal.path.stem[0].upper(), int(animal.path.stem[1:3])
        assert animal.number == f"{letter}{digits}", animal.path.name
