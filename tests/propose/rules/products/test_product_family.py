"""The family of products, over captures that were made on an H200 and are replayed."""

import dataclasses
import pickle
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "compiler"))

from compiled_cases import captured, task

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.task import Workload
from kernelsmith.evaluate.guards.static import inspect_source
from kernelsmith.propose.rules.compiler.capture import DEFAULT
from kernelsmith.propose.rules.compiler.compiled import CompiledFamily
from kernelsmith.propose.rules.family import owned
from kernelsmith.propose.rules.forms import Form
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.products.standalone import product_family


class Replay:
    """Answers with a capture from a file."""

    def __init__(self, name):
        self.name = name

    def __call__(self, task, requests):
        return [captured(self.name) for _ in requests]


def family(name="linear_gelu"):
    one = dataclasses.replace(task(name), workloads=(Workload(name="one"),))
    forms = [Form(name="written", source=one.source)]
    return product_family(
        one, CompiledFamily(one, forms, [DEFAULT], Replay(name), None, ()), ["written"]
    )


def test_a_linear_layer_and_its_activation_are_one_product():
    found = family()
    source = found.source(found.space.defaults | {"product": "planes"})
    assert "# kernelsmith rules: products form=written option=default product=planes" in source
    assert "torch.mm" not in source
    assert source.count("tl.erf") == 2  # in the product, and where it is repaired


@pytest.mark.parametrize("name", ["linear_gelu", "batched_matmul"])
def test_every_seed_is_written_the_same_way_twice_or_refused(name):
    found = family(name)
    written = 0
    for seed in found.space.starts:
        try:
            source = found.source(seed)
        except NotRecognised:
            continue
        written += 1
        assert owned(found, source) == seed
        assert inspect_source(Candidate(backend="triton", source=source), task(name)) is None
    assert written >= 4


def test_what_is_left_to_the_library_is_no_candidate():
    found = family("batched_matmul")
    with pytest.raises(NotRecognised):
        found.source(found.space.defaults | {"product": "library"})


def test_a_task_without_a_product_is_not_taken():
    with pytest.raises(NotRecognised):
        family("layer_norm")


def test_a_family_can_go_to_another_process():
    found = family()
    again = pickle.loads(pickle.dumps(found))
    assert again.source(again.space.defaults) == found.source(found.space.defaults)
