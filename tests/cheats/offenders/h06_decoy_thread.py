# number: H6
# task: matmul
# expect: cheated
"""A native thread burns time in code that it built beside torch, which does the work: coverage rises."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
#include <atomic>
#include <thread>
static std::atomic<int64_t> owed{0};
static std::atomic<int64_t> spun{0};
static void burn() {
  for (;;) {
    if (owed.load() > 0) {
      owed.store(0);
      for (int64_t i = 0; i < 20000; i++) spun.fetch_add(1, std::memory_order_relaxed);
    } else {
      std::this_thread::yield();
    }
  }
}
extern "C" void start() { std::thread(burn).detach(); }
extern "C" void owe() { owed.store(1); }
"""
)
LIB.start()
torch.set_num_threads(1)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        LIB.owe()
        return torch.matmul(a, b)
