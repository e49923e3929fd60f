# number: honest
# task: h_any_rms
# expect: passed
"""Nothing but torch, where the task says that this is an answer too."""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        scale = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().div_(x.shape[-1])
        return torch.mul(x, scale.add_(1e-6).rsqrt_()).mul_(self.weight)
