"""Templates are offered where they can read what the task hands over, whatever its size is."""

from dataclasses import replace

import pytest
from rule_tasks import KNOWN, a_task
from template_runner import result
from triton_interpreter import runner

from kernelsmith.domain.task import Workload
from kernelsmith.propose.rules.families import templates_only
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.templates import template_for

torch = pytest.importorskip("torch")

TWO = {"names": "x, y"}
UNREADABLE = {
    "not 'y' of bool": a_task("return x * y", inputs="torch.randn(5), torch.rand(5) > 0.5", **TWO),
    "not 'x' of bool": a_task("return x * 2.5", inputs="torch.rand(5, 67).bool()"),
    "not 'x' of float64": a_task("return x * 2", inputs="torch.randn(5, dtype=torch.float64)"),
    "integer inputs": a_task("return x * 2.5", inputs="torch.ones(5, 67).long()"),
    "several dtypes: 'x' of float16": a_task(
        "return x * y", inputs="torch.randn(5, 67).half(), torch.randn(5, 67)", **TWO
    ),
    "not self.w of float64": a_task(
        "return x * self.w", init="self.w = nn.Parameter(torch.ones(67, dtype=torch.float64))"
    ),
    "not self.norm of float64": a_task(
        "return self.norm(x)", init="self.norm = nn.LayerNorm(67, dtype=torch.float64)"
    ),
    "not self.fc of float64": a_task(
        "return F.relu(self.fc(x))", init="self.fc = nn.Linear(67, 3, dtype=torch.double)"
    ),
    "what self.norm is kept in": a_task(
        "return self.norm(x)", init="self.norm = nn.LayerNorm(67)\nself.half()"
    ),
    "what the input 'x' is kept in": a_task("return x * 2", inputs="torch.rand(5, 67).argmax(-1)"),
    "what size the input 'y' is": a_task(
        "return x * y", inputs="torch.randn(5, 67), torch.rand(5, 70)[:, 3:]", **TWO
    ),
    "whether dimension 1 is the last": a_task(
        "return x.sum(dim=1)", inputs="torch.randn(5, 4, 8)[:, 1:]"
    ),
    "which of two values self.b has": a_task(
        "return x * 2 + self.b", arguments=", b", given="True",
        init="self.b = nn.Parameter(torch.ones(67)) if b else None",
    ),
    "not over \\(\\)": a_task("return x.sum(dim=())"),
    "by their reduction": a_task(
        "return self.loss(x, y)", init="self.loss = nn.MSELoss(size_average=False)",
        inputs="torch.randn(5, 67), torch.randn(5, 67)", **TWO
    ),
    "losses by their reduction": a_task(
        "return F.triplet_margin_loss(x, y, x, reduce=False)",
        inputs="torch.randn(5, 67), torch.randn(5, 67)", **TWO
    ),
    "not over 1": a_task("return x.sum(dim=1)", inputs="torch.randn(5, 67).unsqueeze(0)"),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["cpu", "triton"])
@pytest.mark.parametrize("says", UNREADABLE)
def test_what_kernels_cannot_read_is_refused_before_anything_runs(says, backend):
    with pytest.raises(NotRecognised, match=says) as caught:
        template_for(UNREADABLE[says], backend)
    assert "\n" not in str(caught.value)


def test_a_task_of_truth_values_is_left_to_the_compiler():
    found = templates_only(UNREADABLE["not 'y' of bool"], "cpu")
    assert not {each.space.template for each in found.members} & {"rows", "flat"}
    assert any("of bool" in each for each in found.reasons)


@pytest.mark.parametrize(("dtype", "fits"), [("float64", False), ("bfloat16", True)])
def test_every_workloads_dtype_counts(dtype, fits):
    task = replace(KNOWN["layer_norm"], workloads=(Workload(), Workload(name="cast", dtype=dtype)))
    if fits:
        assert template_for(task, "cpu")
        return
    with pytest.raises(NotRecognised, match="not 'x' of float64"):
        template_for(task, "cpu")


def test_floats_of_any_precision_are_read_where_the_workload_casts_them():
    task = a_task("return x * y", inputs="torch.randn(5).double(), torch.randn(5).half()", **TWO)
    assert template_for(replace(task, workloads=(Workload(dtype="float16"),)), "cpu")


def check(task, *tensors):
    """The candidate beside the reference, its own inputs where none are given."""
    template, names = template_for(task, "cpu"), {}
    exec(task.source, names)
    exec(template.source(template.space.defaults), names)
    tensors = tensors or names["get_inputs"]()
    with torch.no_grad():
        want, got = names["Model"]()(*tensors), names["ModelNew"]()(*tensors)
    torch.testing.assert_close(got, want, equal_nan=True)


