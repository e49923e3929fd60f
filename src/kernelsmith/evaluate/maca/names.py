"""MACA's names beside CUDA's: what the shim covers, and what it does not.

The rule is ``mcX`` for ``cudaX``; this lists the names that public MACA sources use. The header
``include/kernelsmith_names.h`` is made from it: ``python -m kernelsmith.evaluate.maca.names``.
"""

import sys
from pathlib import Path

_RULE = """
Error_t Success ErrorInvalidValue ErrorNotReady ErrorNoDevice ErrorMemoryAllocation
ErrorPeerAccessAlreadyEnabled ErrorUnknown GetErrorString GetErrorName GetLastError
PeekAtLastError
SetDevice GetDevice GetDeviceCount DeviceSynchronize DeviceReset DeviceCanAccessPeer
DeviceEnablePeerAccess DeviceGetPCIBusId DriverGetVersion RuntimeGetVersion DeviceSetLimit
DeviceGetLimit LimitMallocHeapSize LimitStackSize DeviceGetStreamPriorityRange
Malloc Free MallocHost FreeHost MallocManaged MallocAsync FreeAsync MallocFromPoolAsync Memcpy
MemcpyAsync MemcpyPeerAsync MemcpyPeer Memcpy2D Memcpy2DAsync Memset MemsetAsync MemGetInfo
MemcpyKind MemcpyHostToHost MemcpyHostToDevice MemcpyDeviceToHost MemcpyDeviceToDevice
MemcpyDefault HostRegister HostUnregister HostGetDevicePointer HostRegisterDefault
HostRegisterMapped HostRegisterPortable MemPool_t MemPoolProps MemPoolCreate MemPoolDestroy
MemcpyToSymbol MemcpyFromSymbol MemcpyToSymbolAsync GetSymbolAddress MemAttachGlobal
MemAttachHost MemPrefetchAsync PointerGetAttributes IpcMemHandle_t IpcGetMemHandle
IpcOpenMemHandle IpcCloseMemHandle IpcMemLazyEnablePeerAccess IpcEventHandle_t IpcGetEventHandle
IpcOpenEventHandle
Stream_t StreamCreate StreamCreateWithFlags StreamCreateWithPriority StreamDestroy
StreamSynchronize StreamWaitEvent StreamQuery StreamAddCallback StreamNonBlocking StreamDefault
StreamPerThread LaunchHostFunc Event_t EventCreate EventCreateWithFlags EventDestroy EventRecord
EventSynchronize EventElapsedTime EventQuery EventDefault EventBlockingSync EventDisableTiming
EventInterprocess
Graph_t GraphExec_t GraphNode_t GraphCreate GraphDestroy GraphInstantiate GraphLaunch
GraphExecDestroy GraphGetNodes GraphAddKernelNode GraphAddMemcpyNode1D KernelNodeParams
StreamBeginCapture StreamEndCapture StreamIsCapturing StreamCaptureModeGlobal
StreamCaptureModeThreadLocal StreamCaptureModeRelaxed StreamCaptureStatus
FuncGetAttributes FuncAttributes FuncSetCacheConfig FuncAttributePreferredSharedMemoryCarveout
FuncAttributeMaxDynamicSharedMemorySize FuncCachePreferShared FuncCachePreferL1
OccupancyMaxActiveBlocksPerMultiprocessor OccupancyMaxPotentialBlockSize LaunchKernel
LaunchKernelExC LaunchConfig_t LaunchCooperativeKernel ProfilerStart ProfilerStop
"""
RULE = tuple(_RULE.split())
"""Without their prefixes."""

EXCEPTIONS = {
    "mcPointerAttribute_t": "cudaPointerAttributes",
    "mcDeviceGetCount": "cudaGetDeviceCount",
    "mcHostAlloc": "cudaHostAlloc",
    "mcMallocHostDefault": "cudaHostAllocDefault",
    "mcMallocHostMapped": "cudaHostAllocMapped",
    "mcMallocHostPortable": "cudaHostAllocPortable",
    "mcDeviceAttribute_t": "cudaDeviceAttr",
    "mcDeviceAttributeMultiProcessorCount": "cudaDevAttrMultiProcessorCount",
    "mcDeviceAttributeWarpSize": "cudaDevAttrWarpSize",
    "mcDeviceAttributeMaxThreadsPerBlock": "cudaDevAttrMaxThreadsPerBlock",
    "mcDeviceAttributeMaxSharedMemoryPerBlock": "cudaDevAttrMaxSharedMemoryPerBlock",
    "mcDeviceAttributeMaxSharedMemoryPerBlockOptin": "cudaDevAttrMaxSharedMemoryPerBlockOptin",
    "mcDeviceAttributeL2CacheSize": "cudaDevAttrL2CacheSize",
    "mcDeviceAttributeComputeCapabilityMajor": "cudaDevAttrComputeCapabilityMajor",
    "mcDeviceAttributeComputeCapabilityMinor": "cudaDevAttrComputeCapabilityMinor",
    "mcDeviceAttributeClockRate": "cudaDevAttrClockRate",
    "__maca_bfloat16": "__nv_bfloat16",
    "__maca_bfloat162": "__nv_bfloat162",
    "maca_bfloat16": "__nv_bfloat16",
    "maca_bfloat162": "__nv_bfloat162",
    "macaDataType_t": "cudaDataType_t",
    "MACA_R_32F": "CUDA_R_32F",
    "MACA_R_16F": "CUDA_R_16F",
    "MACA_R_16BF": "CUDA_R_16BF",
}

WRITTEN = (
    "mcDeviceProp_t", "mcGetDeviceProperties", "mcDeviceGetAttribute", "mcFuncSetAttribute",
    "mcLaunchKernelGGL", "__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync",
    "__ballot_sync", "__any_sync", "__all_sync", "__syncwarp", "warpSize",
)  # fmt: skip
"""What is more than another name: waves of 64, and the limits of a MetaX device."""

ABSENT = {
    "__activemask": "which lanes of the other half run cannot be known without waiting for them",
    "__match_any_sync, __match_all_sync, __reduce_*_sync": "no public MACA source uses them",
    "maca_cooperative_groups.h": "groups would need a part of this for every shape of theirs",
    "mcrtc*, mcModule*, mcCtx*, MCdevice, mcDeviceptr_t": "candidates are built by the judge",
    "mcblas*, mcblasLt*, mcdnn*, mcfft*, mcsparse*, mcrand*, mcsolver*, mccl*":
        "libraries: a candidate's kernels are its own",
    "__builtin_mxc_*": "instructions of the device itself: matrix products, asynchronous copies",
    "__maca_fp8_e4m3": "no candidate needed it so far",
    "mcStreamAttribute*, mcMemPoolSetAttribute, mcMemAdvise": "not in the sources looked at",
}  # fmt: skip


def header() -> str:
    """The text of ``kernelsmith_names.h``."""
    lines = [
        "// Made by `python -m kernelsmith.evaluate.maca.names`: MACA's names for CUDA's.",
        "#pragma once",
        *(f"#define mc{name} cuda{name}" for name in RULE),
        *(f"#define {name} {cuda}" for name, cuda in EXCEPTIONS.items()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    target = Path(__file__).parent / "include" / "kernelsmith_names.h"
    target.write_text(header())
    sys.exit(0)
