"""The built-in suite: every task loads, covers its families, runs, and asks for real work."""

import dataclasses
import functools
import math
import types
from collections import Counter

import pytest
import torch
from suite_table import FAMILIES, PAGE, PATHS, page, row

from kernelsmith.api import load_task
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import LabelName, Verdict
from kernelsmith.domain.task import Library, Workload
from kernelsmith.evaluate import tasks
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.settings import effort
from kernelsmith.evaluate.worker import degenerate
from kernelsmith.evaluate.worker.answers import Case
from kernelsmith.evaluate.worker.inputs import InputSet, make
from kernelsmith.evaluate.worker.trees import flatten

every_task = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
_LARGEST_BYTES = 4 << 30
"""Inputs, weights and outputs of one launch; the judge keeps several, also in float64."""


@functools.cache
def module_of(path) -> types.ModuleType:
    module = types.ModuleType(path.stem)
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return module


def case_of(module, workload: Workload, dtype: torch.dtype | None = None) -> Case:
    torch.manual_seed(0)
    model = module.Model(*module.get_init_inputs(**dict(workload.init))).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.02 * torch.randn_like(weight))  # a weight of ones would hide a product
    return Case(model if dtype is None else model.to(dtype), None, dtype, None, None)


def drawn(module, workload: Workload, seed: int, dtype: torch.dtype | None = None) -> InputSet:
    found = make(module.get_inputs, dict(workload.arguments), dtype, seed, "plain")
    assert found is not None
    return found


def outputs(case: Case, chosen: InputSet, leaves=None) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    with torch.no_grad():
        flatten(case.call(chosen, leaves or chosen.leaves, double=False), found)
    return found


@functools.cache
def smallest(path) -> Workload:
    """The timed workload for a processor with the fewest elements to read."""
    with torch.device("meta"):
        return min(
            (each for each in load_task(path).workloads if not each.held_out),
            key=lambda each: sum(
                x.numel() for x in module_of(path).get_inputs(**dict(each.arguments))
            ),
        )


def is_finite(tensors: list[torch.Tensor]) -> bool:
    return all(bool(torch.isfinite(each).all()) for each in tensors if each.is_floating_point())


def test_there_are_tasks_of_every_family_and_difficulty():
    rows = [row(path) for path in PATHS]
    assert len(rows) >= 64
    families = Counter(each.family for each in rows)
    assert set(families) == set(FAMILIES)
    assert min(families.values()) >= 2
    assert set(Counter(each.difficulty for each in rows)) == {1, 2, 3}
    assert all(each.origin and each.about for each in rows)


def test_the_page_lists_them_as_they_are():
    assert PAGE.read_text() == page(), "run: python tests/tasks/suite_table.py"


@every_task
def test_a_task_has_small_large_and_held_out_workloads(path):
    whole = tasks.load_task(path)
    small = load_task(path)
    assert sum(not each.held_out for each in small.workloads) >= 2
    assert any(each.held_out for each in small.workloads)
    # rms_norm is the page that documentation and benchmarks quote; it stays as it was measured.
    assert len(whole.workloads) > len(small.workloads) or path.stem == "rms_norm"


@every_task
def test_a_task_runs_and_all_of_it_matters(path):
    module, workload = module_of(path), smallest(path)
    case = case_of(module, workload)
    sets = [drawn(module, workload, seed) for seed in (1, 2, 3)]
    first, second = sets[:2]
    found = outputs(case, first)
    assert is_finite(found)
    for one, other in zip(found, outputs(case, second), strict=True):
        assert one.shape == other.shape
        assert not torch.equal(one, other), "an output is the same under another seed"
    for number, leaf in enumerate(second.leaves):
        changed = [*first.leaves[:number], leaf, *first.leaves[number + 1 :]]
        pairs = zip(found, outputs(case, first, changed), strict=True)
        assert not all(torch.equal(*pair) for pair in pairs), f"input {number} does not matter"
    assert degenerate.examine(case, sets) == []


@every_task
def test_large_workloads_fit_together_and_into_memory(path):
    """On the device without memory: shapes are computed, values are not."""
    module = module_of(path)
    for workload in tasks.load_task(path).workloads:
        with torch.device("meta"), torch.no_grad():
            model = module.Model(*module.get_init_inputs(**dict(workload.init))).eval()
            leaves = module.get_inputs(**dict(workload.arguments))
            found: list[torch.Tensor] = []
            flatten(model(*leaves), found)
        assert all(math.prod(each.shape) > 0 for each in found), workload.name
        tensors = [*leaves, *found, *model.state_dict().values()]
        assert sum(each.numel() * each.element_size() for each in tensors) <= _LARGEST_BYTES


@every_task
def test_a_task_runs_in_the_precisions_that_it_names(path):
    module, workload = module_of(path), smallest(path)
    for name in {each.dtype for each in tasks.load_task(path).workloads} - {None}:
        dtype = getattr(torch, name)
        found = outputs(case_of(module, workload, dtype), drawn(module, workload, 1, dtype))
        assert is_finite(found)
        assert dtype in {each.dtype for each in found}


@pytest.fixture(scope="module")
def evaluator():
    with LocalEvaluator("cpu", effort("quick")) as evaluator:
        yield evaluator


@pytest.mark.slow
@every_task
def test_a_reference_passes_against_itself(path, evaluator):
    task = dataclasses.replace(load_task(path), library=Library.ANY)
    source = path.read_text().replace("class Model(", "class ModelNew(")
    found = evaluator.judge(task, Candidate(backend="cpu", source=source))
    assert found.verdict is Verdict.PASSED, found.message
    bad = (LabelName.DEGENERATE, LabelName.NO_FLOAT64, LabelName.FRAGILE)
    assert [label for label in found.labels if label.name in bad] == []
