// What a MetaX C500 says of itself and what it refuses, on a device that could do more.
#pragma once
enum { kernelsmith_wave_size = 64, kernelsmith_shared_bytes = 64 * 1024 };

struct mcDeviceProp_t : cudaDeviceProp {
    int waveSize;
    char mxArchName[32];
};

static inline cudaError_t mcGetDeviceProperties(mcDeviceProp_t* found, int device)
{
    cudaError_t status = cudaGetDeviceProperties(static_cast<cudaDeviceProp*>(found), device);
    found->warpSize = kernelsmith_wave_size;
    found->waveSize = kernelsmith_wave_size;
    found->sharedMemPerBlock = kernelsmith_shared_bytes;
    strcpy(found->mxArchName, "emulated");
    return status;
}

static inline cudaError_t mcDeviceGetAttribute(int* value, cudaDeviceAttr which, int device)
{
    cudaError_t status = cudaDeviceGetAttribute(value, which, device);
    if (which == cudaDevAttrWarpSize) *value = kernelsmith_wave_size;
    if (which == cudaDevAttrMaxSharedMemoryPerBlock || which == cudaDevAttrMaxSharedMemoryPerBlockOptin)
        *value = kernelsmith_shared_bytes;
    return status;
}

template <class Kernel>
static inline cudaError_t mcFuncSetAttribute(Kernel* kernel, cudaFuncAttribute which, int value)
{
    if (which == cudaFuncAttributeMaxDynamicSharedMemorySize && value > kernelsmith_shared_bytes)
        return cudaErrorInvalidValue;
    return cudaFuncSetAttribute((const void*)kernel, which, value);
}

#define mcLaunchKernelGGL(kernel, grid, block, shared, stream, ...) \
    kernel<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__)
