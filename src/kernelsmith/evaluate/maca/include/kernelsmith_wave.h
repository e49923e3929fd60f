// Waves of 64 lanes on hardware that has 32: two warps that wait for each other.
//
// A wave is 64 threads in a row of a block; its lower and its upper half are one warp each. Lanes of
// one half talk as the hardware lets them. What crosses the halves goes through a slot per lane in
// shared memory: all write, both halves meet, all read, both halves meet. To meet, one lane of each
// half arrives at a barrier of the wave's own and waits for the other's. A mask that names lanes
// which never come (they took another branch, or have returned) is a mistake on any device; here
// the kernel is stopped after some seconds instead of hanging.
#pragma once
#ifdef __CUDACC__

struct kernelsmith_wave {
    unsigned long long barrier;
    unsigned long long slot[64];
};

__device__ __forceinline__ kernelsmith_wave* kernelsmith_waves()
{
    __shared__ kernelsmith_wave waves[16];
    return waves;
}

__device__ __forceinline__ unsigned kernelsmith_thread()
{
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

__device__ __forceinline__ unsigned kernelsmith_threads()
{
    return blockDim.x * blockDim.y * blockDim.z;
}

__device__ __forceinline__ int kernelsmith_lane() { return kernelsmith_thread() & 63; }

__device__ __forceinline__ kernelsmith_wave& kernelsmith_mine()
{
    return kernelsmith_waves()[kernelsmith_thread() >> 6];
}

__device__ __forceinline__ unsigned kernelsmith_address(const void* pointer)
{
    return (unsigned)__cvta_generic_to_shared(pointer);
}

// The first statement of every kernel that talks across lanes; put there by the judge's builder.
__device__ __forceinline__ void kernelsmith_wave_begin()
{
    unsigned thread = kernelsmith_thread();
    if (thread < 16)
        asm volatile("mbarrier.init.shared.b64 [%0], 2;"
                     :: "r"(kernelsmith_address(&kernelsmith_waves()[thread].barrier)) : "memory");
    __syncthreads();
}

__device__ __forceinline__ unsigned kernelsmith_half(unsigned long long mask)
{
    return (kernelsmith_thread() & 32) ? (unsigned)(mask >> 32) : (unsigned)mask;
}

__device__ __forceinline__ bool kernelsmith_both(unsigned long long mask)
{
    bool there = ((kernelsmith_thread() & ~63u) + 32) < kernelsmith_threads();
    return there && (unsigned)mask != 0 && (unsigned)(mask >> 32) != 0;
}

__device__ __forceinline__ void kernelsmith_arrive_and_wait(kernelsmith_wave& wave)
{
    unsigned barrier = kernelsmith_address(&wave.barrier), met = 0;
    unsigned long long token;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(barrier) : "memory");
    long long begun = clock64();
    while (!met) {
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(met) : "r"(barrier), "l"(token) : "memory");
        if (clock64() - begun > 6000000000ll) __trap();
    }
}

__device__ __forceinline__ void kernelsmith_meet(unsigned long long mask)
{
    unsigned mine = kernelsmith_half(mask);
    unsigned here = __ballot_sync(mine, 1);
    if (kernelsmith_both(mask) && (int)(kernelsmith_thread() & 31) == __ffs(here) - 1)
        kernelsmith_arrive_and_wait(kernelsmith_mine());
    __syncwarp(mine);
}

template <class T>
__device__ __forceinline__ T kernelsmith_exchange(unsigned long long mask, T value, int source)
{
    static_assert(sizeof(T) <= 8, "a lane exchanges 8 bytes at most");
    volatile unsigned long long* slots = kernelsmith_mine().slot;
    unsigned long long raw = 0;
    memcpy(&raw, &value, sizeof(T));
    slots[kernelsmith_lane()] = raw;
    kernelsmith_meet(mask);
    raw = slots[source & 63];
    kernelsmith_meet(mask);
    memcpy(&value, &raw, sizeof(T));
    return value;
}

template <class T>
__device__ __forceinline__ T kernelsmith_shfl(unsigned long long mask, T value, int source, int width = 64)
{
    int base = kernelsmith_lane() & ~(width - 1);
    return kernelsmith_exchange(mask, value, base + (source & (width - 1)));
}

template <class T>
__device__ __forceinline__ T kernelsmith_shfl_up(unsigned long long mask, T value, unsigned delta, int width = 64)
{
    int lane = kernelsmith_lane(), source = lane - (int)delta;
    return kernelsmith_exchange(mask, value, source < (lane & ~(width - 1)) ? lane : source);
}

template <class T>
__device__ __forceinline__ T kernelsmith_shfl_down(unsigned long long mask, T value, unsigned delta, int width = 64)
{
    int lane = kernelsmith_lane(), source = lane + (int)delta;
    return kernelsmith_exchange(mask, value, source >= (lane & ~(width - 1)) + width ? lane : source);
}

template <class T>
__device__ __forceinline__ T kernelsmith_shfl_xor(unsigned long long mask, T value, int bits, int width = 64)
{
    int lane = kernelsmith_lane(), source = lane ^ bits;
    return kernelsmith_exchange(mask, value, source >= (lane & ~(width - 1)) + width ? lane : source);
}

__device__ __forceinline__ unsigned long long kernelsmith_ballot(unsigned long long mask, int yes)
{
    unsigned mine = kernelsmith_half(mask), here = __ballot_sync(mine, 1);
    unsigned half = __ballot_sync(mine, yes);
    bool upper = kernelsmith_thread() & 32;
    if (!kernelsmith_both(mask)) return upper ? (unsigned long long)half << 32 : half;
    volatile unsigned long long* slots = kernelsmith_mine().slot;
    if ((int)(kernelsmith_thread() & 31) == __ffs(here) - 1) slots[upper] = half;
    kernelsmith_meet(mask);
    unsigned long long found = slots[0] | slots[1] << 32;
    kernelsmith_meet(mask);
    return found;
}

#define __shfl_sync(...) kernelsmith_shfl(__VA_ARGS__)
#define __shfl_up_sync(...) kernelsmith_shfl_up(__VA_ARGS__)
#define __shfl_down_sync(...) kernelsmith_shfl_down(__VA_ARGS__)
#define __shfl_xor_sync(...) kernelsmith_shfl_xor(__VA_ARGS__)
#define __ballot_sync(...) kernelsmith_ballot(__VA_ARGS__)
#define __any_sync(mask, yes) (kernelsmith_ballot(mask, yes) != 0)
#define __all_sync(mask, yes) (kernelsmith_ballot(mask, !(yes)) == 0)
#define __syncwarp(...) kernelsmith_meet(kernelsmith_all(__VA_ARGS__))

__device__ __forceinline__ unsigned long long kernelsmith_all(unsigned long long mask = ~0ull)
{
    return mask;
}
#endif
