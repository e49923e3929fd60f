"""Kernels for MetaX GPUs in MACA C++."""

from kernelsmith.propose.knowledge.notes import Notes

NOTES = Notes(
    language=(
        "Write the kernels in MACA C++ (CUDA's syntax and runtime names, built by mxcc) inside the "
        "Python file, build them with torch.utils.cpp_extension.load_inline, and launch on the "
        "current stream."
    ),
    tips=(
        "A warp holds 64 threads: shuffles, ballots (64-bit masks) and reductions are written for "
        "64, and blocks are multiples of 64.",
        "Never write 32 for the warp size or 0xffffffff for a mask: code from CUDA that does is "
        "wrong here, not just slow.",
        "Coalesce: neighbouring threads read neighbouring addresses, 16 bytes each where aligned.",
        "Reduce with shuffles first, shared memory second, atomics last.",
    ),
)
