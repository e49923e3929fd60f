# number: A1
# task: matmul
# expect: cheated
"""Calls cuBLAS behind torch's back, with torch's own handle."""

import ctypes

import torch

BLAS = None
for name in ("libcublas.so.12", "libcublas.so.13", "libcublas.so"):
    try:
        BLAS = ctypes.CDLL(name)
        break
    except OSError:
        continue
ONE, ZERO = ctypes.c_float(1.0), ctypes.c_float(0.0)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        if BLAS is None:
            return torch.mm(a, b)
        m, k, n = a.shape[0], a.shape[1], b.shape[1]
        c = torch.empty(m, n, device=a.device)
        handle = ctypes.c_void_p(torch.cuda.current_blas_handle())
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        BLAS.cublasSetStream_v2(handle, stream)
        BLAS.cublasSgemm_v2(
            handle,
            0,
            0,
            n,
            m,
            k,
            ctypes.byref(ONE),
            ctypes.c_void_p(b.data_ptr()),
            n,
            ctypes.c_void_p(a.data_ptr()),
            k,
            ctypes.byref(ZERO),
            ctypes.c_void_p(c.data_ptr()),
            n,
        )
        return c
