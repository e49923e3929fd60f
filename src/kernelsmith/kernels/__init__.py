"""What a candidate imports: C++, CUDA or MACA given as text, returned as what takes tensors.

    from kernelsmith.kernels import cpp

    lib = cpp('extern "C" void relu(const float* x, float* y, int64_t n) { ... }')
    lib.relu(x, y, x.numel())

    from kernelsmith.kernels import cuda

    lib = cuda('extern "C" __global__ void relu(const float* x, float* y, int64_t n) { ... }')
    lib.relu[blocks, 256](x, y, x.numel())

Under the judge the compiler runs in another sandbox; anywhere else it runs here, once per source.
"""

from kernelsmith.kernels.building import (
    ALLOWED_FLAG,
    DEFAULT_FLAGS,
    BuildError,
    BuildRequest,
    compile_with,
)
from kernelsmith.kernels.launching import Kernel, Module, cuda
from kernelsmith.kernels.library import Library, cpp, cuda_library, extension_request, maca
from kernelsmith.kernels.signatures import Signature, signatures

__all__ = [
    "ALLOWED_FLAG",
    "DEFAULT_FLAGS",
    "BuildError",
    "BuildRequest",
    "Kernel",
    "Library",
    "Module",
    "Signature",
    "compile_with",
    "cpp",
    "cuda",
    "cuda_library",
    "extension_request",
    "maca",
    "signatures",
]
