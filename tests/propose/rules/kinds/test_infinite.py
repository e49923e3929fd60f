"""Infinities in Triton's sweeps: one over maximum and sum gives what two give."""

import pytest
from part_runner import error, runner
from rule_tasks import a_task

from kernelsmith.propose.rules.families import templates_only

pytest.importorskip("triton")

INPUTS = """\
def get_inputs():
    x = torch.randn(9, 1300)
    x[1, 2] = x[5, 2] = x[3, 3] = x[3, 7] = x[3, 8] = torch.inf
    x[0, 4] = torch.nan
    x[6] = -torch.inf
    return [x{turned}]
"""
SMALL = {"whole": "1024", "block": "512", "steps": "4"}


@pytest.fixture(scope="module")
def pool():
    with runner() as found:
        yield found


@pytest.mark.parametrize("passes", ["multi", "online"])
@pytest.mark.parametrize("function", ["logsumexp", "softmax"])
@pytest.mark.parametrize(("family", "shape", "dim", "turned"), [
    ("rows", "9, 1300", 1, ""), ("columns", "1300, 9", 0, ".t().contiguous()"),
])  # fmt: skip
def test_infinities_come_out_as_in_torch(pool, family, shape, dim, turned, function, passes):
    task = a_task(f"return torch.{function}(x, dim={dim})", inputs=f"torch.randn({shape})")
    found = next(f for f in templates_only(task, "triton").members if f.space.template == family)
    space = found.space
    chosen = space.defaults | {"passes": passes}
    chosen |= {
        name: value for name, value in SMALL.items()
        if name in chosen and value in space.named(name).choices
    }  # fmt: skip
    source = task.source.partition("def get_inputs")[0] + INPUTS.format(turned=turned)
    source += "def get_init_inputs():\n    return []\n"
    off, eager = pool.submit(error, found.source(chosen), source).result()
    assert off <= max(2e-6, 4 * eager)
