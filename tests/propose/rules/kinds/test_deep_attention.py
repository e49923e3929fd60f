"""Attention whose heads do not fit in registers: right in float64's eyes, and built for an H200."""

import pytest
from part_runner import error, runner
from rule_tasks import a_task
from test_parts_compile import SHARED, compiled, launches

from kernelsmith.propose.rules.kinds import kinds_for, why_none

pytest.importorskip("triton")
torch = pytest.importorskip("torch")


QUERIES, VALUES = "torch.randn(1, 2, {m}, {d})", "torch.randn(1, 2, {n}, {e})"


def heads(m=70, n=70, d=270, e=300, q=QUERIES, v=VALUES):
    """Inputs of two heads that share their keys."""
    texts = (q, "torch.randn(1, 1, {n}, {d})", v)
    return {
        "names": "q, k, v",
        "inputs": ", ".join(each.format(m=m, n=n, d=d, e=e) for each in texts),
    }


WRITTEN = "s = q @ k.mT * 0.06\n"
TASKS = {
    "library": a_task("return F.scaled_dot_product_attention(q, k, v)", **heads(n=90)),
    "causal": a_task("return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.1)",
                     **heads()),
    "hidden": a_task(
        WRITTEN + "hide = torch.arange(70)[:, None] % 4 == torch.zeros(90)\n"
        "return torch.softmax(s.masked_fill(hide, -torch.inf), dim=-1) @ v", **heads(n=90)),
    "truths": a_task(
        "seen = torch.arange(70)[:, None] % 7 != 3\nseen = seen & (torch.arange(70) > 9)\n"
        "return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)", **heads()),
    "biased": a_task(
        WRITTEN + "return torch.softmax(s + torch.linspace(-1, 1, 70, dtype=q.dtype), -1) @ v",
        **heads()),
    "relu": a_task(WRITTEN + "return torch.relu(s) @ v", **heads()),
    "few": a_task("return F.scaled_dot_product_attention(q, k, v)", **heads(3)),
    "turned": a_task("return F.scaled_dot_product_attention(q.mT, k.mT, v)", names="q, k, v",
                     inputs="torch.randn(2, 300, 40), torch.randn(2, 300, 50), "
                     "torch.randn(2, 50, 300)"),
}  # fmt: skip
QUICK = ("library", "hidden", "truths")
SOFT = WRITTEN + "return torch.softmax(s, -1) @ v"
SPOT = "torch.where((torch.arange(40)[:, None] == {at}) & (torch.arange({e}) == 7), {what}, {x})"
STRANGE = {
    "infinite values that are hidden": a_task(
        WRITTEN + "ahead = torch.ones(40, 40, dtype=torch.bool).triu(1)\n"
        "return torch.softmax(s.masked_fill(ahead, float('-inf')), -1) @ v",
        **heads(40, 40, v=SPOT.format(at=30, e=300, what="torch.inf", x=VALUES))),
    "queries that are no numbers": a_task(
        SOFT, **heads(40, 40, q=SPOT.format(at=3, e=270, what="torch.nan", x=QUERIES))),
    "values beyond float16": a_task(SOFT, **heads(40, 40, v=f"{VALUES} * 1e25")),
    "keys beyond float16": a_task(
        "return torch.softmax(q @ (k * 1e-30).mT * 1e29, -1) @ v", **heads(40, 40)),
}  # fmt: skip


@pytest.fixture(scope="module")
def pool():
    with runner() as found:
        yield found


def the_family(task):
    (found,) = kinds_for(task, "triton")
    assert "too deep for registers" in found.words(found.space.defaults)
    return found


def check(pool, task, chosen=None, dtype="float32", few=False):
    family = the_family(task)
    source = family.source(family.space.defaults | (chosen or {}))
    if few:
        assert "256 * 2**18" in source
        source = source.replace("256 * 2**18", "70 * 128")
    off, eager = pool.submit(error, source, task.source, dtype=dtype).result()
    bound = 4e-6 if dtype == "float32" else 3e-3
    assert off <= max(bound, 4 * eager), f"{off} with eager at {eager}\n{source}"


@pytest.mark.parametrize("name", QUICK)
def test_deep_heads_are_right_with_masks_and_without(pool, name):
    check(pool, TASKS[name])


@pytest.mark.parametrize("name", STRANGE)
def test_what_planes_cannot_hold_is_as_in_torch(pool, name):
    check(pool, STRANGE[name])


def test_heads_that_go_some_at_a_time_give_the_same(pool):
    check(pool, TASKS["causal"], few=True)


def test_half_precision_and_plain_float32_are_right(pool):
    check(pool, TASKS["biased"], dtype="float16")
    check(pool, TASKS["few"])
    check(pool, TASKS["relu"])


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_every_seed_is_right(pool, name):
    space = the_family(TASKS[name]).space
    for number in range(len(space.seeds)):
        check(pool, TASKS[name], space.seed(number, number))


def test_heads_deeper_than_any_are_refused_with_a_reason():
    task = a_task(
        "return F.scaled_dot_product_attention(x, x, x)", inputs="torch.rand(2, 4, 32768)"
    )
    assert "32768 elements" in why_none(task, "triton")["attention"]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(7))
def test_every_seed_compiles_for_hopper(number, tmp_path, monkeypatch):
    task = a_task("return F.scaled_dot_product_attention(q, k, v, is_causal=True)",
                  **heads(512, 512, 512, 512))  # fmt: skip
    family = the_family(task)
    source = family.source(family.space.seed(number, 1))
    for dtype in (torch.float32, torch.bfloat16):
        found = launches(source, task, tmp_path, monkeypatch, dtype)
        for each in {str((f.__name__, g)): (f, a, g) for f, a, g in found}.values():
            assert compiled(*each).metadata.shared <= SHARED