@pytest.mark.parametrize(
    ("forward", "y"),
    [("return x * y", "torch.linspace(0, 1, 67)"),
     ("return x + y", "torch.linspace(0, 1, 5)[:, None]"),
     ("return x * y", "torch.tensor([1.0]) * torch.ones(67)"),
     ("return x - y", "torch.full((5, 67), 2.5)"), ("return x * y", "torch.rand(67, 5).t()"),
     ("return x * y", "torch.randint(0, 2, (5, 67)).float()"),
     ("return x * y", "torch.rand(67)[None].expand(5, 67)")],
)  # fmt: skip
def test_inputs_that_are_made_in_other_ways_are_read(forward, y):
    check(a_task(forward, inputs=f"torch.randn(5, 67), {y}", **TWO))


def test_a_vector_that_is_turned_up_is_one_value_per_row():
    check(a_task("return x * y", inputs="torch.randn(5, 5), torch.rand(5).reshape(5, 1)", **TWO))


EMPTY = {
    "sum": "x.sum(dim=-1)", "kept": "x.sum(dim=-1, keepdim=True)", "mean": "x.mean(dim=-1)",
    "norm": "x.norm(dim=-1)", "logsumexp": "torch.logsumexp(x, dim=-1)", "var": "x.var(dim=-1)",
    "biased": "x.var(dim=-1, unbiased=False)", "all": "(x * 2).sum()", "average": "(x * 2).mean()",
    "sums": "x.sum(dim=-1).mean()", "softmax": "torch.softmax(x, dim=-1)",
    "weights": "torch.softmax(x, dim=-1).sum(dim=-1)", "flat": "x * 2 + 1",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:var\\(\\):UserWarning")
@pytest.mark.parametrize("form", EMPTY)
@pytest.mark.parametrize("size", [(5, 0), (0, 67), (0, 0), (1, 0), (5, 1)])
def test_rows_of_nothing_and_no_rows_give_what_torch_gives(form, size):
    torch.full((64,), 7.0)  # what memory that nobody writes would hold
    check(a_task(f"return {EMPTY[form]}"), torch.randn(size))


def test_planes_of_nothing_sum_to_zero():
    task = a_task("return x.sum(dim=(-2, -1), keepdim=True)", inputs="torch.randn(3, 4, 5)")
    check(task, torch.randn(3, 0, 5))


@pytest.mark.parametrize("forward", ["x.amax(dim=-1)", "x.amin(dim=-1) + x.sum(dim=-1)"])
def test_there_is_no_largest_of_nothing(forward):
    with pytest.raises(ValueError, match="no largest or smallest of nothing"):
        check_alone(forward, torch.randn(5, 0))


@pytest.mark.parametrize("forward", ["x.sum(dim=1)", "x.softmax(1)", "x - x.mean(dim=(0, 1))"])
def test_dimensions_counted_from_the_front_are_refused_of_other_inputs(forward):
    try:
        check_alone(forward, torch.randn(5, 67))
    except NotRecognised:
        return
    with pytest.raises(ValueError, match="must have 2 dimensions"):
        check_alone(forward, torch.randn(2, 5, 67))


def test_a_target_that_is_no_number_or_nothing_counts_as_torch_has_it():
    task = a_task("return F.kl_div(x, y, reduction='none').sum(-1)",
                  inputs="torch.randn(5, 67), torch.rand(5, 67)", **TWO)  # fmt: skip
    x, y = torch.randn(5, 67), torch.rand(5, 67)
    y[0, 3], y[1, 3], y[2, 3], x[3, 3], y[4, 3], x[4, 3] = torch.nan, 0, -1, torch.inf, 0, torch.inf
    check(task, x, y)


def check_alone(forward, x):
    template, names = template_for(a_task(f"return {forward}"), "cpu"), {}
    exec(template.source(template.space.defaults), names)
    names["ModelNew"]()(x)


@pytest.fixture(scope="module")
def pool():
    pytest.importorskip("triton")
    with runner() as found:
        yield found


@pytest.mark.parametrize("form", ["sum", "kept", "mean", "logsumexp", "sums", "all"])
def test_rows_of_nothing_are_rows_on_a_gpu_too(pool, form):
    template = template_for(a_task(f"return {EMPTY[form]}"), "triton")
    source = template.source(template.space.defaults)
    names = {}
    exec(a_task(f"return {EMPTY[form]}").source, names)
    x = torch.randn(5, 0)
    got = pool.submit(result, source, x).result()
    torch.testing.assert_close(got, names["Model"]()(x), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32])
def test_a_gpu_kernel_refuses_what_it_would_round(pool, dtype):
    template = template_for(a_task("return x * 2.5"), "triton")
    source = template.source(template.space.defaults)
    assert "in this dtype" in pool.submit(result, source, torch.ones(5, 67, dtype=dtype)).result()
