"""The real compiler in its own process, on the processor: what is found out besides its text."""

import os
import subprocess
import sys

import pytest

from kernelsmith.domain.task import Task, Workload
from kernelsmith.propose.rules.compiler.capture import (
    DEFAULT,
    RECURRENT,
    Captured,
    Options,
    Request,
    Skipped,
    capture,
    capture_all,
)

HEAD = "import torch\nimport torch.nn as nn\n"
ONE = "\n\ndef get_inputs():\n    return [torch.randn(2, 4)]\n"
SOURCES = {
    "modules": HEAD + '''
class Model(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(width)) for _ in range(2)])

    def forward(self, x, scale, other=None):
        h = self.net(x) * scale
        return {"h": h, "x": x, "none": other, "list": [h + self.scales[1], (3,)]}


def get_inputs():
    return [torch.randn(2, 4), 2.5]


def get_init_inputs():
    return [4]
''',
    "nested": HEAD + '''
class Model(nn.Module):
    def forward(self, xs):
        return xs[0] + xs[1]["a"]


def get_inputs():
    return [[torch.randn(2, 4), {"a": torch.randn(2, 4)}]]
''',
    "warns": HEAD + '''
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm2d(7)

    def forward(self, x):
        return self.norm(x[None, None]) + 1
''' + ONE,
    "breaks": HEAD + '''
class Model(nn.Module):
    def forward(self, x):
        print("hello")
        return x + 1 if x.sum().item() > 0 else x - 1
''' + ONE,
    "state": HEAD + '''
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = torch.zeros(2, 4)

    def forward(self, x):
        self.h = torch.tanh(self.h + x)
        return self.h * 2
''' + ONE,
    "counts": HEAD + '''
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * 2
''' + ONE,
    "counts_inside": HEAD + '''
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = {"calls": [0]}

    def forward(self, x):
        self.seen["calls"][0] += 1
        return x * self.seen["calls"][0]
''' + ONE,
    "spectral": HEAD + '''
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.utils.spectral_norm(nn.Linear(4, 4))

    def forward(self, x):
        return self.layer(x)
''' + ONE,
    "recurrent": HEAD + '''
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(4, 8, batch_first=True)

    def forward(self, x):
        return self.cell(x)[0] * 2


def get_inputs():
    return [torch.randn(2, 3, 4)]
''',
    "elsewhere": HEAD + '''
WEIGHT = torch.ones(4)


class Model(nn.Module):
    def forward(self, x):
        return x * WEIGHT
''' + ONE,
}  # fmt: skip
for _name, _dim in (("attends", 3), ("not_attention", -2)):
    SOURCES[_name] = (
        HEAD
        + f"""
class Model(nn.Module):
    def forward(self, q, k, v):
        return (q @ k.transpose(-2, -1) / 4.0).softmax(dim={_dim}) @ v


def get_inputs():
    return [torch.randn(2, 4, 8, 16) for _ in range(3)]
"""
    )
NORM = HEAD + '''
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(x)
''' + ONE  # fmt: skip


@pytest.fixture(scope="module")
def found():
    """All in one process: torch takes seconds to start."""
    task = Task(name="t", source=SOURCES["modules"])
    asked = [
        Request(
            source=each, workload=Workload(), options=RECURRENT if name == "recurrent" else DEFAULT
        )
        for name, each in SOURCES.items()
    ]
    return dict(zip(SOURCES, capture_all(task, asked, device="cpu"), strict=True))


def paths(captured):
    assert isinstance(captured, Captured), captured
    return [each.path for each in captured.arguments]


