"""Kernels that others published, read from where the user has them."""
