"""Building CUDA without a GPU: what comes out, what is cached, and what a refusal says."""

import os
import subprocess
from pathlib import Path

import pytest

from kernelsmith.evaluate.builder import BuildFailed
from kernelsmith.evaluate.nvcc.builder import CudaBuilder
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.kernels.building import BuildError, BuildRequest
from kernelsmith.kernels.toolkit import Toolkit, find_toolkit

TOOLKIT = find_toolkit()
needs_nvrtc = pytest.mark.skipif(TOOLKIT.nvrtc is None, reason="NVRTC is not on this machine")
needs_nvcc = pytest.mark.skipif(TOOLKIT.nvcc is None, reason="nvcc is not on this machine")

KERNEL = """
#include <cstdint>
#include <cuda_fp16.h>
extern "C" __global__ void __launch_bounds__(256) relu(const float* x, float* y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
"""
LIBRARY = """
namespace { __global__ void hidden(float* y) { y[threadIdx.x] = 1; } }
extern "C" void go(float* y, cudaStream_t stream) { hidden<<<1, 32, 0, stream>>>(y); }
"""


@pytest.fixture(scope="module")
def zygote():
    workers = ("compiling", "nvrtc")
    names = [f"kernelsmith.evaluate.worker.{name}" for name in workers]
    with Zygote(preload=names) as made:
        yield made


@pytest.fixture
def builder(zygote, tmp_path):
    return CudaBuilder(zygote, cache=tmp_path, arch="sm_90a")


def content(artifact) -> bytes:
    return os.pread(artifact.fd, os.fstat(artifact.fd).st_size, 0)


@needs_nvrtc
def test_kernels_become_machine_code_with_a_report(builder):
    made = builder.build(BuildRequest(kind="cubin", source=KERNEL))
    (kernel,) = made.kernels
    assert content(made).startswith(b"\x7fELF")
    assert kernel.name == "relu"
    assert kernel.registers > 0
    assert kernel.precision == "float32"


@needs_nvrtc
def test_what_was_built_is_not_built_again(builder, tmp_path):
    request = BuildRequest(kind="cubin", source=KERNEL)
    first = builder.build(request)
    (stored,) = (tmp_path / "builds").glob("*.device")
    stored.write_bytes(content(first) + b"marked")
    again = builder.build(request)
    assert content(again).endswith(b"marked")
    assert again.kernels == first.kernels


@needs_nvrtc
def test_the_compilers_words_name_the_line(builder):
    broken = KERNEL.replace("fmaxf(x", "fmaxx(x")
    with pytest.raises(BuildFailed, match=r'kernel\.cu\(6\): error: identifier "fmaxx"'):
        builder.build(BuildRequest(kind="cubin", source=broken))


@needs_nvrtc
def test_the_compiler_cannot_read_the_machine(builder):
    # It is said to be missing, not to be forbidden: the sandbox does not hold it.
    source = f'#include "{Path.home()}/.bashrc"\n{KERNEL}'
    with pytest.raises(BuildFailed, match="cannot open source file"):
        builder.build(BuildRequest(kind="cubin", source=source))


@needs_nvcc
def test_a_library_says_which_kernels_it_brought(builder, tmp_path):
    made = builder.build(BuildRequest(kind="cuda", source=LIBRARY))
    path = tmp_path / "library.so"
    path.write_bytes(content(made))
    symbols = subprocess.run(["nm", "-D", path], capture_output=True, text=True).stdout
    assert "T kernelsmith_kernel" in symbols
    assert "T go" in symbols
    assert "hidden" in made.kernels[0].name


def test_a_missing_compiler_is_said_with_what_to_install(zygote, tmp_path):
    nothing = Toolkit(nvcc=None, nvrtc=None, includes=())
    builder = CudaBuilder(zygote, cache=tmp_path, arch="sm_90a", toolkit=nothing)
    with pytest.raises(BuildFailed, match="pip install nvidia-cuda-nvrtc"):
        builder.build(BuildRequest(kind="cubin", source=KERNEL))
    with pytest.raises(BuildFailed, match="nvcc is not on this machine"):
        builder.build(BuildRequest(kind="cuda", source=LIBRARY))
    with pytest.raises(BuildFailed, match="does not build maca"):
        builder.build(BuildRequest(kind="maca", source=""))


@pytest.mark.parametrize("flag", ["-Xcompiler", "-I/etc", "-fplugin=x", "-include", "@file", 3])
def test_flags_are_a_closed_list(flag):
    body = {"kind": "cuda", "source": "", "flags": [flag], "name": "k"}
    with pytest.raises(BuildError, match="is not allowed here"):
        BuildRequest.from_json(body)


@pytest.mark.parametrize("flag", ["-DBLOCK=256", "-use_fast_math", "--maxrregcount=64", "-O3"])
def test_flags_that_tune_are_allowed(flag):
    body = {"kind": "cubin", "source": "", "flags": [flag], "name": "k"}
    assert BuildRequest.from_json(body).flags == (flag,)
