"""Kernel-Smith turns a PyTorch module into a faster kernel, with proof that it is right."""

__version__ = "0.1.0"
