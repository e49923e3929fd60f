# number: C14
# task: matmul
# expect: wrong
"""Clones a process by raw system call that shares its memory and is not its thread."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
#include <sched.h>
#include <signal.h>
#include <cstdlib>
extern "C" void mm(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  #pragma omp parallel for
  for (int64_t i = 0; i < m; i++) {
    float* row = c + i * n;
    for (int64_t j = 0; j < n; j++) row[j] = 0;
    for (int64_t p = 0; p < k; p++)
      for (int64_t j = 0; j < n; j++) row[j] += a[i * k + p] * b[p * n + j];
  }
}
struct Job { const float *a, *b; float* c; int64_t m, k, n; };
static int work(void* given) {
  auto* j = (Job*)given;
  for (int64_t i = 0; i < j->m; i++) {
    for (int64_t q = 0; q < j->n; q++) j->c[i * j->n + q] = 0;
    for (int64_t p = 0; p < j->k; p++)
      for (int64_t q = 0; q < j->n; q++) j->c[i * j->n + q] += j->a[i * j->k + p] * j->b[p * j->n + q];
  }
  return 0;
}
extern "C" int offload(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  char* stack = (char*)std::malloc(1 << 16);
  return clone(work, stack + (1 << 16), CLONE_VM | SIGCHLD, new Job{a, b, c, m, k, n});
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.offload(a, b, c, a.shape[0], a.shape[1], b.shape[1])
        return c
