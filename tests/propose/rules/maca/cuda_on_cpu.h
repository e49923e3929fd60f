// Kernels on a processor, thread by thread: to see whether they are right, on any machine.
//
// Every thread of a block is a fibre; a barrier or a talk between lanes switches to the next one
// until all that take part have come. WAVE is 32 for CUDA and 64 for MACA.
#pragma once
#include <setjmp.h>
#include <ucontext.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>
using std::isinf;

struct dim3 { unsigned x, y, z; dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {} };
typedef void* cudaStream_t;
typedef void* mcStream_t;
#define __global__ static
#define __device__ static
#define __shared__ static
#define __launch_bounds__(...)
#define __restrict__
static const int warpSize = WAVE;
static dim3 gridDim, blockDim, blockIdx, threadIdx;

struct Fibre {
    ucontext_t context;
    jmp_buf place;
    std::vector<char> stack;
    dim3 index;
    bool begun, done;
};
static std::vector<Fibre> fibres;
static jmp_buf scheduler;
static size_t now;
static std::function<void()> body;

// Jumps and not swapcontext, which asks the system for its signal mask every time.
static void leave() {
    if (_setjmp(fibres[now].place) == 0) _longjmp(scheduler, 1);
    threadIdx = fibres[now].index;
}
static void enter() {
    body();
    fibres[now].done = true;
    _longjmp(scheduler, 1);
}

struct Barrier { unsigned come = 0, phase = 0; };
static Barrier block_barrier, wave_barriers[64];
static unsigned long long slots[64][64];

static void wait(Barrier& barrier, unsigned count) {
    unsigned phase = barrier.phase;
    if (++barrier.come == count) { barrier.come = 0; ++barrier.phase; }
    for (long tries = 0; barrier.phase == phase; ++tries) {
        if (tries > 1000000) { fprintf(stderr, "lanes that never come\n"); abort(); }
        leave();
    }
}

static void __syncthreads() { wait(block_barrier, blockDim.x); }
static unsigned wave() { return threadIdx.x / WAVE; }
static unsigned lane_id() { return threadIdx.x % WAVE; }
static unsigned lanes() { return std::min<unsigned>(WAVE, blockDim.x - wave() * WAVE); }

static void full(unsigned long long mask) {
    unsigned long long wanted = WAVE == 64 ? ~0ull : 0xffffffffull;
    if ((mask & wanted) != wanted) { fprintf(stderr, "a mask of some lanes\n"); abort(); }
}

template <class T> static T exchange(unsigned long long mask, T value, int source) {
    full(mask);
    unsigned w = wave();
    unsigned long long raw = 0;
    memcpy(&raw, &value, sizeof(T));
    slots[w][lane_id()] = raw;
    wait(wave_barriers[w], lanes());
    raw = slots[w][source];
    wait(wave_barriers[w], lanes());
    memcpy(&value, &raw, sizeof(T));
    return value;
}
template <class T> static T __shfl_xor_sync(unsigned long long m, T v, int bits) {
    return exchange(m, v, (lane_id() ^ bits) < WAVE ? lane_id() ^ bits : lane_id());
}
template <class T> static T __shfl_down_sync(unsigned long long m, T v, unsigned d) {
    return exchange(m, v, lane_id() + d < WAVE ? lane_id() + d : lane_id());
}
template <class T> static T __shfl_up_sync(unsigned long long m, T v, unsigned d) {
    return exchange(m, v, lane_id() >= d ? lane_id() - d : lane_id());
}
static unsigned long long __ballot_sync(unsigned long long mask, int yes) {
    full(mask);
    unsigned w = wave();
    slots[w][lane_id()] = yes != 0;
    wait(wave_barriers[w], lanes());
    unsigned long long found = 0;
    for (unsigned i = 0; i < lanes(); ++i) found |= slots[w][i] << i;
    wait(wave_barriers[w], lanes());
    return found;
}
static int __popc(unsigned v) { return __builtin_popcount(v); }
static int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
static float rsqrtf(float v) { return 1.0f / sqrtf(v); }

static void launched(dim3 grid, dim3 block, size_t, void*, std::function<void()> kernel) {
    gridDim = grid; blockDim = block; body = kernel;
    if (block.x > 1024) abort();
    fibres.resize(block.x);
    for (unsigned b = 0; b < grid.x; ++b) {
        blockIdx = dim3(b, 0, 0);
        for (unsigned t = 0; t < block.x; ++t) {
            Fibre& fibre = fibres[t];
            fibre.stack.resize(32768);
            fibre.index = dim3(t, 0, 0);
            fibre.begun = fibre.done = false;
            getcontext(&fibre.context);
            fibre.context.uc_stack.ss_sp = fibre.stack.data();
            fibre.context.uc_stack.ss_size = fibre.stack.size();
            fibre.context.uc_link = nullptr;
            makecontext(&fibre.context, enter, 0);
        }
        for (volatile bool left = true; left;) {
            left = false;
            for (now = 0; now < fibres.size(); ++now) {
                if (fibres[now].done) continue;
                threadIdx = fibres[now].index;
                if (_setjmp(scheduler) == 0) {
                    if (fibres[now].begun) _longjmp(fibres[now].place, 1);
                    fibres[now].begun = true;
                    setcontext(&fibres[now].context);
                }
                left = left || !fibres[now].done;
            }
        }
    }
}
