"""Loops over an input and a state side by side: what is not what it looks like runs as written."""

from dataclasses import replace

import pytest
from part_tasks import a_task

from kernelsmith.propose.rules.families import templates_only
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds.recurrent import recognise
from kernelsmith.propose.rules.source import read_module

torch = pytest.importorskip("torch")
LOOP = "for t in range(x.shape[0]):\n    h = torch.tanh(self.a(torch.cat((x[t], h), 1)))\n"
SHAPES = {"names": "x, h", "inputs": "torch.randn(7, 5, 6), torch.randn(5, 6)"}
LAYER = "self.a = nn.Linear(12, 6)\n"


def module(body, init=LAYER):
    return read_module(a_task(body, init=init, **SHAPES))


@pytest.mark.parametrize(
    "body",
    [
        LOOP + "    x = torch.tanh(x)\nreturn h",
        LOOP.replace("    h", "    t = 0\n    h") + "return h",
        LOOP + "    x.append(h)\nreturn h",
        "written = h\n" + LOOP + "return h * written",
    ],
)
def test_a_loop_that_changes_what_it_reads_is_not_one(body):
    with pytest.raises(NotRecognised):
        recognise(module(body), "triton")


def test_a_name_of_the_file_s_own_is_not_taken_from_it():
    task = a_task(LOOP + "return h", init=LAYER, **SHAPES)
    source = task.source + "\n\ndef steps(x):\n    return x\n"
    found = templates_only(replace(task, source=source), "triton")
    (family,) = (each for each in found.members if each.space.template == "recurrent")
    with pytest.raises(NotRecognised, match="`steps` of its own"):
        family.source(family.space.starts[0])


HOOKS = [
    "nn.utils.weight_norm(self.a)", "nn.utils.spectral_norm(self.a)",
    "self.a.register_forward_hook(lambda m, i, o: o * 2)",
    "nn.utils.parametrizations.weight_norm(self.a)",
]  # fmt: skip


@pytest.mark.parametrize("more", HOOKS)
def test_a_layer_that_a_constructor_hooks_into_is_not_read(more):
    task = a_task(LOOP + "return h", init=LAYER + more, **SHAPES)
    names = [each.space.template for each in templates_only(task, "cpu").members]
    assert "recurrent" not in names


@pytest.mark.parametrize("more", HOOKS)
def test_a_layer_that_somebody_hooks_into_elsewhere_runs_as_written(more):
    task = a_task(LOOP + "return h", init=f"{LAYER}hooked(self)", **SHAPES)
    source = f"{task.source}\n\ndef hooked(self):\n    {more}\n"
    task = replace(task, source=source)
    (family,) = (
        each for each in templates_only(task, "cpu").members if each.space.template == "recurrent"
    )
    names: dict = {}
    exec(task.source, names)
    torch.manual_seed(0)
    reference = names["Model"](*names["get_init_inputs"]())
    inputs = names["get_inputs"]()
    ours: dict = {"__name__": "candidate"}
    exec(family.source(family.space.starts[0]), ours)
    model = ours["ModelNew"](*names["get_init_inputs"]())
    model.load_state_dict(reference.state_dict())
    reference.eval(), model.eval()
    assert torch.equal(model(*inputs), reference(*inputs))
