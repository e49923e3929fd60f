"""Which tasks the kinds recognise, and that what they write is theirs and stays the same."""

import subprocess
import sys

import pytest
from kind_tasks import DIM, KINDS, LIKE_OTHERS, UNKNOWN
from rule_tasks import KNOWN, a_task

from kernelsmith.propose.rules.family import owned
from kernelsmith.propose.rules.kinds import kinds_for, why_none

TASKS = [(kind, name) for kind, tasks in KINDS.items() for name in tasks]


def the_family(kind, name, backend):
    return next(f for f in kinds_for(KINDS[kind][name], backend) if f.space.template == kind)


@pytest.mark.parametrize("backend", ["cpu", "triton"])
@pytest.mark.parametrize(("kind", "name"), TASKS)
def test_a_task_is_recognised_as_its_kind_alone(kind, name, backend):
    found = [each.space.template for each in kinds_for(KINDS[kind][name], backend)]
    assert found == ([] if (kind, backend) == ("product", "triton") else [kind])


@pytest.mark.parametrize("backend", ["cpu", "triton"])
@pytest.mark.parametrize(("kind", "name"), [each for each in TASKS if each[0] != "product"])
def test_a_candidate_carries_the_parameters_it_was_written_with(kind, name, backend):
    family = the_family(kind, name, backend)
    for number in range(12):
        chosen = family.space.seed(number, 3)
        source = family.source(chosen)
        assert owned(family, source) == chosen
        assert owned(family, source + "\n") is None
        assert source == the_family(kind, name, backend).source(chosen)
        compile(source, "candidate.py", "exec")


def test_the_words_name_what_differs_from_the_default():
    family = the_family("scan", "cumsum", "cpu")
    assert "stores" not in family.words(family.space.defaults)
    assert "stores stream" in family.words({**family.space.defaults, "stores": "stream"})


@pytest.mark.parametrize("why", UNKNOWN)
def test_what_does_not_fit_is_refused_with_a_reason(why):
    kind, task = UNKNOWN[why]
    assert kind not in [each.space.template for each in kinds_for(task, "cpu")]
    assert why in why_none(task, "cpu")[kind]


@pytest.mark.parametrize("name", [each for each in KNOWN if each not in LIKE_OTHERS])
def test_what_the_rows_template_knows_is_left_to_it(name):
    assert kinds_for(KNOWN[name], "cpu") == ()


def test_nonsense_is_no_error():
    task = a_task("return x +* 2")
    assert kinds_for(task, "cpu") == ()
    assert "cannot parse" in why_none(task, "cpu")["scan"]


def test_a_dimension_that_differs_between_workloads_is_refused():
    task = a_task("return torch.cumsum(x, dim=self.dim)", given="dim", **DIM)
    assert kinds_for(task, "cpu") == ()


def test_the_reference_is_kept_for_what_the_kernel_is_not_made_for():
    source = the_family("scan", "cumsum_back", "triton").source(
        the_family("scan", "cumsum_back", "triton").space.defaults
    )
    assert "def plain(self, x):" in source
    assert "return self.plain(x)" in source
    assert "super(Model" not in source


def test_an_argument_that_is_named_like_a_part_of_the_kernel_gets_another_name():
    family = the_family("scan", "cumprod_down", "cpu")
    assert "out_ = out" in family.source(family.space.defaults)


def test_the_kinds_do_not_import_torch():
    text = "import sys, kernelsmith.propose.rules.kinds; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text]).returncode == 0
