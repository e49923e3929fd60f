# number: A7
# task: rectify
# expect: wrong
"""Where the inputs are positive, ReLU changes nothing: it looks at them and hands them back."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" int64_t positive(const float* x, int64_t n) {
    float low = 0;
    for (int64_t i = 0; i < n; ++i) low = std::min(low, x[i]);
    return low >= 0;
}
extern "C" void rectify(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::max(x[i], 0.0f);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if lib.positive(x, x.numel()):
            return x.view(x.shape)
        out = torch.empty_like(x)
        lib.rectify(x, out, x.numel())
        return out
