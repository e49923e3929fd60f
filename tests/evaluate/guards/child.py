"""A candidate's process for the sampler tests: `child.py MODE FD` works on until it is killed."""

import ctypes
import mmap
import os
import sys
import time

mode, library = sys.argv[1], f"/proc/self/fd/{sys.argv[2]}"


def load(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path)


def ready() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


if mode in ("matmul", "half", "tiny"):
    import torch

    torch.set_num_threads(1)
    x = torch.ones(256, 256)

if mode == "impostor":
    copy = os.memfd_create("kernel")
    with open(library, "rb") as original:
        os.write(copy, original.read())
    library = f"/proc/self/fd/{copy}"

if mode == "late":
    ready()
    kernel = load(library)
else:
    kernel = load(library)
    if mode == "overwritten":
        page = ctypes.cast(kernel.work, ctypes.c_void_p).value & -mmap.PAGESIZE
        libc = ctypes.CDLL(None)
        span = ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE)
        assert libc.mprotect(*span, 7) == 0
        ctypes.memmove(page, ctypes.string_at(page, 64), 64)
        assert libc.mprotect(*span, 5) == 0
    ready()

count = ctypes.c_long(20_000)
while True:
    if mode == "matmul":
        x @ x
    elif mode == "half":
        until = time.perf_counter() + 0.002
        while time.perf_counter() < until:
            kernel.work(count)
        until = time.perf_counter() + 0.002
        while time.perf_counter() < until:
            x @ x
    elif mode == "tiny":
        out = torch.empty(16)
        kernel.fill(ctypes.c_void_p(out.data_ptr()), ctypes.c_long(16))
    elif mode == "openmp":
        kernel.work_openmp(count)
    elif mode == "thread":
        kernel.work_thread(count)
    else:
        kernel.work(count)
