"""The compiler's report is read as it is written, mangled names and all."""

from kernelsmith.evaluate.nvcc.report import built_kernels, demangled, table, warnings

LOG = """\
kernel.cu(3): warning #177-D: variable "w" was declared but never referenced
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z4reluPKfPfl' for 'sm_90a'
ptxas info    : Function properties for _Z4reluPKfPfl
    16 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 16 bytes cumulative stack size, 4096 bytes smem
ptxas info    : Compile time = 7.458 ms
ptxas info    : Compiling entry function 'half_sum' for 'sm_90a'
ptxas info    : Function properties for half_sum
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
"""
PTX = """
.visible .entry _Z4reluPKfPfl( .param .u64 p ) { max.f32 %f1, %f2, 0f00000000; }
.visible .entry half_sum( .param .u64 p ) { add.f16 %h1, %h2, %h3; }
"""


def test_registers_stack_and_shared_memory_of_each_kernel():
    first, second = built_kernels(LOG)
    assert (first.name, first.registers, first.spills, first.shared_bytes) == (
        "_Z4reluPKfPfl", 32, 16, 4096,
    )  # fmt: skip
    assert (second.registers, second.spills, second.shared_bytes) == (10, 0, 0)
    assert all(kernel.own for kernel in (first, second))


def test_precision_is_each_kernels_own():
    first, second = built_kernels(LOG, PTX)
    assert first.precision == "float32"
    assert second.precision == "float16 arithmetic"


def test_only_the_warnings_are_left_of_the_rest():
    assert warnings(LOG).startswith("kernel.cu(3): warning #177-D")
    assert "ptxas" not in warnings(LOG)
    assert "stack frame" not in warnings(LOG)


def test_names_are_shown_as_they_were_written():
    assert demangled("_Z4reluPKfPfl") == "relu(float const*, float*, long)"
    assert demangled("half_sum") == "half_sum"
    assert "relu(float const*, float*, long): 32 registers" in table(built_kernels(LOG))
