"""Waves of 64 on a GPU that has 32: each talk between lanes gives what MetaX's would."""

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import LabelName, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.backend import load_backend
from kernelsmith.evaluate.builder import BuildFailed
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.maca.emulation import emulated
from kernelsmith.kernels.toolkit import find_toolkit
from kernelsmith.testing import QUICK, BackendContract

MASK = "0xffffffffffffffffull"
REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        w = x.view(-1, 64)
        lane = torch.arange(64, device=x.device)
        return ({expression}).reshape(x.shape)
def get_inputs():
    return [torch.randn({blocks} * {threads})]
def get_init_inputs():
    return []
"""
CANDIDATE = '''
import torch
from kernelsmith.kernels import maca

lib = maca(r"""
#include <mc_runtime.h>
__global__ void __launch_bounds__({threads}) talk(const float* x, float* y) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    int lane = threadIdx.x % warpSize;
    y[i] = {device};
}}
extern "C" void launch(const float* x, float* y, int blocks, mcStream_t stream) {{
    talk<<<blocks, {threads}, 0, stream>>>(x, y);
}}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        lib.launch(x, y, x.numel() // {threads})
        return y
'''
TALKS = {
    "xor within a half": (f"__shfl_xor_sync({MASK}, v, 5)", "w[:, lane ^ 5]"),
    "xor across the halves": (f"__shfl_xor_sync({MASK}, v, 37)", "w[:, lane ^ 37]"),
    "down": (f"__shfl_down_sync({MASK}, v, 9)", "w[:, torch.where(lane + 9 < 64, lane + 9, lane)]"),
    "up": (f"__shfl_up_sync({MASK}, v, 33)", "w[:, torch.where(lane >= 33, lane - 33, lane)]"),
    "one for all": (f"__shfl_sync({MASK}, v, 42)", "w[:, 42:43].expand(-1, 64)"),
    "groups of 16": (
        f"__shfl_down_sync({MASK}, v, 3, 16)",
        "w[:, torch.where(lane % 16 + 3 < 16, lane + 3, lane)]",
    ),
    "ballot": (
        f"(float)__popcll(__ballot_sync({MASK}, v > 0))",
        "(w > 0).sum(-1, keepdim=True).expand(-1, 64).to(x.dtype)",
    ),
    "any": (
        f"__any_sync({MASK}, v > 2) ? 1.0f : 0.0f",
        "(w > 2).any(-1, keepdim=True).expand(-1, 64).to(x.dtype)",
    ),
    "all": (
        f"__all_sync({MASK}, v < 2) ? 1.0f : 0.0f",
        "(w < 2).all(-1, keepdim=True).expand(-1, 64).to(x.dtype)",
    ),
    "half of a wave": (
        "lane < 32 ? __shfl_xor_sync(0x00000000ffffffffull, v, 1) : 2 * v",
        "torch.where(lane < 32, w[:, lane ^ 1], 2 * w)",
    ),
}  # fmt: skip


def a_case(name: str, threads: int = 256) -> tuple[Task, str]:
    device, expression = TALKS[name]
    source = REFERENCE.format(expression=expression, blocks=32, threads=threads)
    return Task(name="talk", source=source), CANDIDATE.format(device=device, threads=threads)


@pytest.fixture(scope="module")
def evaluator():
    with LocalEvaluator("maca-emulated", QUICK) as made:
        yield made


@pytest.mark.triton
@pytest.mark.parametrize("threads", [64, 256, 1024])
@pytest.mark.parametrize("name", TALKS)
def test_lanes_talk_as_on_a_wave_of_64(evaluator, name, threads):
    task, source = a_case(name, threads)
    found = evaluator.judge(task, Candidate(backend="maca-emulated", source=source))
    assert found.verdict is Verdict.PASSED, found.message


@pytest.mark.triton
def test_a_pass_is_labelled_emulated_and_has_no_time(evaluator):
    task, source = a_case("xor across the halves")
    found = evaluator.judge(task, Candidate(backend="maca-emulated", source=source))
    assert found.timing is None
    assert found.has(LabelName.EMULATED)
    assert found.has(LabelName.UNTIMED)
    assert found.device.kind == "maca-emulated"
    assert "standing in for a MetaX" in found.device.name


@pytest.mark.triton
def test_a_candidate_that_leaves_the_work_to_torch_is_a_cheat(evaluator):
    task, source = a_case("xor across the halves")
    body = (
        "lane = torch.arange(64, device=x.device) ^ 37\n"
        "        return x.view(-1, 64)[:, lane].reshape(x.shape)\n"
    )
    head = source.partition("        x = x.contiguous()")[0]
    found = evaluator.judge(
        task, Candidate(backend="maca-emulated", source=f"{head}        {body}")
    )
    assert found.verdict is Verdict.CHEATED, found.message


@pytest.fixture(scope="module")
def opened():
    backend = load_backend("maca-emulated")
    yield backend
    backend.close()


@pytest.mark.triton
class TestEmulated(BackendContract):
    task, good = a_case("xor across the halves")
    broken = good.replace("blockIdx.x *", "blockIdx.w *")
    wrong = good.replace("v, 37", "v, 36")

    @pytest.fixture
    def backend(self, opened):
        return opened


def test_kernels_begin_their_waves_and_warps_have_64_lanes():
    made = emulated(a_case("up")[1].split('r"""')[1].split('"""')[0])
    assert made.count("kernelsmith_wave_begin();") == 1
    assert "threadIdx.x % 64" in made


def test_a_field_called_warp_size_keeps_its_name():
    assert "prop.warpSize" in emulated("int f(mcDeviceProp_t prop) { return prop.warpSize; }")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\n\nint m = __activemask();", r"kernel\.maca\(3\): not emulated: __activemask"),
        ("__builtin_mxc_mma_16x16x16f16(a);", "instruction of MetaX"),
        ("#include <maca_cooperative_groups.h>", "cooperative groups"),
        ("cudaMalloc(&p, 4);", "MACA's begins with mc"),
        ("#include <cuda_runtime.h>", "MACA's begins with mc"),
        ("mcblasCreate(&h);", "a library's"),
        ("mcModuleLoadData(&m, p);", "the judge does that"),
        ('asm("exit;");', "PTX"),
        ("#define K(n) __global__ void n() \\\n{ __syncwarp(); }", "a macro"),
    ],
)
def test_what_cannot_be_imitated_is_refused_with_its_line(text, why):
    with pytest.raises(BuildFailed, match=why):
        emulated(text)


@pytest.mark.slow
@pytest.mark.skipif(find_toolkit().nvcc is None, reason="nvcc is not on this machine")
@pytest.mark.parametrize("name", TALKS)
def test_every_talk_compiles(name, tmp_path):
    from kernelsmith.evaluate.maca.builder import EmulatedBuilder
    from kernelsmith.evaluate.sandbox.process import Zygote
    from kernelsmith.kernels.building import BuildRequest

    text = a_case(name)[1].split('r"""')[1].split('"""')[0]
    with Zygote(preload=["kernelsmith.evaluate.worker.compiling"]) as zygote:
        builder = EmulatedBuilder(zygote, cache=tmp_path, arch="sm_90a")
        made = builder.build(BuildRequest(kind="maca", source=text))
    assert "talk" in made.kernels[0].name
