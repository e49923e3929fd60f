"""From a task to forms that compute the same."""

import subprocess
import sys

import pytest
import torch

from kernelsmith.domain.task import Task, Workload
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.rewrite.cost import Peaks
from kernelsmith.propose.rules.rewrite.file import write_file
from kernelsmith.propose.rules.rewrite.forms import forms_of
from kernelsmith.propose.rules.rewrite.read import Traced
from kernelsmith.propose.rules.rewrite.session import open_session, request_for

FREE = Peaks(launch_us=0.0)

MEAN_OF_LINEAR = '''
"""A linear layer whose features are averaged; the rest works on one value per row."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, out, shift):
        """Make the layer."""
        super().__init__()
        self.layer = nn.Linear(features, out)
        self.shift = shift

    def forward(self, x):
        print("a task may print")
        y = self.layer(x) - self.shift
        y = torch.mean(y, dim=1, keepdim=True)
        return torch.logsumexp(y, dim=1) + 0 * y.sum()


def get_inputs(rows=64, features=256):
    return [torch.randn(rows, features)]


def get_init_inputs():
    return [256, 512, 0.5]
'''

CONSTANT = """
import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, channels, 3)

    def forward(self, x):
        return torch.clamp(torch.min(self.conv(x), torch.tensor(0.0)), 0.0, 1.0)


batch, channels = 8, 16


def get_inputs():
    return [torch.rand(batch, 3, 64, 64)]


def get_init_inputs():
    return [channels]
"""

FUNCTION = """
import torch


def rows(a, b, scale):
    return torch.sum(torch.matmul(a, b) * scale, dim=1)


def get_inputs(n=256):
    return [torch.randn(n, n), torch.randn(n, n), 3.0]
"""


def a_task(source, **changes):
    return Task(name="a task", source=source, **changes)


def the_model(source, *args, seed=0):
    space = {"__name__": "form"}
    exec(compile(source, "form.py", "exec"), space)
    torch.manual_seed(seed)
    return space["Model"](*args)


MEANS = a_task(
    MEAN_OF_LINEAR,
    workloads=(
        Workload(),
        Workload(name="more rows", arguments=(("rows", 128),)),
        Workload(name="unseen", arguments=(("rows", 3),), held_out=True),
    ),
)


@pytest.fixture(scope="module")
def mean_forms():
    return forms_of(MEANS, peaks=FREE)


def test_the_written_form_comes_first_and_then_the_cheapest(mean_forms):
    assert mean_forms[0].name == "written"
    assert mean_forms[0].source == MEAN_OF_LINEAR
    costs = [form.cost_us for form in mean_forms]
    assert costs[1] < costs[0] / 2
    assert "reduce-before-product" in mean_forms[1].name
    assert "factors are reduced first" in mean_forms[1].words
    assert not mean_forms[1].degenerate


@pytest.mark.parametrize("rows", [64, 128, 3])
def test_a_form_computes_the_same_on_shapes_seen_and_unseen(mean_forms, rows):
    form = mean_forms[1].source
    written, rewritten = (the_model(each, 256, 512, 0.5) for each in (MEAN_OF_LINEAR, form))
    x = torch.randn(rows, 256)
    assert torch.allclose(rewritten(x), written(x), atol=1e-6)
    x = x.double()
    assert torch.allclose(rewritten.double()(x), written.double()(x), atol=1e-12)


def test_a_form_takes_the_written_way_where_it_was_not_traced(mean_forms):
    taken = []
    model = the_model(mean_forms[1].source, 256, 512, 0.5)
    model.plain = lambda x: taken.append(x.shape)
    model(torch.randn(64, 256))
    model(torch.randn(128, 256))
    assert not taken
    model(torch.randn(65, 256))
    model.double()(torch.randn(64, 256).double())
    assert len(taken) == 2
    other = the_model(mean_forms[1].source, 256, 512, 0.25)
    other.plain = lambda x: taken.append("constructor")
    other(torch.randn(64, 256))
    assert taken[-1] == "constructor"


