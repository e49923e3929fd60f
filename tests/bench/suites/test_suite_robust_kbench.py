"""robust-kbench's settings become workloads; what asks for gradients is absent."""

import json

import pytest

from kernelsmith.bench.suite import Absent, open_suite

FORWARD = """
import torch
import torch.nn as nn
def forward_fn(x, weight):
    return x * weight
class Model(nn.Module):
    def __init__(self, features=8, init_method="standard"):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight)
def get_inputs(batch_size=2, features=8):
    return [torch.randn(batch_size, features)]
input_names = ["x"]
"""
CONFIG = {
    "single_input_configs": [{"batch_size": 4}],
    "single_init_configs": [{"init_method": "random"}],
    "single_shared_configs": [{"features": 16}],
    "multi_input_configs": [{"batch_size": 4}, {"batch_size": 32}],
    "multi_init_configs": [{"init_method": "random"}, {"init_method": "standard"}],
    "multi_shared_configs": [{"features": 16}, {"features": 24}],
}


@pytest.fixture
def found(put, tmp_path):
    put("tasks/scale/func_forward.py", FORWARD)
    put("tasks/scale/func_backward.py", FORWARD)
    put("tasks/scale/config_forward.json", json.dumps(CONFIG))
    put("tasks/scale/filter_results.json", json.dumps({"filter_output_std": True,
                                                       "filter_llm_sanity": True}))  # fmt: skip
    put("tasks/bare/func_forward.py", FORWARD)
    for number in (2, 10):
        folder = f"tasks/kernelbench/level_1/task_{number}"
        put(f"{folder}/func_forward.py", FORWARD)
        put(f"{folder}/{number}_Matmul_.py", "")
        put(f"{folder}/config_forward.json", "{}")
    return {each.id: each for each in open_suite(f"robust-kbench:{tmp_path}").entries()}


def test_one_setting_is_timed_and_others_are_held_out(found):
    workloads = found["robust-kbench/scale"].task.workloads
    first = workloads[0]
    assert dict(first.arguments) == {"batch_size": 4, "features": 16}
    assert dict(first.init) == {"init_method": "random", "features": 16}
    assert [each.held_out for each in workloads] == [False] + [True] * (len(workloads) - 1)
    forms = {(each.arguments, each.init) for each in workloads}
    assert len(forms) == len(workloads) >= 4


def test_settings_reach_the_constructor(found):
    scope: dict = {}
    task = found["robust-kbench/scale"].task
    exec(task.source, scope)
    model = scope["Model"](**scope["get_init_inputs"](**dict(task.workloads[0].init)))
    (x,) = scope["get_inputs"](**dict(task.workloads[0].arguments))
    assert model(x).shape == (4, 16)


def test_gradients_and_missing_settings_are_absent(found):
    assert "forward computation only" in found["robust-kbench/scale/backward"].reason
    assert isinstance(found["robust-kbench/bare"], Absent)
    assert "config_forward.json" in found["robust-kbench/bare"].reason


def test_what_its_own_filters_found_is_noted_without_the_models_opinion(found):
    entry = found["robust-kbench/scale"]
    assert entry.is_suspect
    assert "output_std" in entry.note
    assert "sanity" not in entry.note


def test_ported_tasks_come_by_number_under_their_own_names(found):
    ported = [each for each in found if "/kernelbench/" in each]
    assert [each.rpartition("_")[2] for each in ported] == ["2", "10"]
    entry = found[ported[0]]
    assert (entry.level, entry.family) == ("level 1", "matmul")
