"""CUDA C++ kernels."""

from kernelsmith.propose.knowledge.notes import Notes

NOTES = Notes(
    language=(
        "Write the kernels in CUDA C++ inside the Python file and build them with "
        "torch.utils.cpp_extension.load_inline; launch on the current stream, check sizes on the "
        "host, and skip launches for empty tensors."
    ),
    tips=(
        "Coalesce: a warp reads one contiguous, aligned stretch; float4 loads where alignment is "
        "known.",
        "Reduce with warp shuffles first, shared memory second, atomics last.",
        "Keep 8 or more independent loads in flight per thread before the first use.",
        "Pad or swizzle shared-memory tiles so that a warp's accesses fall into different banks.",
        "Choose blocks of 128 to 512 threads; look at registers and spills in the kernels table.",
        "Matrix products belong on tensor cores (mma or wmma), with asynchronous copies in two or "
        "more stages and a fused epilogue.",
    ),
    hopper=(
        "On this GPU, TMA copies with mbarriers, warp-group mma and thread-block clusters are "
        "there; they pay off for large tiles only.",
    ),
)
