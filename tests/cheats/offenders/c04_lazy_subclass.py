# number: C4
# task: matmul
# expect: refused
# behaviour: wrong
"""Returns a placeholder tensor that computes itself when somebody compares it."""

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


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        for each in args:
            if isinstance(each, Lazy) and getattr(each, "job", None) and "get" not in str(func):
                a, b = each.job
                each.job = None
                LIB.mm(a, b, each.home, a.shape[0], a.shape[1], b.shape[1])
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        home = torch.empty(a.shape[0], b.shape[1])
        out = home.as_subclass(Lazy)
        out.home, out.job = home, (a, b)
        return out
