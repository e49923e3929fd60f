"""Calls as stand-alone Triton candidates: text, guard, fallback, and the judge's interpreter."""

import dataclasses
import subprocess
import sys
import textwrap

import pytest
from compiled_cases import ARGUMENTS, captured, task

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.guards.static import inspect_source
from kernelsmith.propose.rules.compiler.call import Call, Constant
from kernelsmith.propose.rules.compiler.reader import read_call
from kernelsmith.propose.rules.compiler.schedules import power
from kernelsmith.propose.rules.compiler.triton_writer import (
    Shaped,
    named_apart,
    parameters,
    triton_candidate,
)
from kernelsmith.testing import QUICK

CASES = [*[(name, "") for name in ARGUMENTS if name != "batched_matmul"],
         ("linear_gelu", "_autotune")]  # fmt: skip


def call_of(name: str, option: str = "", **changes: object) -> Call:
    found = read_call(captured(name, option=option, **changes))
    assert isinstance(found, Call), found
    return found


def written(name: str, option: str = "", launches=None, **changes: object) -> str:
    shaped = [Shaped(call=call_of(name, option, **changes), label="first")]
    return triton_candidate(
        task(name), shaped, header="# kernelsmith rules: compiled form=written", words="A test.",
        launches=launches or {},
    )  # fmt: skip


@pytest.mark.parametrize(("name", "option"), CASES)
def test_the_guard_has_nothing_against_it(name, option):
    source = written(name, option)
    assert inspect_source(Candidate(backend="triton", source=source), task(name)) is None
    assert "_inductor" not in source
    assert "cuda" not in source
    assert "/tmp" not in source


def test_the_same_call_gives_the_same_text():
    assert written("layer_norm") == written("layer_norm")


def test_a_candidate_reads_like_a_person_wrote_it():
    source = written("linear_gelu")
    expected = textwrap.dedent("""\
        def compute(linear_weight, linear_bias, x):
            device = linear_weight.device
            buf0 = torch.empty((256, 768), dtype=torch.float32, device=device)
            torch.mm(x, linear_weight.t(), out=buf0)
            addmm_gelu[(triton.cdiv(196608, 1024),)](
                buf0, linear_bias, XBLOCK=1024, num_warps=4, num_stages=1,
            )
            return buf0
        """)
    assert expected in source
    assert "def plain(self, x):\n        return F.gelu(self.linear(x))" in source
    assert "tensors = (self.linear.weight, self.linear.bias, x)" in source


def test_launches_are_written_as_chosen():
    source = written("linear_gelu", launches={"addmm_gelu": {"XBLOCK": 512, "num_warps": 8}})
    assert "[(triton.cdiv(196608, 512),)](" in source
    assert "XBLOCK=512, num_warps=8, num_stages=1" in source


def test_weights_are_read_at_call_time_and_numbers_are_checked():
    source = written("linear_gelu", numbers=(("s", "3.14"),), training=False)
    assert "self.made_with = (inputs, outputs)" in source
    assert "if self.made_with == (48, 768) and s == 3.14 and (not self.training):" in source


def test_several_results_and_state_go_where_they_belong():
    tree = "{{'best': {0}, 'at': [{1}]}}"
    source = written("topk_router", tree=tree, assigned=(("self.last", "{0}"),))
    assert "self.last = results[0]" in source
    assert "return {'best': results[0], 'at': [results[1]]}" in source


def test_kernels_of_several_shapes_have_names_of_their_own():
    first = call_of("linear_gelu")
    (kernel,) = first.kernels
    other = dataclasses.replace(kernel, text=kernel.text.replace("768", "512"))
    made = named_apart([first, dataclasses.replace(first, kernels=(other,)), first])
    assert [call.kernels[0].name for call in made] == ["addmm_gelu", "addmm_gelu_2", "addmm_gelu"]
    source = triton_candidate(
        task("linear_gelu"), [Shaped(call=each, label=f"case {n}") for n, each in enumerate(made)],
        header="# kernelsmith rules: compiled", words="A test.", launches={},
    )  # fmt: skip
    assert source.count("@triton.jit") == 2
    assert "LAYOUT_2 = (" in source
    assert "return compute_3(*tensors)" in source