def test_a_form_has_the_same_keys_and_follows_weights_that_change(mean_forms):
    written = the_model(MEAN_OF_LINEAR, 256, 512, 0.5)
    rewritten = the_model(mean_forms[1].source, 256, 512, 0.5, seed=1)
    assert list(rewritten.state_dict()) == list(written.state_dict())
    rewritten.load_state_dict(written.state_dict())
    x = torch.randn(64, 256)
    for _ in range(2):
        assert torch.allclose(rewritten(x), written(x), atol=1e-5)
        with torch.no_grad():
            for one, two in zip(written.parameters(), rewritten.parameters(), strict=True):
                one.mul_(-1.5)
                two.copy_(one)


@pytest.mark.slow
def test_the_same_task_gives_the_same_text(mean_forms):
    assert forms_of(MEANS, peaks=FREE) == mean_forms
    assert "torch.ops" not in mean_forms[1].source


def test_a_constant_output_is_found_and_said():
    _, form = forms_of(a_task(CONSTANT))
    assert form.name == "forced-constant"
    assert "does not depend on the inputs" in form.degenerate
    assert "finite" in form.words
    found = the_model(form.source, 16)(torch.rand(8, 3, 64, 64))
    assert found.shape == (8, 16, 62, 62)
    assert not found.any()


def test_a_function_is_rewritten_too():
    forms = forms_of(a_task(FUNCTION, entry="rows"), peaks=FREE)
    space = {}
    exec(forms[1].source, space)
    a, b = torch.randn(256, 256), torch.randn(256, 256)
    want = torch.sum(a @ b * 3.0, dim=1)
    assert torch.allclose(space["rows"](a, b, 3.0), want, rtol=1e-3, atol=1e-3)
    assert torch.allclose(space["rows"](a, b, 2.0), want / 1.5, rtol=1e-3, atol=1e-3)


def test_the_trial_sees_a_jump_an_end_and_an_infinity():
    """Wrong rules of the past, written out: drawn numbers alone did not show them."""
    softplus = "torch.nn.functional.softplus({}, threshold=0.5)"
    softsign = "torch.nn.functional.softsign({})"

    def errors(session, body, other, *, all_values=True):
        task, form = (a_task(one_line(f"return {each}").replace("(4, 8)", "(32, 64)"))
                      for each in (body, other))  # fmt: skip
        asked = {"form": form.source, "doubled": form.source, "all_values": all_values}
        request = request_for(task, task.workloads[0], task.source, "compare", **asked)
        found = session.ask({**request, "dtype": "float32"})["found"]
        return {each["variant"]: each["double"] for each in found}

    with open_session() as session:
        jump = errors(session, f"torch.amax({softplus.format('x')}, 1)",
                      softplus.format("torch.amax(x, 1)"))  # fmt: skip
        end = errors(session, f"torch.amax({softsign.format('x')}, 1)",
                     softsign.format("torch.amax(x, 1)"))  # fmt: skip
        kept = errors(session, "x - torch.logsumexp(x, 1, keepdim=True)",
                      "torch.log_softmax(x, 1)", all_values=False)  # fmt: skip
    assert jump["plain"] < 1e-9 < jump["near"]
    assert end.pop("odd") > 1e-9 > max(end.values())
    assert "odd" not in kept
    assert max(kept.values()) < 1e-9


def test_results_of_a_form_share_no_memory():
    body = "y = torch.relu(torch.relu(x))\n        z = y * torch.tensor(0.1).sqrt()\n"
    body += "        return y, torch.relu(x).clone(), x[:2] * 1.0, z"
    written, form, *_ = (each.source for each in forms_of(a_task(one_line(body)), peaks=FREE))
    x = torch.randn(4, 8)
    results = the_model(form)(x)
    assert len({each.untyped_storage().data_ptr() for each in (x, *results)}) == 5
    torch.testing.assert_close(results, the_model(written)(x))


