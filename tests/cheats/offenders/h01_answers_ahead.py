# number: H1
# task: relu_bias
# expect: refused
# behaviour: wrong crashed cheated
"""Sends the next reply before it is asked, so that the clock stops as it starts; a thread works on."""

import torch

from kernelsmith.kernels import cpp

import kernelsmith.evaluate.worker.program as worker

LIB = cpp(
    r"""
#include <thread>
extern "C" void later(const float* x, const float* bias, float* y, int64_t m, int64_t n) {
  std::thread([=] {
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) y[i * n + j] = std::max(x[i * n + j] + bias[j], 0.0f);
  }).detach();
}
"""
)
SEND = worker.send
LAST = []
OUTPUTS = {}


def send(control, reply):
    if reply.get("addresses"):
        if LAST:
            return
        LAST.append(reply)
    SEND(control, reply)
    if LAST and reply.keys() == {"state"}:
        SEND(control, LAST[0])


worker.send = send


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(dim))

    def forward(self, x):
        y = OUTPUTS.setdefault(x.data_ptr(), torch.empty_like(x))
        LIB.later(x, self.bias, y, x.shape[0], x.shape[1])
        return y
