"""Sorts and selections give eager's bits: NaN, zeros of both signs, ties, any dtype, any length."""

import pytest
import torch
from kind_tasks import SORTS
from rule_tasks import a_task
from sort_runner import differences
from triton_interpreter import runner

from kernelsmith.evaluate.worker.program import execute
from kernelsmith.propose.rules.kinds import kinds_for, why_none

EXACT = {
    "down": "return torch.sort(x, dim=-1, descending=True, stable=True)",
    "up": "values, indices = x.sort(stable=True)\nreturn indices, values",
    "argsort": "return x.argsort(dim=-1, descending=True, stable=True)",
    "negated": "return torch.sort(-x, stable=True)[1]",
    "behind": (
        "values, indices = torch.sort(x, dim=1, stable=True)\n"
        "return values * 2, x.argsort(dim=1, stable=True), values, indices"
    ),
}
RANKED = {
    "best": "return torch.topk(x, 20)[0] + 0.0",
    "least": "return torch.topk(x, 3, largest=False).values + 0.0",
    "kth": "return torch.kthvalue(x, 5, dim=-1).values + 0.0",
    "kth_from_the_end": "return x.kthvalue(x.shape[-1] - 3, dim=-1, keepdim=True)[0] + 0.0",
    "median": "return torch.median(x, dim=-1, keepdim=True).values + 0.0, x.median(dim=1)[0] + 0.0",
    "third": "return x.sort(dim=-1, descending=True).values[:, 2:3] + 0.0",
    "last_but_one": "return x.sort(dim=-1).values[..., -2] + 0.0",
    "masked": (
        "least = torch.topk(x, 20).values[:, -1, None]\n"
        "return x.masked_fill(x < least, float('-inf'))"
    ),
    "between": (
        "y = x.abs()\nlow, high = y.kthvalue(3, -1, True)[0], y.kthvalue(20, -1, True)[0]\n"
        "return torch.where(y < low, 0.0, torch.minimum(y, high)), low, high"
    ),
}
"""Which of two zeros has a rank is nobody's promise: ``+ 0.0`` makes them one."""
DTYPES = ["float32", "bfloat16", "float16"]


def family(text, backend):
    task = a_task(text, inputs="torch.randn(5, 67)")
    found = [each for each in kinds_for(task, backend) if each.space.template == "sort"]
    assert found, why_none(task, backend)["sort"]
    return task, found[0]


@pytest.fixture(scope="module")
def pool():
    pytest.importorskip("triton")
    with runner() as found:
        yield found


LENGTHS = [(3, 20), (2, 67), (1, 128), (1, 129), (2, 1003), (1, 5001)]
FAST = ("down", "negated", "best", "kth", "median", "masked")


def check_cpp(name, more):
    task, found = family((EXACT | RANKED)[name], "cpu")
    chosen = found.space.defaults | {k: v for k, v in more.items() if k in found.space.defaults}
    wrong = differences(found.source(chosen), task.source, LENGTHS, DTYPES, execute)
    assert not wrong, f"{chosen}: {wrong}"


@pytest.mark.parametrize("name", FAST)
def test_a_row_in_cpp_has_eagers_bits(name):
    check_cpp(name, {})


@pytest.mark.slow
@pytest.mark.parametrize("name", [*EXACT, *RANKED])
def test_a_row_in_cpp_has_eagers_bits_at_any_width(name):
    for more in ({}, {"width": "8", "digits": "11", "small": "64"}, {"width": "4", "digits": "8"}):
        check_cpp(name, more)


@pytest.mark.parametrize("name", ["kth", "median", "masked"])
def test_a_value_by_its_rank_in_triton_has_eagers_bits(pool, name):
    task, found = family(RANKED[name], "triton")
    given = (found.source(found.space.defaults), task.source, [(1, 33)], ["float32"])
    assert not pool.submit(differences, *given).result()


@pytest.mark.slow
@pytest.mark.parametrize("name", [each for each in RANKED if each not in ("best", "least")])
def test_a_value_by_its_rank_in_triton_has_eagers_bits_in_steps(pool, name):
    task, found = family(RANKED[name], "triton")
    for sizes in ([(3, 20), (2, 67)], [(1, 2500)]):
        chosen = found.space.defaults | {"block": "1024"}
        given = (found.source(chosen), task.source, sizes, DTYPES)
        assert not pool.submit(differences, *given).result()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*EXACT, "best", "least"])
