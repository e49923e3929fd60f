"""SwiGLU as a function of two tensors, given by name."""

import torch


def swiglu(gate, up):
    return torch.nn.functional.silu(gate) * up


def get_inputs():
    return {"gate": torch.randn(128, 512), "up": torch.randn(128, 512)}
