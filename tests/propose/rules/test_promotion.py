"""Truth values, whole numbers and floats that meet: torch's own answer is the measure."""

from dataclasses import replace

import pytest
from rule_tasks import a_task

from kernelsmith.domain.task import Workload
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.promotion import Of, made_of
from kernelsmith.propose.rules.reader import read_graph

torch = pytest.importorskip("torch")

RESULTS = {
    "return (x > 0) * x": Of.LIKE,
    "return torch.where(x > 0, x, 0.0)": Of.LIKE,
    "return torch.nn.functional.leaky_relu(x, 0.1)": Of.LIKE,
    "return torch.maximum(x > 0, x < 1) * x": Of.LIKE,
    "return x / (x > 0).sum(-1, keepdim=True)": Of.LIKE,
    "return (x.sum(-1, keepdim=True) > 1) * x": Of.LIKE,
    "return torch.where(x > 0, 1.0, 0.5) * x": Of.DEFAULT,
    "return torch.exp(x > 0) * x": Of.DEFAULT,
    "return x + (x > 0) * 0.5": Of.DEFAULT,
    "return (x > 0).sum(-1) / x.shape[-1]": Of.DEFAULT,
}


@pytest.mark.parametrize("forward", RESULTS)
def test_a_result_has_the_dtype_that_torch_gives_it(forward):
    task = a_task(forward)
    graph = read_graph(task)
    found = made_of(graph.nodes)[graph.output]
    assert found is RESULTS[forward]
    names: dict = {}
    exec(task.source, names)
    made = names["Model"]()(torch.randn(4, 8, dtype=torch.bfloat16))
    assert made.dtype is (torch.bfloat16 if found is Of.LIKE else torch.float32)


@pytest.mark.parametrize("forward", [each for each, of in RESULTS.items() if of is Of.DEFAULT])
def test_what_is_float32_whatever_the_inputs_are_is_refused_for_others(forward):
    task = a_task(forward)
    half = replace(task, workloads=(Workload(), Workload(name="half", dtype="bfloat16")))
    with pytest.raises(NotRecognised, match="torch makes float32"):
        read_graph(half)
    written = replace(task, source=task.source.replace("randn(5, 67)", "randn(5, 67).bfloat16()"))
    with pytest.raises(NotRecognised, match="rules"):
        read_graph(written)


@pytest.mark.parametrize(
    "forward",
    [
        "return x * ((x > 0) + (x < 1))",
        "return x * torch.add(x > 0, x < 1)",
        "return x * ((x > 0) * (x < 1) + (x < 0.5))",
        "return x * (torch.where(x > 0, x < 1, x < 0.5) + (x > -1))",
        "return x * ((x > 0).amax(-1, keepdim=True) + (x < 1).amax(-1, keepdim=True))",
    ],
)
def test_truth_values_that_are_added_up_are_refused(forward):
    task = a_task(forward)
    names: dict = {}
    exec(task.source, names)
    ones = torch.full((2, 4), 0.25)
    assert torch.equal(names["Model"]()(ones), ones), "true and true is true, not 2"
    with pytest.raises(NotRecognised, match="truth values add up"):
        read_graph(task)
