"""CUDA's names as MACA has them: the rule, and where it does not hold."""

import re

HEADERS = {
    "cuda_runtime.h": "mc_runtime.h",
    "cuda_runtime_api.h": "mcr/mc_runtime_api.h",
    "cuda.h": "mc_runtime.h",
    "device_launch_parameters.h": "mc_runtime.h",
    "cuda_fp16.h": "common/maca_fp16.h",
    "cuda_bf16.h": "common/maca_bfloat16.h",
}
EXCEPTIONS = {
    "cudaDeviceProp": "mcDeviceProp_t",
    "cudaPointerAttributes": "mcPointerAttribute_t",
    "cudaHostAllocDefault": "mcMallocHostDefault",
    "cudaHostAllocMapped": "mcMallocHostMapped",
    "cudaHostAllocPortable": "mcMallocHostPortable",
    "cudaDeviceAttr": "mcDeviceAttribute_t",
    "cudaDataType_t": "macaDataType_t",
    "CUDA_R_32F": "MACA_R_32F",
    "CUDA_R_16F": "MACA_R_16F",
    "CUDA_R_16BF": "MACA_R_16BF",
    "__nv_bfloat16": "__maca_bfloat16",
    "__nv_bfloat162": "__maca_bfloat162",
    "nv_bfloat16": "maca_bfloat16",
    "nv_bfloat162": "maca_bfloat162",
    "CUstream": "mcStream_t",
}
_NAME = re.compile(r"\b(?:cudaDevAttr(\w+)|cuda([A-Z]\w*))\b")
_WORD = re.compile(r"\b\w+\b")
_INCLUDE = re.compile(r"(#\s*include\s*[<\"])([^>\"]+)([>\"])")


def renamed(text: str) -> str:
    """MACA's names and headers in place of CUDA's."""
    text = _INCLUDE.sub(lambda m: f"{m[1]}{HEADERS.get(m[2], m[2])}{m[3]}", text)
    text = _WORD.sub(lambda m: EXCEPTIONS.get(m[0], m[0]), text)
    return _NAME.sub(lambda m: f"mcDeviceAttribute{m[1]}" if m[1] else f"mc{m[2]}", text)
