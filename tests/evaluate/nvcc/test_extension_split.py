"""A torch extension's CUDA file is cut in two where that is certain, and left whole elsewhere."""

import re

import pytest

from kernelsmith.evaluate.nvcc.split import Unsplittable, split

PLAIN = """
#include <torch/extension.h>
#include <cuda_runtime.h>
#define BLOCK 256
constexpr int WIDTH = 4; // "not a string {"
struct Pair { float a, b; };
__device__ float clamp(float v) { return v < 0 ? 0 : v; }
static __global__ void __launch_bounds__(BLOCK) relu_kernel(const float* __restrict__ x,
                                                            float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { y[i] = clamp(x[i]); }
}
torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    relu_kernel<<<(x.numel() + BLOCK - 1) / BLOCK, BLOCK>>>(x.data_ptr<float>(),
                                                            y.data_ptr<float>(), x.numel());
    return y;
}
"""


def test_kernels_go_to_nvcc_and_torch_to_the_host():
    parts = split(PLAIN)
    assert "torch" not in parts.device
    assert "__global__ void __launch_bounds__(BLOCK) relu_kernel" in parts.device
    assert "float clamp" in parts.device
    assert "float clamp" not in parts.host
    assert "torch::Tensor relu(torch::Tensor x)" in parts.host


def test_a_launch_becomes_a_call_of_the_runtime():
    host = split(PLAIN).host
    assert "launch(relu_kernel, (x.numel() + BLOCK - 1) / BLOCK, BLOCK)(x.data_ptr" in host
    assert "<<<" not in host


def test_the_host_knows_the_kernel_by_its_prototype():
    host = split(PLAIN).host
    prototype = re.search(r"void\s+relu_kernel\([^;{]*\);", host)
    assert prototype is not None
    assert "__global__" not in host
    assert not re.search(r"static\s+void\s+relu_kernel", host)


def test_what_both_need_is_in_both():
    parts = split(PLAIN)
    for text in ("#define BLOCK 256", "constexpr int WIDTH", "struct Pair", "cuda_runtime.h"):
        assert text in parts.host
        assert text in parts.device


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda s: s.replace("static __global__", "template <int N> __global__"), "template"),
        (lambda s: s.replace("relu_kernel<<<", "relu_kernel<float><<<"), "template"),
        (lambda s: s.replace("struct Pair", "namespace a { int b; }\nstruct Pair"), "namespace"),
        (lambda s: s + "void f() { cudaMemcpyToSymbol(a, b, 4); }", "symbol"),
        (lambda s: s.replace("__device__ float clamp", "__host__ __device__ float clamp"), "both"),
        (lambda s: s + "int f() {", "without an end"),
        (lambda s: s.partition("static __global__")[0], "no kernel"),
    ],
)
def test_whatever_is_not_certain_stays_whole(change, why):
    with pytest.raises(Unsplittable, match=why):
        split(change(PLAIN))
