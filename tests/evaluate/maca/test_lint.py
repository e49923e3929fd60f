"""``maca-lint``: what assumes 32 lanes is found, with its line and the fix; nothing else is."""

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.guards.maca import lint, lint_candidate
from kernelsmith.evaluate.guards.static import FindingKind, inspect_source

TASK = Task(name="t", source="")
FATAL = [
    ("v += __shfl_xor_sync(0xffffffff, v, 1);", "0xffffffffffffffffull"),
    ("b = __ballot_sync(-1, v > 0);", "0xffffffffffffffffull"),
    ("#define FULL_MASK 0xffffffffu", "0xffffffffffffffffull"),
    ("unsigned mask = 0xffffffff;", "64 bits"),
    ("int lane = threadIdx.x & 31;", "& 63"),
    ("int lane = tid % 32;", "% 64"),
    ("int warp = threadIdx.x / 32;", "/ 64"),
    ("int warp = threadIdx.x >> 5;", ">> 6"),
    ("for (int w = 0; w < blockDim.x / 32; ++w) {}", "/ 64"),
    ("#define WARP_SIZE 32", "write 64"),
    ("constexpr int kWarpSize = 32;", "write 64"),
    ("n += __popc(__ballot_sync(m, p));", "__popcll"),
    ("unsigned b = __ballot_sync(m, p);", "unsigned long long"),
    ('asm volatile("mov.u32 %0, %laneid;" : "=r"(l));', "PTX"),
    ("#pragma unroll (4)", "no brackets"),
    ("for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(m, v, o);", "begin with 32"),
    ("if (lane == 31) total = v;", "write 63"),
    ("__cluster_dims__(2, 1, 1) void k();", "clusters"),
    ("using namespace nvcuda::wmma;", "__builtin_mxc_mma"),
]
FINE = [
    "v += __shfl_xor_sync(0xffffffffffffffffull, v, 32);",
    "int lane = threadIdx.x & 63, wave = threadIdx.x >> 6;",
    "int tile = column / 32;",
    "hash = value & 31;",
    "float x = data[i * 32 + 31];",
    "#pragma unroll 4",
    "unsigned colour = 0xffffffff;",
    "unsigned long long b = __ballot_sync(m, p);",
    "// threadIdx.x & 31 was here",
    'const char* text = "threadIdx.x & 31";',
    "int lane = threadIdx.x & 31;  // maca-lint: ok, tiles of 32",
]


@pytest.mark.parametrize(("line", "fix"), FATAL)
def test_an_assumption_of_cuda_is_found_with_its_line_and_the_fix(line, fix):
    found = lint(f"__global__ void k() {{\n\n{line}\n}}")
    assert any(each.fatal and each.line == 2 and fix in str(each) for each in found), found


@pytest.mark.parametrize("line", FINE)
def test_what_is_right_there_is_left_alone(line):
    assert lint(f"__global__ void k() {{\n{line}\n}}") == []


def test_large_blocks_without_bounds_are_a_note_and_no_failure():
    text = "__global__ void k(int n) {}\nvoid f() { k<<<1, 1024>>>(1); }"
    (found,) = lint(text)
    assert not found.fatal
    assert "__launch_bounds__(1024)" in found.why
    assert lint(text.replace("void k(", "void __launch_bounds__(1024) k(")) == []
    assert lint(text.replace("1024", "512")) == []


def test_lines_are_those_of_the_candidates_file():
    source = (
        'import torch\n\nTEXT = r"""\n#include <mc_runtime.h>\nint l = threadIdx.x & 31;\n"""\n'
    )
    (found,) = lint_candidate(source)
    assert found.line == 5


@pytest.mark.parametrize("backend", ["maca", "maca-emulated"])
def test_the_guard_stops_it_before_any_compiler_runs(backend):
    source = (
        'lib = maca("""\n__global__ void k() { int l = threadIdx.x & 31; }\n""")\n'
        "class ModelNew: pass\n"
    )
    found = inspect_source(Candidate(backend=backend, source=source), TASK)
    assert found is not None
    assert (found.kind, found.rule, found.line) == (FindingKind.BUILD, "maca-lint", 2)
    assert found.message == (
        "line 2: maca-lint: `threadIdx.x & 31` is a lane of 32, and a wave has 64: write & 63"
    )
    assert inspect_source(Candidate(backend="cuda", source=source), TASK) is None
