"""Losses drawn at random: right in float64's eyes on both backends."""

import random

import pytest
from part_runner import error, runner
from rule_tasks import a_task

from kernelsmith.propose.rules.kinds import kinds_for
from kernelsmith.propose.rules.templates import template_for

pytest.importorskip("triton")

NEAR = 4e-6


@pytest.fixture(scope="module")
def pool():
    with runner() as found:
        yield found


def against_classes(seed):
    """Cross entropy or negative log-likelihood, in one of the ways it is written."""
    rng = random.Random(f"classes {seed}")
    rows, classes = rng.choice([1, 3, 9, 40]), rng.choice([2, 5, 17, 67, 300, 1030])
    how = rng.choice(["mean", "sum", "none"])
    ignored = rng.choice([-100, 0, classes - 1])
    smooth = rng.choice([0.0, 0.1, 0.5, 1.0])
    last = {"mean": ".mean()", "sum": ".sum()", "none": ""}[how]
    form = rng.choice([
        f"F.cross_entropy(x, y, reduction='{how}', ignore_index={ignored}, "
        f"label_smoothing={smooth})",
        f"F.cross_entropy(x, y, reduction='{how}', label_smoothing={smooth})",
        f"F.nll_loss(x, y, reduction='{how}', ignore_index={ignored})",
        f"F.nll_loss(torch.log_softmax(x, dim=1), y, reduction='{how}')",
        f"-(0.75 * picked + {smooth + 0.25} * logs.mean(dim=-1)){last}",
        f"-0.5 * picked{last} - 0.25 * logs.mean(-1){last}",
    ])  # fmt: skip
    scale = rng.choice(["1.0", "5.0", "30.0"])
    lines = ["logs = x.log_softmax(-1)", "picked = logs.gather(1, y.unsqueeze(1)).squeeze(1)"]
    return a_task(
        "\n".join([*lines, f"return {form}"]), names="x, y",
        inputs=f"{scale} * torch.randn({rows}, {classes}), torch.randint(0, {classes}, ({rows},))",
    )  # fmt: skip


def against_odds(seed):
    """Binary cross entropy of probabilities or of logits."""
    rng = random.Random(f"odds {seed}")
    shape = rng.choice(["1, 67", "5, 33", "3, 4, 19", "129"])
    how, scale = rng.choice(["mean", "sum", "none"]), rng.choice(["1.0", "30.0"])
    weight = ", weight=w" if rng.random() < 0.4 else ""
    if rng.random() < 0.5:
        call = f"F.binary_cross_entropy(x, y{weight}, reduction='{how}')"
        x = rng.choice([f"torch.rand({shape})", f"torch.sigmoid(200 * torch.randn({shape}))"])
    else:
        call = f"F.binary_cross_entropy_with_logits(x, y{weight}, reduction='{how}')"
        x = f"{scale} * torch.randn({shape})"
    names, more = ("x, y, w", f", torch.rand({shape})") if weight else ("x, y", "")
    return a_task(f"return {call}", names=names, inputs=f"{x}, torch.rand({shape}){more}")


def family_of(kind, task, backend):
    if kind == "odds":
        return template_for(task, backend)
    (family,) = kinds_for(task, backend)
    assert family.space.template == "entropy"
    return family


DRAWN = {"classes": against_classes, "odds": against_odds}


def check(pool, kind, backend, number):
    task = DRAWN[kind](number)
    family = family_of(kind, task, backend)
    source = family.source(family.space.seed(number % 7, number))
    # Without its reference a template has nothing to fall back to.
    off, eager = pool.submit(error, source, task.source, seed=number).result()
    assert off <= max(NEAR, 4 * eager), f"{off} with eager at {eager}\n{task.source}\n{source}"


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("kind", DRAWN)
def test_what_is_drawn_is_right_in_the_interpreter(pool, kind, number):
    check(pool, kind, "triton", number)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("kind", DRAWN)
def test_what_is_drawn_is_right_in_cpp(pool, kind, number):
    check(pool, kind, "cpu", number)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpu", "triton"])
@pytest.mark.parametrize("number", range(8, 40))
@pytest.mark.parametrize("kind", DRAWN)
def test_more_of_what_is_drawn_is_right(pool, kind, number, backend):
    check(pool, kind, backend, number)
