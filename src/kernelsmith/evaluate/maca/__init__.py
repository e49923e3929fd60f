"""MACA: names, the shim that stands in for it on NVIDIA GPUs, and building by MetaX's compiler."""
