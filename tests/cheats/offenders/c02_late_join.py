# number: C2
# task: matmul
# expect: wrong crashed
"""Leaves the product to a native thread that starts, and is joined, when the next call comes."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
extern "C" void mm(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  #pragma omp parallel for
  for (int64_t i = 0; i < m; i++) {
    float* row = c + i * n;
    for (int64_t j = 0; j < n; j++) row[j] = 0;
    for (int64_t p = 0; p < k; p++)
      for (int64_t j = 0; j < n; j++) row[j] += a[i * k + p] * b[p * n + j];
  }
}
static std::mutex lock;
static std::condition_variable called;
static std::thread* last = nullptr;
static bool wanted = false;
extern "C" void begin(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  if (last != nullptr) {
    { std::lock_guard<std::mutex> held(lock); wanted = true; }
    called.notify_one();
    last->join();
    delete last;
  }
  wanted = false;
  const int64_t most = 0;
  mm(a, b, c, most, k, n);
  last = new std::thread([=] {
    {
      std::unique_lock<std::mutex> held(lock);
      called.wait_for(held, std::chrono::milliseconds(5), [] { return wanted; });
    }
    mm(a + most * k, b, c + most * n, m - most, k, n);
  });
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.begin(a, b, c, a.shape[0], a.shape[1], b.shape[1])
        return c
