# number: honest
# task: h_attention
# expect: passed
"""Attention in one pass over the keys, rescaling as the maximum grows; the mask holds infinities."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void attend(const float* q, const float* k, const float* v, const float* mask, float* y,
                       int64_t heads, int64_t m, int64_t n, int64_t dim) {
    #pragma omp parallel for collapse(2)
    for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < m; ++i) {
            const float* query = q + (h * m + i) * dim;
            float* out = y + (h * m + i) * dim;
            float top = -INFINITY, sum = 0;
            for (int64_t d = 0; d < dim; ++d) out[d] = 0;
            for (int64_t j = 0; j < n; ++j) {
                const float* key = k + (h * n + j) * dim;
                float score = 0;
                for (int64_t d = 0; d < dim; ++d) score += query[d] * key[d];
                score = score / std::sqrt((float)dim) + mask[i * n + j];
                if (score == -INFINITY) continue;
                const float now = std::max(top, score), old = std::exp(top - now), w = std::exp(score - now);
                sum = sum * old + w;
                for (int64_t d = 0; d < dim; ++d) out[d] = out[d] * old + w * v[(h * n + j) * dim + d];
                top = now;
            }
            for (int64_t d = 0; d < dim; ++d) out[d] /= sum;
        }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v, mask):
        q, k, v, mask = (each.contiguous() for each in (q, k, v, mask))
        y = torch.empty_like(q)
        lib.attend(q, k, v, mask, y, *q.shape[:2], k.shape[1], q.shape[2])
        return y
