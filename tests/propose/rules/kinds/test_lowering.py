"""Kernels write the inputs' dtype: what torch makes something else of is left to others."""

import ast
from dataclasses import replace

import pytest
from kind_tasks import KINDS
from part_tasks import MIXING, NEIGHBOURS
from reduced_tasks import REDUCED
from rule_tasks import a_task

from kernelsmith.propose.rules.kinds import kinds_for

EVERY = {**KINDS, "packed": {**MIXING, **REDUCED}, "neighbours": NEIGHBOURS}
TRUTHS = "({}) > 0.25", "(({}) > 0.25) * 2", "(({}) > 0.25).sum(0)"
DEFAULT = "torch.where(({}) > 0.25, 1.0, 0.0)"


def returning(task, text):
    """The task with another result, made of its own; none where it returns several."""
    forward = next(
        node for node in ast.walk(ast.parse(task.source))
        if isinstance(node, ast.FunctionDef) and node.name == "forward"
    )  # fmt: skip
    last = forward.body[-1]
    if not isinstance(last, ast.Return) or isinstance(last.value, ast.Tuple | None):
        return None
    whole = ast.get_source_segment(task.source, last)
    made = f"return {text.format(ast.unparse(last.value))}"
    return replace(task, source=task.source.replace(whole, made))


def in_half(task):
    return replace(task, workloads=tuple(replace(w, dtype="bfloat16") for w in task.workloads))


@pytest.mark.parametrize("backend", ["cpu", "triton"])
@pytest.mark.parametrize("kind", EVERY)
def test_no_kind_takes_truth_values_or_counts_for_floats(kind, backend):
    tried = [returning(task, text) for task in EVERY[kind].values() for text in TRUTHS]
    found = [(t.source, kinds_for(t, backend)) for t in tried if t is not None]
    assert found
    assert [source for source, families in found if families] == []


@pytest.mark.parametrize("kind", [each for each in EVERY if each not in ("pick", "entropy")])
def test_no_kind_takes_what_is_float32_anyway_for_half(kind):
    tried = [returning(task, DEFAULT) for task in EVERY[kind].values()]
    found = [(t.source, kinds_for(in_half(t), "cpu")) for t in tried if t is not None]
    assert [source for source, families in found if families] == []


@pytest.mark.parametrize(
    "text",
    ["torch.cumsum(x > 0, 0)", "torch.cumsum(torch.where(x > 0, 2, 1), 0)", "(x > 0).sum(0)"],
)
def test_counts_are_left_where_they_are_summed(text):
    assert kinds_for(a_task(f"return {text}"), "cpu") == ()


def test_what_is_a_float_again_is_written():
    task = a_task("return torch.where(torch.cumsum(x, 0) > 0, x, 0.0)")
    assert [each.space.template for each in kinds_for(task, "cpu")] == ["scan"]
