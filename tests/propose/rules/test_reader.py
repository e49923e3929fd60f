"""What the rules recognise, and what they say of the rest."""

import ast
from dataclasses import replace

import pytest
from rule_tasks import KNOWN, UNKNOWN, a_task

from kernelsmith.domain.task import Workload
from kernelsmith.propose.rules.graph import Kind, NotRecognised, Shape
from kernelsmith.propose.rules.plan import onlines, plan
from kernelsmith.propose.rules.reader import read_graph

FORMS = {
    "chain": (False, Shape.FULL, 0, 1), "swiglu": (False, Shape.FULL, 0, 1),
    "bias": (True, Shape.FULL, 0, 1), "sum": (True, Shape.SQUEEZED, 1, 1),
    "kept_mean": (True, Shape.FULL, 1, 2), "max": (True, Shape.SQUEEZED, 2, 1),
    "softmax": (True, Shape.FULL, 2, 3), "log_softmax": (True, Shape.FULL, 2, 3),
    "logsumexp": (True, Shape.ROW, 2, 2), "layer_norm": (True, Shape.FULL, 2, 3),
    "swish_sum": (True, Shape.SQUEEZED, 1, 1), "cosine": (True, Shape.SQUEEZED, 3, 1),
    "mse": (False, Shape.SCALAR, 1, 1), "row_mean": (True, Shape.SCALAR, 2, 2),
    "linear": (True, Shape.FULL, 0, 1), "linear_softmax": (True, Shape.FULL, 2, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_task_becomes_the_graph_that_it_computes(name):
    graph = read_graph(KNOWN[name])
    has_rows, shape, reduces, sweeps = FORMS[name]
    assert graph.has_rows is has_rows
    assert graph.result.shape is shape
    assert len(graph.of(Kind.REDUCE)) == reduces
    assert len(plan(graph, keep=False, online=False).sweeps) == sweeps


@pytest.mark.parametrize("says", UNKNOWN)
def test_what_is_not_recognised_is_named_in_one_line(says):
    with pytest.raises(NotRecognised) as caught:
        read_graph(UNKNOWN[says])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_online_sweep_takes_the_place_of_two():
    graph = read_graph(KNOWN["softmax"])
    assert len(onlines(graph)) == 1
    assert len(plan(graph, keep=False, online=True).sweeps) == 2


def test_only_what_a_later_sweep_reads_again_is_kept():
    graph = read_graph(KNOWN["gelu_softmax"])
    first, second, third = plan(graph, keep=True, online=False).sweeps
    assert len(first.keeps) == 1  # gelu
    assert [graph.nodes[n].op for n in second.keeps] == ["exp"]
    assert third.keeps == ()


def test_equal_expressions_are_computed_once():
    graph = read_graph(a_task("return torch.exp(x) + torch.exp(x)"))
    assert [n.op for n in graph.nodes].count("exp") == 1


def test_a_number_that_differs_between_workloads_is_read_at_call_time():
    graph = read_graph(KNOWN["number"])
    assert [n.text for n in graph.nodes if n.kind is Kind.NUMBER] == ["self.s"]


def test_a_product_stays_the_librarys_and_its_bias_is_fused():
    graph = read_graph(KNOWN["linear"])
    assert graph.prefix == (("product", "torch.nn.functional.linear(x, self.fc.weight)"),)
    assert "self.fc.bias" in [n.text for n in graph.nodes]


@pytest.mark.parametrize("name", KNOWN)
def test_every_known_task_is_read(name):
    ast.parse(KNOWN[name].source)
    assert read_graph(KNOWN[name]).nodes


def test_an_input_named_differently_but_as_large_is_read():
    task = a_task("return x * y", names="x, y", inputs="torch.randn(a, 8), torch.randn(b, 8)")
    source = task.source.replace("def get_inputs():", "def get_inputs(a=4, b=4):")
    same = (Workload(), Workload(name="more", arguments=(("a", 9), ("b", 9))))
    assert read_graph(replace(task, source=source, workloads=same)).inputs == ("x", "y")
    apart = (*same, Workload(name="apart", arguments=(("a", 9), ("b", 3))))
    with pytest.raises(NotRecognised, match="inputs of one size, not 'y'"):
        read_graph(replace(task, source=source, workloads=apart))


def test_an_input_without_dimensions_is_not_taken_for_a_large_one():
    inputs = "torch.randn(5, 67), torch.randn(())"
    with pytest.raises(NotRecognised, match="inputs of one size, not 'y'"):
        read_graph(a_task("return x * y", names="x, y", inputs=inputs))


@pytest.mark.parametrize(
    "inputs", ["torch.randn(5, 67) * torch.rand(5, 1)", "torch.rand(5, 1) * torch.randn(5, 67) + 1"]
)
def test_a_spread_per_row_does_not_make_an_input_narrow(inputs):
    task = a_task("return x + y", names="x, y", inputs=f"{inputs}, torch.randn(5, 67)")
    assert not read_graph(task).has_rows


def test_a_narrow_input_before_a_wide_one_is_one_value_per_row():
    task = a_task("return x * y", names="x, y", inputs="torch.rand(5, 1), torch.randn(5, 67)")
    assert {n.text: n.shape for n in read_graph(task).nodes if n.text} == {
        "x": Shape.ROW, "y": Shape.FULL,
    }  # fmt: skip


@pytest.mark.parametrize(
    "forward", ["return x > 0", "return (x > 0) * 2", "return torch.where(x > 0, 1, 0).sum(-1)"]
)
def test_a_result_of_another_dtype_than_the_inputs_is_refused(forward):
    with pytest.raises(NotRecognised, match="counts or truth values"):
        read_graph(a_task(forward))


@pytest.mark.parametrize(
    "forward", ["return (x > 0) * x", "return (x > 0).sum(-1) / x.shape[-1]",
                "return torch.where(x > 0, x, 0).sum(-1)"],
)  # fmt: skip
def test_comparisons_inside_of_a_floating_result_are_read(forward):
    assert "gt" in read_graph(a_task(forward)).ops()


FC = {"init": "self.fc = nn.Linear(67, 67)"}
SHARED = {
    "another name": ("h = self.fc(x)\nr = h\nh += x\nreturn h * r", FC),
    "another name, changed": ("h = self.fc(x)\nr = h\nr += x\nreturn h * r", FC),
    "what contiguous() leaves": ("h = torch.exp(x)\nr = h.contiguous()\nh += x\nreturn h * r", {}),
    "a view": ("m = x.amax(-1, keepdim=True)\nr = m.squeeze(-1)\nm += 1\nreturn r", {}),
    "dropout in evaluation": (
        "h = torch.exp(x)\nr = F.dropout(h, training=False)\nh += x\nreturn r", {},
    ),
    "the input": ("y = x.contiguous()\ny += 1\nreturn y * 2", {}),
    "a weight": (
        "w = self.w.contiguous()\nw += 1\nreturn x * w",
        {"init": "self.w = nn.Parameter(torch.ones(67))"},
    ),
    "values of a maximum": ("m = x.max(-1)\nv = m.values\nv += 1\nreturn m.values", {}),
}  # fmt: skip


@pytest.mark.parametrize("what", SHARED)
def test_what_is_changed_in_place_under_two_names_is_refused(what):
    forward, more = SHARED[what]
    with pytest.raises(NotRecognised, match=r"changed in place|changes its input"):
        read_graph(a_task(forward, **more))


@pytest.mark.parametrize(
    ("forward", "more"),
    [
        ("h = self.fc(x)\nh += x\nh *= 2\nreturn h", FC),
        ("h = torch.exp(x)\nr = h * 2\nh += r\nreturn h * r", {}),
        ("h = torch.exp(x)\nh = h + x\nh += 1\nreturn h", {}),
        ("s = 1.5\nt = s\ns += 1\nreturn x * s * t", {}),
    ],
)
def test_what_nobody_else_holds_may_be_changed_in_place(forward, more):
    assert read_graph(a_task(forward, **more)).nodes
