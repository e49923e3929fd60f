"""CUDA kernels that tasks bring along, and their translations, are right: run on a processor."""

import types
from collections import Counter
from pathlib import Path

import pytest
import torch
from processor import Processor

from kernelsmith.evaluate.tasks import load_task
from kernelsmith.propose.rules.maca.family import PortFamily, cuda_of
from kernelsmith.propose.rules.maca.translation import to_maca

FOLDER = Path(__file__).parents[4] / "tasks" / "cuda"
PATHS = sorted(FOLDER.glob("*.py"))
TASKS = {path.stem: load_task(path) for path in PATHS}
SMALL = {"rows": 3, "dim": 771}, {"batch": 1, "channels": 8, "size": 13}
"""As many rows as fit into a second, and a width that nothing divides."""

every_task = pytest.mark.parametrize("name", TASKS)


def module_of(name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    exec(compile(TASKS[name].source, name, "exec"), module.__dict__)
    return module


def is_right(processor: Processor, name: str) -> None:
    torch.manual_seed(7)
    module = module_of(name)
    held = next(each for each in TASKS[name].workloads if each.held_out)
    small = SMALL["rows" not in dict(held.arguments)]
    model = module.Model(*module.get_init_inputs(**dict(held.init))).eval()
    candidate = processor.candidate(name)["ModelNew"](*module.get_init_inputs(**dict(held.init)))
    for value in model.state_dict().values():
        value.copy_(torch.rand_like(value) + 0.5)
    candidate.load_state_dict(model.state_dict())
    inputs = module.get_inputs(**small)
    with torch.no_grad():
        wanted, found = model(*inputs), candidate(*inputs)
    torch.testing.assert_close(found, wanted, rtol=2e-5, atol=2e-5)


@pytest.fixture(scope="module")
def cuda(tmp_path_factory):
    sources = {name: cuda_of(task) for name, task in TASKS.items()}
    return Processor(sources, 32, tmp_path_factory.mktemp("cuda"))


@pytest.fixture(scope="module")
def maca(tmp_path_factory):
    sources = {name: to_maca(cuda_of(task)) for name, task in TASKS.items()}
    return Processor(sources, 64, tmp_path_factory.mktemp("maca"))


@pytest.fixture(scope="module")
def scheduled(tmp_path_factory):
    """Another block size, unrolled, and translated."""
    sources = {}
    for name, task in TASKS.items():
        family = PortFamily("maca", cuda_of(task))
        changes = {"threads": "128", "unroll": "4", "blocks": "1024"}
        known = family.space.defaults
        chosen = {**known, **{key: value for key, value in changes.items() if key in known}}
        sources[name] = family.source(chosen)
    return Processor(sources, 64, tmp_path_factory.mktemp("scheduled"))


@every_task
def test_the_cuda_kernel_is_right(cuda, name):
    is_right(cuda, name)


@every_task
def test_its_translation_is_right_on_waves_of_64(maca, name):
    is_right(maca, name)


@pytest.mark.slow
@every_task
def test_another_schedule_of_it_is_right_too(scheduled, name):
    is_right(scheduled, name)


def test_the_groups_are_those_of_the_paper():
    groups = Counter(module_of(name).FAMILY for name in TASKS)
    assert groups == {"activation": 15, "normalisation": 8, "reduction": 17, "loss": 5}