UNTRACEABLE = {
    "x += 1\n        return x": "input or a weight in place",
    "return x + torch.rand_like(x)": "random",
    "return x if x.sum() > 0 else -x": "DataDependent",
    "raise SystemExit(2)": "SystemExit",
    "self.seen = getattr(self, 'seen', 0) + 1\n        return x * 2": "attributes",
    "return {'x': x}": "returns a dict",
    "y = x * 2\n        z = y[0]\n        y.add_(1)\n        return z": "two names",
    "import os\n        os._exit(3)": "ended",
}


def one_line(body):
    return f"""
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        {body}


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return []
"""


def test_what_cannot_be_told_by_a_list_of_calls_is_not_traced():
    with open_session() as session:
        for body, why in UNTRACEABLE.items():
            task = a_task(one_line(body))
            with pytest.raises(NotRecognised, match=why):
                session.ask(request_for(task, task.workloads[0], task.source, "trace"))


@pytest.mark.slow
def test_a_task_that_hangs_is_given_up():
    with open_session(timeout_s=15) as session:
        task = a_task(one_line("while True: pass"))
        with pytest.raises(NotRecognised, match="hung"):
            session.ask(request_for(task, task.workloads[0], task.source, "trace"))


def test_where_nothing_applies_there_is_the_written_form_alone():
    source = one_line("return torch.tanh(x)")
    assert [form.source for form in forms_of(a_task(source), peaks=FREE)] == [source]


def test_a_call_whose_second_result_is_none_is_read():
    made = "def __init__(self):\n        super().__init__()\n"
    made += "        self.attend = torch.nn.MultiheadAttention(8, 2, batch_first=True)\n\n    "
    source = one_line("return self.attend(x, x, x, need_weights=False)[0] + x")
    source = source.replace("def forward", made + "def forward").replace("(4, 8)", "(2, 4, 8)")
    assert forms_of(a_task(source), peaks=FREE)[0].cost_us is not None


def test_where_a_rule_fails_there_is_the_written_form_alone(monkeypatch):
    def broken(*args):
        raise TypeError("nobody thought of it")

    monkeypatch.setattr("kernelsmith.propose.rules.rewrite.forms.search", broken)
    (written,) = forms_of(MEANS, peaks=FREE)
    assert written.name == "written"


def test_importing_the_rules_does_not_import_torch():
    code = "import sys, kernelsmith.propose.rules.rewrite.forms; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_inherited_forward_is_rewritten_beside_the_base():
    source = MEAN_OF_LINEAR.replace("class Model(", "class Base(").replace(
        "def get_inputs", "class Model(Base):\n    pass\n\n\ndef get_inputs"
    )
    written, *others = forms_of(Task(name="inherited", source=source), peaks=FREE)
    assert others
    spaces: list[dict[str, type]] = [{}, {}]
    for form, space in zip((written, others[0]), spaces, strict=True):
        exec(form.source, space)
    x = torch.randn(64, 256)
    for given in ((256, 512, 0.5), (256, 512, 2.0)):
        model, other = (space["Model"](*given) for space in spaces)
        other.load_state_dict(model.state_dict())
        assert other.as_traced is (given[-1] == 0.5)
        torch.testing.assert_close(other(x), model(x))


def test_no_import_is_put_before_what_comes_from_the_future():
    source = FUNCTION.strip().replace("import torch", "from torch import matmul, randn, sum", 1)
    source = source.replace("torch.", "")
    traced = Traced(roots=(0,), returns="Tensor", arguments=(), init=())
    branch = (traced, ["return a"])
    compile(write_file(source, "rows", [branch]), "plain.py", "exec")
    with pytest.raises(NotRecognised, match="no place for an import"):
        write_file(f"from __future__ import annotations\n{source}", "rows", [branch])
