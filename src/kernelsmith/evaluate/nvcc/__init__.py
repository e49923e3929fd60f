"""Building CUDA candidates: NVRTC, torch extensions without the wait, nvcc; what they report."""
