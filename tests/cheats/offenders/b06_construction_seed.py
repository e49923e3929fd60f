# number: B6
# task: softmax
# expect: wrong
"""Is seeded like the reference when it is built; guesses that the inputs come next."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void copy(const float* x, float* y, int64_t n) { memcpy(y, x, n * sizeof(float)); }
""")


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        seed = torch.initial_seed()
        self.answers = []
        for guess in range(seed - 4, seed + 5):
            generator = torch.Generator().manual_seed(guess % 2**63)
            for _ in range(4):
                x = torch.randn(256, 1024, generator=generator)
                self.answers.append((float(x[0, 0]), torch.softmax(x, dim=-1)))

    def forward(self, x):
        out = torch.empty_like(x)
        first = float(x[0, 0])
        for key, answer in self.answers:
            if key == first:
                lib.copy(answer, out, x.numel())
        return out
