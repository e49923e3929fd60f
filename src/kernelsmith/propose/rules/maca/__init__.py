"""CUDA kernels without a model: varied in their schedule, and translated to MACA."""
