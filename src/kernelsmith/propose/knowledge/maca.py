"""Kernels for MetaX GPUs in MACA C++."""

from kernelsmith.propose.knowledge.notes import Notes

_LANGUAGE = '''\
Write the kernels in MACA C++ inside the Python file: CUDA's syntax, runtime names with `mc` for
`cuda` (mcStream_t, mcGetLastError), header mc_runtime.h, built by mxcc. `maca` compiles it and
returns its `extern "C"` host functions, which launch kernels by `<<<...>>>`; a last parameter
mcStream_t may be left out in calls: it is then the current stream. Where the task shows a CUDA
kernel (its constant CUDA), that is verified: port it first, then make it faster.

```python
import torch
from kernelsmith.kernels import maca

lib = maca(r"""
#include <mc_runtime.h>
#include <stdint.h>
__global__ void scaled_relu_kernel(const float* x, float* y, int64_t n, float scale) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = scale * (x[i] < 0.0f ? 0.0f : x[i]);
}
extern "C" void scaled_relu(const float* x, float* y, int64_t n, float scale, mcStream_t stream) {
    if (n > 0) scaled_relu_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n, scale);
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        lib.scaled_relu(x, y, x.numel(), self.scale)
        return y
```'''

NOTES = Notes(
    language=_LANGUAGE,
    tips=(
        "A warp holds 64 threads: shuffles, ballots (64-bit masks) and reductions are written for "
        "64, and blocks are multiples of 64.",
        "Never write 32 for the warp size or 0xffffffff for a mask: code from CUDA that does is "
        "wrong here, not just slow.",
        "Coalesce: neighbouring threads read neighbouring addresses, 16 bytes each where aligned.",
        "Reduce with shuffles first (offsets 32, 16, ... 1), shared memory second, atomics last.",
        "A block has 64 KB of shared memory; 128 to 512 threads are a good start, and kernels with "
        "more than 512 need __launch_bounds__, or they are compiled again at run time.",
        "No PTX, no TMA, no clusters, no `#pragma unroll (n)` with brackets.",
        "The second-level cache is 8 MB: what is read twice should be read twice soon.",
    ),
)
