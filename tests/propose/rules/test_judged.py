"""What the templates write, before the real judge."""

import asyncio
import dataclasses

import pytest
from rule_briefs import rows_and_flat
from rule_tasks import KNOWN

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Workload
from kernelsmith.domain.trajectory import Brief
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.propose.rules.proposer import RulesProposer
from kernelsmith.propose.rules.templates import template_for
from kernelsmith.testing import QUICK

ROBUST = dataclasses.replace(QUICK, robust=True, contention=1.0)
"""Nothing here is about speed: a busy machine need not be waited for."""


@pytest.fixture(scope="module")
def judges():
    opened = {name: LocalEvaluator(name, ROBUST) for name in ("cpu", "triton")}
    yield opened
    for each in opened.values():
        each.close()


def check(judges, task, backend, source, *, robust=True):
    found = judges[backend].judge(task, Candidate(backend=backend, source=source))
    assert found.verdict is Verdict.PASSED, f"{found.verdict}: {found.message}\n{source}"
    if robust:
        assert "fragile" not in [label.name for label in found.labels], found.labels


@pytest.mark.parametrize("name", ["chain", "layer_norm", "softmax", "mse"])
def test_the_first_seed_is_right(judges, name):
    check(judges, KNOWN[name], "cpu", template_for(KNOWN[name], "cpu").source(
        template_for(KNOWN[name], "cpu").space.defaults))  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpu", "triton"])
@pytest.mark.parametrize("name", KNOWN)
def test_every_template_is_right(judges, name, backend):
    for number in (0, 11):
        brief = Brief(number=number, task=KNOWN[name], backend=backend, island=0, seed=number)
        proposal = asyncio.run(RulesProposer(backend, families=rows_and_flat).propose(brief))
        assert proposal.source is not None, proposal.rejection
        check(judges, KNOWN[name], backend, proposal.source)


def variants(backend):
    for name in ("gelu_softmax", "chain", "layer_norm", "kl"):
        space = template_for(KNOWN[name], backend).space
        for each in space.parameters:
            for value in each.choices:
                if value != each.default:
                    yield name, backend, each.name, value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "backend", "parameter", "value"), [*variants("cpu"), *variants("triton")]
)
def test_every_value_of_every_parameter_is_right(judges, name, backend, parameter, value):
    template = template_for(KNOWN[name], backend)
    chosen = {**template.space.defaults, parameter: value}
    check(judges, KNOWN[name], backend, template.source(chosen))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["chain", "layer_norm", "softmax", "linear"])
def test_half_precision_is_right(judges, name, dtype):
    task = dataclasses.replace(KNOWN[name], workloads=(Workload(dtype=dtype),))
    for backend in ("cpu", "triton"):
        template = template_for(task, backend)
        # Triton's interpreter cuts bfloat16 off where hardware rounds: extremes show it at times.
        robust = (backend, dtype) != ("triton", "bfloat16")
        check(judges, task, backend, template.source(template.space.defaults), robust=robust)


@pytest.mark.slow
@pytest.mark.parametrize("passes", ["multi", "online"])
def test_long_rows_are_right(judges, passes):
    source = KNOWN["softmax"].source.replace("randn(5, 67)", "randn(3, 5003)")
    task = dataclasses.replace(KNOWN["softmax"], source=source)
    for backend in ("cpu", "triton"):
        template = template_for(task, backend)
        chosen = {**template.space.defaults, "passes": passes}
        if backend == "triton":
            chosen |= {"whole": "1024", "block": "512"}
        check(judges, task, backend, template.source(chosen))
