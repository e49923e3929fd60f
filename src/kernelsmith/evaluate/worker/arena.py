"""Tensors laid over shared memory that the judge wrote."""

import mmap
import os

import torch


class Arena:
    """One mapping of one shared file; it holds inputs (or weights) and nothing else."""

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, os.fstat(fd).st_size)
        os.close(fd)
        self._bytes = torch.frombuffer(self._memory, dtype=torch.uint8)

    def tensor(self, leaf: dict[str, object]) -> torch.Tensor:
        """Return the tensor that the judge laid out at ``offset``; it shares the memory."""
        dtype = getattr(torch, str(leaf["dtype"]))
        offset, span = int(str(leaf["offset"])), int(str(leaf["span"]))
        shape, strides = leaf["shape"], leaf["strides"]
        assert isinstance(shape, list)
        assert isinstance(strides, list)
        if span == 0:
            return torch.empty(shape, dtype=dtype)
        flat = self._bytes[offset : offset + span].view(dtype)
        return flat.as_strided(shape, strides)
