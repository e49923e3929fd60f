"""Products in C++: any number of rows, either walk, sums of products and products of products."""

import pytest
import torch
from kind_tasks import PRODUCTS
from rule_tasks import a_task

from kernelsmith.evaluate.worker.program import execute
from kernelsmith.propose.rules.kinds import kinds_for

NEAR = {torch.float32: 3e-6, torch.bfloat16: 2e-2, torch.float16: 3e-3}
"""Of the largest value; halves are rounded once."""


def the_family(task):
    return next(each for each in kinds_for(task, "cpu") if each.space.template == "product")


def pair(task, *given, **chosen):
    """The reference and a candidate with the same weights; the candidate may not run ``plain``."""
    family = the_family(task)
    torch.manual_seed(3)
    model = execute(task.source).Model(*given).eval()
    made = execute(family.source(family.space.defaults | chosen)).ModelNew(*given).eval()
    made.load_state_dict(model.state_dict())
    made.plain = None
    return model, made


def check(model, made, *inputs):
    kind = inputs[0].dtype
    with torch.no_grad():
        found = made.to(kind)(*inputs)
        model.double().load_state_dict(made.state_dict())  # as they were rounded
        exact = model(*[each.double() for each in inputs])
    assert found.dtype is kind
    off = (found.double() - exact).abs().max() / exact.abs().max()
    assert off <= NEAR[kind], f"{off} at {[tuple(each.shape) for each in inputs]}"


@pytest.mark.parametrize(("name", "few"), [
    ("adapter", "64"), ("gated", "64"),
    *[pytest.param(*each, marks=pytest.mark.slow)
      for each in [("adapter", "0"), ("turned_adapter", "64"), ("gated", "0")]],
])  # fmt: skip
def test_every_number_of_rows_is_right_in_every_precision(name, few):
    given = (0.5,) if name == "turned_adapter" else ()
    model, made = pair(PRODUCTS[name], *given, few=few)
    for rows in (*range(1, 10), 15, 16, 17, 33, 64, 65, 130):
        for kind in NEAR:
            check(
                model, made, torch.randn(*((rows,) if name != "gated" else (1, rows)), 67).to(kind)
            )


@pytest.mark.parametrize("few", ["0", "16"])
def test_what_is_not_finite_stays_in_its_row(few):
    task = a_task("return self.fc(x) + x", init="self.fc = nn.Linear(67, 67)")
    model, made = pair(task, few=few)
    x = torch.randn(9, 67)
    x[2, 66], x[5, 0], x[7, 40] = torch.inf, torch.nan, -torch.inf
    with torch.no_grad():
        torch.testing.assert_close(made(x), model(x), equal_nan=True)


def test_strided_inputs_and_weights_are_read_as_they_mean():
    model, made = pair(PRODUCTS["linear"], 67)
    turned = torch.nn.Parameter(torch.randn(67, 53).t())
    model.fc.weight, made.fc.weight = turned, torch.nn.Parameter(turned.detach())
    with torch.no_grad():
        for x in (
            torch.randn(67, 6).t(),
            torch.randn(4, 134)[:, ::2],
            torch.randn(1, 67).expand(3, 67),
        ):
            torch.testing.assert_close(made(x), model(x))


def test_products_that_are_only_added_share_their_registers():
    family = the_family(PRODUCTS["adapter"])
    source = family.source(family.space.defaults)
    assert "dots(terms0, 2, rows" in source
    assert "terms1" not in source


def test_weights_as_they_lie_are_not_packed_for_few_rows_and_columns_are_never_turned():
    family = the_family(PRODUCTS["bmm"])
    assert "few" not in family.space.defaults
    family = the_family(PRODUCTS["linear"])
    assert "if (rows <= 16)" in family.source(family.space.defaults | {"few": "16"})
    assert "dots(" not in family.source(family.space.defaults | {"few": "0"})


def test_what_the_kernel_is_not_made_for_runs_the_reference():
    model, made = pair(PRODUCTS["adapter"])
    del made.plain
    x = torch.randn(5, 67, dtype=torch.float64)
    with torch.no_grad():
        assert torch.equal(made.double()(x), model.double()(x))
        assert made(x[:0]).shape == (0, 53)
        with pytest.raises(RuntimeError):
            made(x[:, 1:])
