"""Sequences, dropout in evaluation and numbers as tensors are read as what they compute."""

import re
from dataclasses import replace

import pytest
from rule_tasks import a_task

from kernelsmith.propose.rules.families import templates_only
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds import kinds_for, why_none
from kernelsmith.propose.rules.kinds.trace import trace
from kernelsmith.propose.rules.reader import read_graph
from kernelsmith.propose.rules.source import read_module

NET = "self.net = nn.Sequential(nn.LayerNorm(67), nn.Sequential(nn.ReLU(inplace=True), {}), {})"
SEQUENCE = a_task("return self.net(x)", init=NET.format("nn.Dropout(0.2)", "nn.Softmax(dim=-1)"))
ALIKE = {
    "a number as a tensor": (
        "return torch.min(x, torch.tensor(0.5, device=x.device)) * 2",
        "return torch.clamp(x, max=0.5) * 2", ""),
    "the larger of two": (
        "return x.max(torch.tensor(self.c, dtype=x.dtype)) + 1",
        "return torch.clamp(x, min=self.c) + 1", "self.c = 0.25"),
    "a layer that drops": (
        "return self.d(torch.relu(x))", "return torch.relu(x)", "self.d = nn.Dropout(0.3)"),
    "a function that drops": (
        "return F.dropout(torch.relu(x), 0.1, training=self.training)",
        "return torch.relu(x)", ""),
}  # fmt: skip
REFUSED = {
    "dropout that does something": ("return F.dropout(torch.relu(x), 0.1)", ""),
    "in-place": ("return self.net(x)", "self.net = nn.Sequential(nn.Dropout(0.1), "
                 "nn.ReLU(inplace=True))"),
    "torch.tensor of one number": ("return torch.max(x, torch.tensor(self.c))", "self.c = [1.0]"),
    "what self.net holds": ("return self.net(x)", "self.net = nn.Sequential(nn.ReLU())\n"
                            "self.net.append(nn.Tanh())"),
}  # fmt: skip


@pytest.mark.parametrize("name", ALIKE)
def test_what_computes_nothing_leaves_the_graph_as_it_was(name):
    given, same, init = ALIKE[name]
    one, other = (read_graph(a_task(each, init=init)) for each in (given, same))
    assert (one.nodes, one.output) == (other.nodes, other.output)


def test_a_sequence_is_read_layer_by_layer():
    written = a_task("return torch.softmax(torch.relu(self.n(x)), dim=-1)",
                     init="self.n = nn.LayerNorm(67)")  # fmt: skip
    one, other = read_graph(SEQUENCE), read_graph(written)
    plain = [replace(each, text=re.sub(r"self\.(net\[0\]|n)\.", "", each.text))
             for graph in (one, other) for each in graph.nodes]  # fmt: skip
    assert plain[: len(one.nodes)] == plain[len(one.nodes) :]
    assert {"self.net[0].weight", "self.net[0].bias"} <= {each.text for each in one.nodes}


@pytest.mark.parametrize("says", REFUSED)
def test_what_may_compute_something_is_refused(says):
    forward, init = REFUSED[says]
    task = a_task(forward, init=init)
    with pytest.raises(NotRecognised, match=re.escape(says)):
        read_graph(task)
    assert not templates_only(task, "cpu").members


def test_dropout_is_refused_where_the_task_is_judged_in_training():
    with pytest.raises(NotRecognised, match="dropout that does something"):
        read_graph(replace(SEQUENCE, training=True))


def test_a_candidate_asks_whether_dropout_is_off():
    (rows,) = templates_only(SEQUENCE, "cpu").members
    assert "if self.net[1][1].training:\n            raise" in rows.source(rows.space.defaults)
    task = a_task(
        "return self.d(F.relu(x @ self.w))",
        inputs="torch.randn(512, 512)",
        init="self.w = nn.Parameter(torch.randn(512, 512))\nself.d = nn.Dropout(0.3)",
    )
    product = templates_only(task, "triton").members[0]
    assert product.space.template == "products"
    assert "self.d.training" in product.source(product.space.defaults)
    task = a_task("return self.d(torch.cumsum(x, 0))", init="self.d = nn.Dropout(0.3)")
    (scan,) = kinds_for(task, "cpu")
    assert "and not self.d.training" in scan.source(scan.space.defaults)


def test_the_kinds_read_the_same():
    task = a_task(
        "x = self.net(x)\nreturn torch.min(x, torch.tensor(0.5, device=x.device))",
        init="self.net = nn.Sequential(nn.MaxPool2d(2), nn.Dropout2d(0.2), nn.ReLU(inplace=True))",
        inputs="torch.randn(2, 3, 8, 8)",
    )
    result = trace(read_module(task)).result
    relu, most = result.args
    (pool,) = relu.args
    assert (result.op, most, relu.setting("kind")) == ("minimum", 0.5, "ReLU")
    assert (pool.setting("kind"), pool.text, pool.args[0].op) == (
        "MaxPool2d",
        "self.net[0]",
        "input",
    )
    assert [each.space.template for each in kinds_for(task, "triton")] == ["window"]


def test_a_reduced_dimension_is_dropped_and_put_back_where_it_was():
    task = a_task("return x - x.sum(1).unsqueeze(1)", inputs="torch.randn(4, 5, 6)")
    assert [each.space.template for each in kinds_for(task, "cpu")] == ["columns"]
    other = a_task("return x - x.sum(1).unsqueeze(-1)", inputs="torch.randn(4, 5, 5)")
    assert kinds_for(other, "cpu") == ()
    assert "dimension" in why_none(other, "cpu")["columns"]
