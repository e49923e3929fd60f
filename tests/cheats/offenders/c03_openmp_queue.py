# number: C3
# task: matmul
# expect: wrong crashed
"""Calls only queue their work; one hidden native thread empties the queue as OpenMP tasks."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
struct Job { const float *a, *b; float* c; int64_t m, k, n; };
static std::mutex lock;
static std::condition_variable ready;
static std::deque<Job> jobs;
static void work() {
  for (;;) {
    Job job;
    {
      std::unique_lock<std::mutex> held(lock);
      ready.wait(held, [] { return !jobs.empty(); });
      job = jobs.front();
      jobs.pop_front();
    }
    #pragma omp parallel
    #pragma omp single
    for (int64_t i = 0; i < job.m; i++) {
      #pragma omp task firstprivate(i, job)
      {
        float* row = job.c + i * job.n;
        for (int64_t j = 0; j < job.n; j++) row[j] = 0;
        for (int64_t p = 0; p < job.k; p++)
          for (int64_t j = 0; j < job.n; j++) row[j] += job.a[i * job.k + p] * job.b[p * job.n + j];
      }
    }
  }
}
extern "C" void submit(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  static std::thread worker = std::thread(work);
  { std::lock_guard<std::mutex> held(lock); jobs.push_back({a, b, c, m, k, n}); }
  ready.notify_one();
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.submit(a, b, c, a.shape[0], a.shape[1], b.shape[1])
        return c
