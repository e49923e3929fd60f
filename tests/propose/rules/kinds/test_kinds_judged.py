"""What the kinds write, before the real judge."""

import dataclasses
from pathlib import Path

import pytest
from kind_tasks import KINDS
from rule_tasks import a_task

from kernelsmith.api import load_task
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Workload
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.propose.rules.kinds import kinds_for
from kernelsmith.propose.rules.templates import template_for
from kernelsmith.testing import QUICK

TASKS = Path(__file__).parents[4] / "tasks"
ROBUST = dataclasses.replace(QUICK, robust=True, contention=1.0)
"""Nothing here is about speed: a busy machine need not be waited for."""

FRAGILE = {
    "router",
    "cumsum",
    "cumsum_back",
    "cumsum_up",
    "cumsum_down",
    "masked_cumsum",
    "prod_middle",
}
"""Where eager itself breaks ties, or adds or multiplies huge values, in an order that is nobody's
promise."""

EXAMPLES = {"scan": "cumsum_back", "columns": "softmax_middle", "window": "depthwise",
            "lookup": "embedding", "router": "router", "sort": "nucleus", "product": "linear",
            "pick": "argmin_last", "entropy": "cross_entropy", "groups": "group_norm",
            "gather": "bag_layer", "scatter": "messages", "broadcast": "middle",
            "mixed": "mean_apart"}  # fmt: skip


@pytest.fixture(scope="module")
def judges():
    opened = {name: LocalEvaluator(name, ROBUST) for name in ("cpu", "triton")}
    yield opened
    for each in opened.values():
        each.close()


def check(judges, task, family, chosen, *, robust=True):
    backend, source = family.backend, family.source(chosen)
    found = judges[backend].judge(task, Candidate(backend=backend, source=source))
    assert found.verdict is Verdict.PASSED, f"{found.verdict}: {found.message}\n{source}"
    if robust:
        assert "fragile" not in [label.name for label in found.labels], found.labels


def families(task, kind, backend):
    return [each for each in kinds_for(task, backend) if each.space.template == kind]


@pytest.mark.parametrize(
    ("kind", "name"),
    [("scan", "cumprod_down"), ("columns", "rms_middle"), ("window", "causal"),
     ("sort", "sort"), ("gather", "take_along"), ("scatter", "messages"),
     ("broadcast", "per_channel"), ("mixed", "mean_apart")],
)  # fmt: skip
def test_the_first_seed_is_right(judges, kind, name):
    (family,) = families(KINDS[kind][name], kind, "cpu")
    check(judges, KINDS[kind][name], family, family.space.defaults)


def check_built_in(judges, kind, name):
    task = load_task(TASKS / f"{name}.py")
    (family,) = families(task, kind, "cpu")
    check(judges, task, family, family.space.defaults)


def test_the_first_seed_of_a_built_in_task_is_right(judges):
    check_built_in(judges, "gather", "embedding_bag")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    [("gather", "expert_combine"), ("gather", "paged_cache_gather"), ("broadcast", "adaln_gate"),
     ("broadcast", "snake_activation"), ("entropy", "label_smoothing_loss")],
)  # fmt: skip
def test_the_first_seeds_of_other_built_in_tasks_are_right(judges, kind, name):
    check_built_in(judges, kind, name)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpu", "triton"])
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, tasks in KINDS.items() for name in tasks]
)
def test_every_kind_is_right(judges, kind, name, backend):
    task = KINDS[kind][name]
    for family in families(task, kind, backend):
        for number in (0, 11):
            chosen = family.space.seed(number, number)
            check(judges, task, family, chosen, robust=name not in FRAGILE)


def variants():
    for kind, name in EXAMPLES.items():
        for backend in ("cpu", "triton"):
            for family in families(KINDS[kind][name], kind, backend):
                for each in family.space.parameters:
                    for value in each.choices:
                        if value != each.default:
                            yield kind, name, backend, each.name, value


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "backend", "parameter", "value"), [*variants()])
def test_every_value_of_every_parameter_is_right(judges, kind, name, backend, parameter, value):
    task = KINDS[kind][name]
    (family,) = families(task, kind, backend)
    check(judges, task, family, {**family.space.defaults, parameter: value}, robust=False)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kind", EXAMPLES)
def test_half_precision_is_right(judges, kind, dtype):
    task = dataclasses.replace(KINDS[kind][EXAMPLES[kind]], workloads=(Workload(dtype=dtype),))
    for backend in ("cpu", "triton"):
        for family in families(task, kind, backend):
            check(judges, task, family, family.space.defaults, robust=False)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpu", "triton"])
def test_a_triplet_loss_is_rows_and_their_mean(judges, backend):
    task = a_task(
        "return self.loss(x, y, z)", init="self.loss = nn.TripletMarginLoss(margin=margin)",
        arguments=", margin=1.0", given="0.5", names="x, y, z",
        inputs="torch.rand(9, 67), torch.rand(9, 67), torch.rand(9, 67)",
    )  # fmt: skip
    template = template_for(task, backend)
    assert template.space.template == "rows"
    check(judges, task, template, template.space.defaults, robust=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["masked_cumsum", "cumsum_back"])
def test_few_long_rows_are_scanned_in_pieces(judges, name):
    task = KINDS["scan"][name]
    (family,) = families(task, "scan", "triton")
    for more in ({}, {"backwards": "scan"}, {"rows": "2"}):
        chosen = {**family.space.defaults, "split": "4096", "block": "512"}
        chosen |= {key: value for key, value in more.items() if key in chosen}
        check(judges, task, family, chosen, robust=False)