def test_a_row_in_triton_has_eagers_bits(pool, name):
    task, found = family((EXACT | RANKED)[name], "triton")
    chosen = found.space.defaults | {"block": "256"}
    given = (found.source(chosen), task.source, [(3, 20), (1, 67)], ["float32", "bfloat16"])
    assert not pool.submit(differences, *given).result()


def test_one_row_in_triton_has_eagers_bits(pool):
    task, found = family(EXACT["down"], "triton")
    chosen = found.space.defaults | {"block": "256"}
    given = (found.source(chosen), task.source, [(1, 13)], ["float32"])
    assert not pool.submit(differences, *given).result()


def test_values_are_compared_with_a_threshold_as_they_were_when_it_was_found():
    _, found = family(
        "y = torch.sigmoid(x * 0.5 + 0.25)\nleast = torch.topk(y, 20).values[:, -1:]\n"
        "return torch.where(y < least, x * 0, x * 0 + 1)", "cpu")  # fmt: skip
    made = execute(found.source(found.space.defaults)).ModelNew()
    for dtype in (torch.float32, torch.bfloat16):
        torch.manual_seed(0)
        for length in (20, 100, 5000):
            x = torch.linspace(-3, 3, length).repeat(4, 1)[:, torch.randperm(length)].to(dtype)
            assert bool((made(x).float().sum(1) >= 20).all())


@pytest.mark.parametrize("inputs", [
    torch.randn(0, 20), torch.randn(20), torch.randn(2, 3, 20), torch.randn(3, 20).double(),
    torch.randint(0, 9, (3, 20)), torch.randn(3, 20).expand(3, 20),
])  # fmt: skip
@pytest.mark.parametrize("name", ["down", "kth", "masked"])
def test_what_the_kernel_is_not_made_for_is_left_to_the_reference(name, inputs):
    task, found = family((EXACT | RANKED)[name], "cpu")
    made, names = execute(found.source(found.space.defaults)).ModelNew(), {}
    exec(task.source, names)
    try:
        expected = names["Model"]()(inputs)
    except (RuntimeError, IndexError) as error:
        with pytest.raises(type(error)):
            made(inputs)
        return
    got = made(inputs)
    pairs = zip(got, expected, strict=True) if name == "down" else [(got, expected)]
    assert all(torch.equal(a, b) for a, b in pairs)


def test_a_rank_that_a_row_does_not_have_is_eagers_error():
    for text in ("return torch.kthvalue(x, 68, dim=-1).values", "return torch.topk(x, 68)[0]"):
        _, found = family(text, "cpu")
        with pytest.raises((RuntimeError, IndexError)):
            execute(found.source(found.space.defaults)).ModelNew()(torch.randn(5, 67))


def test_what_torch_names_is_returned_under_the_same_names():
    task = SORTS["sort"]
    (found,) = kinds_for(task, "cpu")
    made = execute(found.source(found.space.defaults)).ModelNew()(torch.randn(2, 9))
    assert isinstance(made, torch.return_types.sort)


def test_indices_of_rounded_values_need_a_task_that_says_what_they_point_to():
    task = a_task("return torch.sort(torch.sigmoid(x), dim=1)")
    assert "index_scores" in why_none(task, "cpu")["sort"]
    said = task.source + "def index_scores(model, x):\n    return {1: (torch.sigmoid(x), 1)}\n"
    changed = type(task)(name="said", source=said, workloads=task.workloads)
    assert [each.space.template for each in kinds_for(changed, "cpu")] == ["sort"]


def test_triton_refuses_thresholds_among_values_that_it_may_round_otherwise_again():
    text = "y = torch.sigmoid(x * 2 + 1)\nleast = y.kthvalue(3, 1, True)[0]\nreturn y - least"
    task = a_task(text)
    assert "which products Triton rounds before a sum" in why_none(task, "triton")["sort"]
    assert [each.space.template for each in kinds_for(task, "cpu")] == ["sort"]