def test_sizes_that_the_text_knows_are_no_parameters():
    assert [name for name, kept in parameters(call_of("layer_norm").kernels[0]) if not kept] == [
        "xnumel",
        "r0_numel",
    ]


def test_a_constant_is_made_once_per_device():
    code = captured("linear_gelu").code.replace(".run(buf1, arg1_1,", ".run(buf1, held,")
    held = Constant(name="held", shape=(768,), stride=(1,), dtype="float32", values=(0.5,) * 768)
    source = written("linear_gelu", code=code, constants=(held,))
    assert "@functools.cache\ndef held_on(device):" in source
    assert "held = held_on(device)" in source


def few_programs(call: Call) -> dict[str, dict[str, int]]:
    """Launches for the interpreter, which takes long per program."""
    found = {}
    for kernel in call.kernels:
        launch, sizes = dict(kernel.defaults), dict(kernel.sizes)
        if "XBLOCK" in launch:
            row = 1
            for name, size in sizes.items():
                row *= power(size) if name.startswith("r") else 1
            launch["XBLOCK"] = min(power(sizes["x"]), 4096, max(1, 2**20 // row))
        if "R0_BLOCK" in launch:
            launch["R0_BLOCK"] = min(2048, power(sizes["r0_"]))
        found[kernel.name] = launch
    return found


@pytest.fixture(scope="module")
def judge():
    settings = dataclasses.replace(QUICK, robust=True, contention=1.0)
    with LocalEvaluator("triton", settings) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("name", ["depthwise_conv1d", "layer_norm", "linear_gelu"])
def test_the_judge_passes_it_in_the_interpreter(judge, name):
    source = written(name, launches=few_programs(call_of(name)))
    found = judge.judge(task(name), Candidate(backend="triton", source=source))
    assert found.verdict is Verdict.PASSED, f"{found.message}\n{source}"


RUN = """
import os, sys
os.environ["TRITON_INTERPRET"] = "1"
import torch
scope = {"__name__": "candidate"}
path = sys.argv[1]
exec(compile(open(path).read(), path, "exec"), scope)
calls = []
inner = scope["compute"]
scope["compute"] = lambda *tensors: calls.append(1) or inner(*tensors)
torch.manual_seed(0)
model = scope["ModelNew"](48, 768)
x = torch.randn(256, 48)
with torch.no_grad():
    for given, runs in ((x, 1), (x[:7], 0), (x.double().float().t().contiguous().t(), 0)):
        calls.clear()
        torch.testing.assert_close(model(given), model.plain(given))
        assert len(calls) == runs, (given.shape, calls)
    model.double()
    assert model(x.double()).dtype is torch.float64
    model.float()
calls.clear()
assert model(x).requires_grad, "gradients come from the plain forward"
other = scope["ModelNew"](48, 8)
with torch.no_grad():
    assert other(x).shape == (256, 8)
assert not calls
"""


def test_other_shapes_strides_types_and_gradients_run_plainly(tmp_path):
    pytest.importorskip("triton")
    path = tmp_path / "candidate.py"
    path.write_text(written("linear_gelu", launches=few_programs(call_of("linear_gelu"))))
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("name", "option"), CASES)
def test_every_kernel_compiles_for_hopper(name, option, tmp_path):
    import importlib.util

    triton = pytest.importorskip("triton")
    compiler = pytest.importorskip("triton.backends.compiler")
    path = tmp_path / "candidate.py"
    path.write_text(written(name, option))
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for kernel in call_of(name, option).kernels:
        function, chosen = getattr(module, kernel.name), dict(kernel.defaults)
        names, types = function.arg_names, dict(kernel.types)
        signature = {each: "constexpr" if each in chosen else types[each] for each in names}
        constants = {(names.index(each),): chosen[each] for each in names if each in chosen}
        made = triton.compiler.ASTSource(fn=function, signature=signature, constexprs=constants)
        triton.compile(made, target=compiler.GPUTarget("cuda", 90, 32))
