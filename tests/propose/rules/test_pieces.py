"""Few long rows are cut in pieces, and what is found in each is joined exactly."""

import sys
from pathlib import Path

import pytest
from rule_tasks import a_task
from triton_interpreter import runner

from kernelsmith.propose.rules.chip import Chip
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.templates import template_for

sys.path.append(str(Path(__file__).parent / "kinds"))
from part_runner import error
from test_parts_compile import compiled, launches

pytest.importorskip("triton")

LONG = "torch.randn(3, 17000) * 3"
PLACE = "torch.arange(51000).view(3, 17000)"
ODD = {
    "hidden": f"torch.where({PLACE} < 9000, -torch.inf, torch.randn(3, 17000))",
    "endless": f"torch.where({PLACE} == 9000, torch.inf, torch.randn(3, 17000) * 30 - 100)",
    "nothing": f"torch.where({PLACE} < 17000, -torch.inf, torch.randn(3, 17000))",
    "no number": f"torch.where({PLACE} == 9000, torch.nan, torch.randn(3, 17000))",
}
FORWARDS = {
    "softmax": "return torch.softmax(x, -1)",
    "logsumexp": "return torch.logsumexp(x, -1)",
    "amax": "return torch.amax(x, -1)",
    "spread": "return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)",
    "overall": "return x / torch.norm(x)",
}


def long_rows(name, inputs=LONG):
    return a_task(FORWARDS[name], inputs=inputs)


@pytest.fixture(scope="module")
def pool():
    with runner() as found:
        yield found


def check(pool, name, inputs=LONG, **chosen):
    template = template_for(long_rows(name), "triton")
    assert "splits" in {each.name for each in template.space.parameters}
    known = {each.name for each in template.space.parameters}
    chosen = {key: value for key, value in chosen.items() if key in known}
    source = template.source(template.space.defaults | chosen)
    assert "sweep0[(rows, pieces)]" in source
    reference = long_rows(name, inputs).source
    off, eager = pool.submit(error, source, reference, kept=True).result()
    assert off <= max(1e-6, 4 * eager), f"{off} with eager at {eager}\n{source}"


@pytest.mark.parametrize("name", FORWARDS)
def test_rows_in_pieces_are_right(pool, name):
    # Strict maxima go one by one in the interpreter.
    check(pool, name, splits="16", block="256" if name == "amax" else "2048", passes="multi")
    if name in ("softmax", "logsumexp"):
        check(pool, name, splits="4", passes="online")


@pytest.mark.parametrize("inputs", ODD)
@pytest.mark.parametrize("name", ["softmax", "logsumexp"])
def test_infinities_and_nan_come_out_of_pieces_as_in_torch(pool, name, inputs):
    check(pool, name, ODD[inputs], splits="4", passes="online")


def test_the_largest_of_a_row_with_no_number_is_none(pool):
    check(pool, "amax", ODD["no number"], splits="64", block="256")
    short = template_for(a_task(FORWARDS["amax"]), "triton")
    source = short.source(short.space.defaults)
    assert "tl.max(" not in source  # it forgets them on a GPU, though not in the interpreter


def test_few_rows_are_cut_first_and_many_never():
    few, many = (
        template_for(long_rows("softmax", f"torch.randn({rows}, 100000)"), "triton").space
        for rows in (4, 4096)
    )
    assert few.seed(0, 0)["splits"] == "256"
    assert {each.name for each in few.parameters} - {each.name for each in many.parameters} == {
        "splits"
    }


def test_long_rows_begin_with_one_large_program_per_multiprocessor():
    task = long_rows("softmax", "torch.randn(4096, 65536)")
    first, second = (template_for(task, "triton").space.seed(n, 0) for n in (0, 1))
    assert (first["programs"], first["warps"], first["passes"]) == ("132", "32", "multi")
    assert second == first | {"passes": "online"}
    other = template_for(task, "triton", Chip(processors=80)).space
    assert other.seed(0, 0)["programs"] == "80"
    short = template_for(long_rows("softmax", "torch.randn(4096, 1024)"), "triton").space
    assert "132" not in short.named("programs").choices


def test_a_norm_of_everything_by_itself_and_of_matrices_are_refused():
    for forward in ("return torch.norm(x)", "return x / torch.linalg.norm(x, 2)"):
        with pytest.raises(NotRecognised, match=r"dimension of a reduction|norms of matrices"):
            template_for(a_task(forward, inputs=LONG), "triton")


@pytest.mark.slow
@pytest.mark.parametrize("name", FORWARDS)
def test_every_kernel_compiles_for_hopper(name, tmp_path, monkeypatch):
    import torch

    task = long_rows(name)
    template = template_for(task, "triton")
    for number in range(3):
        source = template.source(template.space.seed(number, 1))
        for each in launches(source, task, tmp_path, monkeypatch, torch.float32):
            compiled(*each)
