"""Scalars, None, a tuple, a dtype and a list of tensors as arguments."""

import torch


class Model(torch.nn.Module):
    def forward(self, parts, scale, bias, shape, dtype, name):
        out = torch.cat(parts, dim=-1).to(dtype) * scale
        if bias is not None:
            out = out + bias
        if name == "negate":
            out = -out
        return out.reshape(shape)


def get_inputs():
    parts = [torch.randn(64, 100), torch.randn(64, 156)]
    return [parts, 0.25, None, (128, 128), torch.float32, "negate"]


def get_init_inputs():
    return []
