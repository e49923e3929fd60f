"""C++ for the processor's cores, through ``kernelsmith.kernels.cpp``."""

from kernelsmith.propose.knowledge.notes import Notes

_LANGUAGE = '''\
Write the kernel in C++17 inside the Python file. `cpp` compiles it (-O3 -march=native -fopenmp)
and returns its `extern "C"` functions. Tensors are passed as they are and arrive as pointers to
their first element; numbers arrive as the declared type (int64_t, int32_t, float, double). Make
inputs contiguous first, allocate outputs with torch.empty. cmath, cstdint, cstring and algorithm
are included already; immintrin.h may be included by name. More flags: `cpp(text,
flags=["-ffast-math"])`, at your own risk.

```python
import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void scaled_relu(const float* x, float* y, int64_t n, float scale) {
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < n; ++i) y[i] = scale * (x[i] > 0.0f ? x[i] : 0.0f);
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
        "Each PyTorch operator costs microseconds of dispatch and a trip through memory: one C++ "
        "call for the whole forward saves both.",
        "Let the outer loop go over rows or blocks with `#pragma omp parallel for`, the inner one "
        "over contiguous elements with `#pragma omp simd`; name reductions in the pragma.",
        "Starting a parallel region costs 5 to 50 us. Below some 32 K elements stay on one thread "
        "(`if(n > ...)` in the pragma).",
        "A sum in one variable runs at the latency of an addition: keep 4 to 8 accumulators, or "
        "vectors of them, and add them up at the end.",
        "Use `__restrict` on pointers; without it the compiler reloads after every store.",
        "std::exp, std::tanh and the like do not vectorise by themselves with -O3: write a "
        "polynomial over vectors (range reduction, degree 5 to 7), or use -ffast-math where "
        "infinities and NaNs still come out right.",
        "Block loops so that what a core works on stays in L1 (32 to 48 KB) or L2 (1 to 2 MB).",
        "For large outputs that nobody reads soon, streaming stores save a third of the traffic.",
        "Matrix products: torch's library is hard to beat on large ones; win on small or skinny "
        "ones and by fusing what comes before and after.",
    ),
)
