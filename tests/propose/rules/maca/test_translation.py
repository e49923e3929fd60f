"""CUDA becomes MACA by rules: names, headers, masks, waves of 64; what has no counterpart stays."""

import asyncio
from pathlib import Path

import pytest
from rule_briefs import a_brief

from kernelsmith.domain.candidate import Candidate
from kernelsmith.evaluate.guards.maca import lint_candidate
from kernelsmith.evaluate.guards.static import inspect_source
from kernelsmith.evaluate.maca import names as shim
from kernelsmith.evaluate.tasks import load_task
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.maca.family import PortFamily, cuda_of, ported
from kernelsmith.propose.rules.maca.names import EXCEPTIONS, renamed
from kernelsmith.propose.rules.maca.translation import kernels_to_maca, to_maca
from kernelsmith.propose.rules.proposer import RulesProposer

FOLDER = Path(__file__).parents[4] / "tasks" / "cuda"
ROW_SUM = load_task(FOLDER / "row_sum.py")
TASKS = [load_task(path) for path in sorted(FOLDER.glob("*.py"))]


@pytest.mark.parametrize(
    ("cuda", "maca"),
    [
        ("cudaMalloc(&p, n);", "mcMalloc(&p, n);"),
        ("cudaStream_t s;", "mcStream_t s;"),
        ("cudaDeviceProp p;", "mcDeviceProp_t p;"),
        ("cudaDevAttrWarpSize", "mcDeviceAttributeWarpSize"),
        ("#include <cuda_fp16.h>", "#include <common/maca_fp16.h>"),
        ('#include "cuda_runtime.h"', '#include "mc_runtime.h"'),
        ("__nv_bfloat162 v;", "__maca_bfloat162 v;"),
        ("int cudaless = my_cudaMalloc;", "int cudaless = my_cudaMalloc;"),
    ],
)
def test_names_and_headers(cuda, maca):
    assert renamed(cuda) == maca


@pytest.mark.parametrize(
    ("cuda", "maca"),
    [
        ("__shfl_xor_sync(0xffffffff, v, 1)", "__shfl_xor_sync(0xffffffffffffffffull, v, 1)"),
        ("__ballot_sync(-1, p)", "__ballot_sync(0xffffffffffffffffull, p)"),
        ("#define FULL_MASK 0xffffffffu", "#define FULL_MASK 0xffffffffffffffffull"),
        ("unsigned mask = 0xffffffff;", "unsigned long long mask = 0xffffffffffffffffull;"),
        ("threadIdx.x & 31", "threadIdx.x & 63"),
        ("threadIdx.x >> 5", "threadIdx.x >> 6"),
        ("blockDim.x / 32", "blockDim.x / 64"),
        ("(blockDim.x + 31) / 32", "(blockDim.x + 63) / 64"),
        ("#define WARP_SIZE 32", "#define WARP_SIZE 64"),
        ("if (lane == 31)", "if (lane == 63)"),
        ("for (int o = 16; o > 0; o >>= 1)", "for (int o = 32; o > 0; o >>= 1)"),
        ("for (int o = 1; o < 32; o <<= 1)", "for (int o = 1; o < 64; o <<= 1)"),
        ("__popc(__ballot_sync(-1, p))", "__popcll(__ballot_sync(0xffffffffffffffffull, p))"),
        ("part[i * 32 + j]", "part[i * 32 + j]"),
    ],
)
def test_waves_of_64(cuda, maca):
    talks = "\nv = __shfl_sync(0xffffffffffffffffull, v, 0);"
    assert kernels_to_maca(cuda + talks) == maca + talks


def test_sources_without_talk_between_lanes_keep_their_numbers():
    assert kernels_to_maca("int row = threadIdx.x / 32;") == "int row = threadIdx.x / 32;"


def test_large_blocks_say_so_and_unrolling_loses_its_brackets():
    text = "#pragma unroll (4)\n__global__ void k(int n) {}\nvoid f() { k<<<1, 1024>>>(1); }"
    found = kernels_to_maca(text)
    assert "#pragma unroll 4\n" in found
    assert "__global__ void __launch_bounds__(1024) k(int n)" in found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('\nasm("mov");', "line 2 of the CUDA: 'asm': PTX"),
        ("__activemask();", "groups"),
        ("#include <cooperative_groups.h>", "cooperative groups"),
        ("cublasSgemm(h);", "library"),
        ("v = __shfl_xor_sync(m, v, 1, 16);", "less than a wave"),
        ("k<<<1, 32>>>(); v = __shfl_sync(m, v, 0);", "blocks of 32 threads"),
    ],
)
def test_what_has_no_counterpart_is_not_translated(text, why):
    with pytest.raises(NotRecognised, match=why):
        kernels_to_maca(text)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_translation_passes_the_lint_and_the_guard(task):
    source = to_maca(cuda_of(task))
    assert list(lint_candidate(source)) == []
    assert inspect_source(Candidate(backend="maca", source=source), task) is None
    assert "cuda" not in source.replace("torch.cuda", "")


def test_the_translation_and_the_shim_agree_on_names():
    made = {name: cuda for name, cuda in shim.EXCEPTIONS.items() if cuda in EXCEPTIONS}
    for name, cuda in made.items():
        assert EXCEPTIONS[cuda] in (name, f"__{name}", name.removeprefix("__"))
    for name in shim.RULE:
        cuda = f"cuda{name}"
        assert renamed(cuda) == f"mc{name}" or cuda in EXCEPTIONS


def test_the_shims_header_is_made_from_its_table():
    path = Path(shim.__file__).parent / "include" / "kernelsmith_names.h"
    assert path.read_text() == shim.header()


def test_a_schedule_changes_block_bounds_and_count_together():
    relu = PortFamily("cuda", cuda_of(load_task(FOLDER / "batch_norm.py")))
    text = relu.source({**relu.space.defaults, "threads": "512"})
    assert "(n + 511) / 512" in text
    assert ", 512, 0, stream>>>" in text
    assert "256" not in text.partition("\n")[2]


def test_a_family_knows_what_it_wrote():
    (family,) = ported(ROW_SUM, "maca")
    for chosen in family.space.starts:
        assert family.space.read(family.source(chosen)) == chosen


def test_a_task_without_cuda_is_told_so():
    plain = load_task(FOLDER.parent / "softmax.py")
    with pytest.raises(NotRecognised, match="brings no CUDA kernel along"):
        ported(plain, "cuda")


@pytest.mark.parametrize("backend", ["cuda", "maca", "maca-emulated"])
def test_the_rules_propose_ports_and_then_other_schedules(backend):
    proposer = RulesProposer(backend)
    seen = set()
    for number in range(3):
        brief = a_brief(ROW_SUM, number, backend=backend)
        proposal = asyncio.run(proposer.propose(brief))
        assert proposal.source is not None, proposal.rejection
        assert ("maca(" in proposal.source) is (backend != "cuda")
        seen.add(proposal.source)
    assert len(seen) >= 2
