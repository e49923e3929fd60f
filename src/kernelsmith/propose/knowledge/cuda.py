"""CUDA C++ kernels."""

from kernelsmith.propose.knowledge.notes import Notes

_LANGUAGE = '''\
Write the kernels in CUDA C++ inside the Python file. `cuda` compiles them (NVRTC, C++17, for this
device) and returns its `extern "C" __global__` kernels; `kernel[grid, block](...)` launches on the
current stream, `kernel[grid, block, shared_bytes](...)` with dynamic shared memory. Tensors arrive
as pointers to their first element, numbers as the declared type. Make inputs contiguous, allocate
outputs with torch.empty; a grid of 0 blocks launches nothing. int64_t and the like are there,
cuda_fp16.h and cuda_bf16.h may be included. There is no host code in it: for `<<<...>>>` use
`cuda_library(text)`, which returns `extern "C"` host functions (nvcc; a last parameter cudaStream_t
may be left out in calls). torch.utils.cpp_extension.load_inline works, too, but takes longer.

```python
import torch
from kernelsmith.kernels import cuda

lib = cuda(r"""
extern "C" __global__ void __launch_bounds__(256)
scaled_relu(const float* __restrict__ x, float* __restrict__ y, int64_t n, float scale) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = scale * (x[i] < 0.0f ? 0.0f : x[i]);
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        lib.scaled_relu[(x.numel() + 255) // 256, 256](x, y, x.numel(), self.scale)
        return y
```'''

NOTES = Notes(
    language=_LANGUAGE,
    tips=(
        "Coalesce: a warp reads one contiguous, aligned stretch; float4 loads where alignment is "
        "known.",
        "Reduce with warp shuffles first, shared memory second, atomics last.",
        "Keep 8 or more independent loads in flight per thread before the first use.",
        "Pad or swizzle shared-memory tiles so that a warp's accesses fall into different banks.",
        "Choose blocks of 128 to 512 threads; look at registers and spills in the kernels table.",
        "Matrix products belong on tensor cores (mma or wmma), with asynchronous copies in two or "
        "more stages and a fused epilogue.",
    ),
    hopper=(
        "On this GPU, TMA copies with mbarriers, warp-group mma and thread-block clusters are "
        "there; they pay off for large tiles only.",
    ),
)