@pytest.mark.slow
class TestCapture:
    def test_arguments_are_named_as_the_module_names_them(self, found):
        assert paths(found["modules"]) == [
            "self.net[0].weight", "self.net[0].bias", "x", "self.scales[1]",
        ]  # fmt: skip
        assert paths(found["nested"]) == ["xs[0]", "xs[1]['a']"]

    def test_their_layout_is_told(self, found):
        weight = found["modules"].arguments[0]
        assert (weight.shape, weight.stride, weight.dtype) == ((4, 4), (4, 1), "float32")

    def test_numbers_and_constructor_arguments_are_conditions(self, found):
        assert found["modules"].numbers == (("scale", "2.5"), ("other", "None"))
        assert found["modules"].made_with == (("width", "4"), ("eps", "1e-05"))

    def test_the_tree_of_results_is_told(self, found):
        tree = "{{'h': {0}, 'x': x, 'none': None, 'list': [{1}, (3,)]}}"
        assert (found["modules"].tree, found["modules"].outputs) == (tree, 2)

    def test_the_text_stops_before_anything_is_built(self, found):
        assert "def call(" in found["modules"].code
        assert "cpp_pybinding" in found["modules"].code

    def test_a_warning_on_the_way_breaks_nothing(self, found):
        assert paths(found["warns"]) == ["x"]

    def test_a_graph_break_is_skipped_in_one_line(self, found):
        assert isinstance(found["breaks"], Skipped)
        assert "\n" not in found["breaks"].reason

    def test_a_tensor_that_forward_keeps_is_known(self, found):
        assert found["state"].assigned == (("self.h", "{1}"),)

    def test_other_state_is_skipped(self, found):
        assert found["counts"] == Skipped(reason="forward changes self.calls")
        assert found["counts_inside"] == Skipped(reason="forward changes self.seen")

    def test_hooks_may_look_at_the_mode(self, found):
        assert found["spectral"].training is False
        assert found["modules"].training is None

    def test_recurrent_layers_are_compiled_where_that_is_asked_for(self, found):
        assert "self.cell.weight_hh_l0" in paths(found["recurrent"])
        assert found["recurrent"].training is False

    def test_a_tensor_of_the_file_is_skipped(self, found):
        assert "neither an input nor part of the module" in found["elsewhere"].reason

    def test_a_softmax_over_the_keys_is_attention_and_one_over_the_queries_is_not(self, found):
        assert "_scaled_dot_product" in found["attends"].code
        assert "_scaled_dot_product" not in found["not_attention"].code

    def test_train_mode_reaches_the_buffers(self):
        found = capture(NORM, Task(name="t", source=NORM, training=True), Workload(), device="cpu")
        assert found.training is True
        assert "self.norm.running_mean" in paths(found)

    def test_a_function_a_dtype_and_arguments_are_taken_from_the_workload(self):
        source = "import torch\n\n\ndef solve(x, k: int = 3):\n    return torch.relu(x) * k\n"
        source += "\n\ndef get_inputs(n=4):\n    return [torch.randn(n, 4)]\n"
        found = capture(
            source, Task(name="t", source=source, entry="solve"),
            Workload(arguments=(("n", 6),), dtype="bfloat16"), device="cpu",
            options=Options(name="own", threads=1),
        )  # fmt: skip
        (x,) = found.arguments
        assert (x.path, x.shape, x.dtype) == ("x", (6, 4), "bfloat16")
        assert found.numbers == (("k", "3"),)

    def test_time_runs_out(self):
        source = SOURCES["nested"].replace(
            "return [[", "import time; time.sleep(60)\n    return [["
        )
        task = Task(name="t", source=source)
        found = capture(source, task, Workload(), device="cpu", timeout_s=8.0)
        assert found == Skipped(reason="torch's compiler took more than 8 s")


def test_a_process_that_dies_is_a_reason():
    source = "import os\nos._exit(3)\n"
    task = Task(name="t", source=source)
    found = capture(source, task, Workload(), device="cpu")
    assert found == Skipped(reason="torch's compiler ended early: status 3")


def test_reading_captures_needs_no_torch():
    modules = ("capture", "compiled", "reader", "triton_writer")
    names = ", ".join(f"kernelsmith.propose.rules.compiler.{each}" for each in modules)
    code = f"import sys, {names}; sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=False, env=dict(os.environ))
    assert done.returncode == 0
