"""Makes the cache that every candidate starts from: Triton's own helpers, compiled once."""

import base64
import os
import socket

import torch

from kernelsmith.evaluate.sandbox.channel import receive, send
from kernelsmith.evaluate.worker.cuda import cached
from kernelsmith.evaluate.worker.program import execute

_SOURCE = """
import torch
import triton
import triton.language as tl


@triton.jit
def add_one(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


def run():
    x = torch.zeros(1024, device="cuda")
    y = torch.empty_like(x)
    add_one[(1,)](x, y, 1024, BLOCK=1024)
    return y
"""


def serve(control: socket.socket, fds: list[int]) -> None:
    """Compile a kernel of ours, and hand over what that left in the cache."""
    del fds
    receive(control)
    place = cached.folder()
    os.environ["TRITON_CACHE_DIR"] = str(place)
    execute(_SOURCE).run()
    torch.cuda.synchronize()
    files = {
        str(path.relative_to(place)): base64.b64encode(path.read_bytes()).decode()
        for path in place.rglob("*")
        # Kernels themselves are a candidate's; their launchers and the driver's helpers are not.
        if path.is_file() and path.suffix == ".so"
    }
    send(control, {"files": files})
