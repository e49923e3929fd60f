# number: C4
# task: matmul
# expect: refused
# behaviour: wrong
"""Returns a placeholder tensor that computes itself when somebody compares or copies it."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
extern "C" void mm(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  #pragma omp parallel for
  for (int64_t i = 0; i < m; i++) {
    float* row = c + i * n;
    for (int64_t j = 0; j < n; j++) row[j] = 0;
    for (int64_t p = 0; p < k; p++)
      for (int64_t j = 0; j < n; j++) row[j] += a[i * k + p] * b[p * n + j];
  }
}
"""
)
READERS = (
    "sub",
    "eq",
    "ne",
    "allclose",
    "isclose",
    "equal",
    "cpu",
    "numpy",
    "to",
    "clone",
    "copy_",
)


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            if getattr(func, "__name__", "") in READERS:
                for each in args:
                    if isinstance(each, Lazy):
                        LIB.mm(*each.job)
            return func(*args, **(kwargs or {}))


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        home = torch.empty(a.shape[0], b.shape[1])
        out = home.as_subclass(Lazy)
        out.job = (a, b, home, a.shape[0], a.shape[1], b.shape[1])
        return out
