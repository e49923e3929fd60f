# number: honest
# task: h_topk
# expect: passed
"""Selects four times; among equals it prefers the last."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
#include <vector>
extern "C" void topk(const float* x, float* values, int64_t* indices, int64_t rows, int64_t dim, int k) {
    std::vector<bool> taken(dim);
    for (int64_t i = 0; i < rows; ++i, x += dim) {
        std::fill(taken.begin(), taken.end(), false);
        for (int r = 0; r < k; ++r) {
            int64_t best = -1;
            for (int64_t j = 0; j < dim; ++j)
                if (!taken[j] && (best < 0 || x[j] >= x[best])) best = j;
            taken[best] = true;
            *values++ = x[best];
            *indices++ = best;
        }
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        values = torch.empty(x.shape[0], 4)
        indices = torch.empty(x.shape[0], 4, dtype=torch.int64)
        lib.topk(x.contiguous(), values, indices, x.shape[0], x.shape[1], 4)
        return values, indices
