"""Device memory that two processes see, as tensors."""

import math
import random

import torch

from kernelsmith.evaluate.worker.cuda import driver

GUARD = 512
"""Bytes before and after each tensor: reading there gives NaN, writing there is noticed."""
_ALIGN = 512
_SCATTER = 16
POISON = 0xFF
_SMALL = 1 << 26
"""Bytes above which a launch of its own costs less than reading what is written over."""


class _Bytes:
    """What torch needs to lay a tensor over an address."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (count,), "typestr": "|u1", "data": (address, False), "version": 3,
        }  # fmt: skip


def bytes_at(address: int, count: int) -> torch.Tensor:
    """A tensor of bytes over device memory that someone else owns."""
    return torch.as_tensor(_Bytes(address, count), device="cuda")


def view(raw: torch.Tensor, leaf: dict[str, object], offset: int) -> torch.Tensor:
    """The tensor that ``leaf`` describes, laid over bytes from ``offset`` on."""
    dtype = getattr(torch, str(leaf["dtype"]))
    shape, strides = leaf["shape"], leaf["strides"]
    assert isinstance(shape, list)
    assert isinstance(strides, list)
    span = _span(shape, strides, dtype.itemsize)
    if span == 0:
        return torch.empty(shape, dtype=dtype, device=raw.device)
    if offset < 0 or offset + span > raw.numel():
        raise ValueError(f"bytes {offset} to {offset + span} of an allocation of {raw.numel()}")
    if offset % dtype.itemsize:
        raise ValueError(f"a {dtype} at the odd offset {offset}")
    return raw[offset : offset + span].view(dtype).as_strided(shape, strides)


def _span(shape: list[int], strides: list[int], itemsize: int) -> int:
    if 0 in shape:
        return 0
    if any(size < 0 for size in shape) or any(step < 0 for step in strides):
        raise ValueError(f"no tensor has shape {shape} and strides {strides}")
    return (sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1) * itemsize


def poison(tensors: list[torch.Tensor]) -> None:
    """Write over tensors what no kernel would: NaN, or the lowest number there is."""
    floats = [each for each in tensors if each.is_floating_point() and each.numel()]
    if small := [each for each in floats if each.nbytes <= _SMALL]:
        torch._foreach_mul_(small, math.nan)  # one launch for all
    for each in floats:
        if each.nbytes > _SMALL:
            each.fill_(math.nan)
    for each in tensors:
        if not each.is_floating_point() and each.dtype is not torch.bool:
            each.fill_(torch.iinfo(each.dtype).min if each.dtype.is_signed else POISON)


class Shared:
    """An allocation of our own, laid out for groups of tensors, that another process may map."""

    def __init__(self, groups: list[list[torch.Tensor]]) -> None:
        """Lay out room for tensors like these; ``write`` fills it."""
        offset = GUARD
        self.layout: list[list[dict[str, object]]] = []
        for tensors in groups:
            # No group lies where another's address would lead one to expect it.
            offset += _ALIGN * random.SystemRandom().randrange(_SCATTER)
            leaves: list[dict[str, object]] = []
            for tensor in tensors:
                leaves.append(_leaf(tensor, offset))
                end = offset + max(_span(list(tensor.shape), list(tensor.stride()),
                                         tensor.element_size()), 1)  # fmt: skip
                offset = -(-end // _ALIGN) * _ALIGN + GUARD
            self.layout.append(leaves)
        self.count = offset
        self.address, self.size = driver.allocate(self.count)
        self.raw = bytes_at(self.address, self.count)
        self.raw.fill_(POISON)
        self.views = [[self.tensor(leaf) for leaf in leaves] for leaves in self.layout]
        self.handle = driver.export(self.address)
        self._between = self._guards()

    def _guards(self) -> torch.Tensor:
        """Where the bytes next to each tensor lie."""
        places = [torch.arange(GUARD)]
        for leaf in (leaf for leaves in self.layout for leaf in leaves):
            end = int(str(leaf["offset"])) + int(str(leaf["span"]))
            places.append(torch.arange(end, min(end + GUARD, self.count)))
        return torch.cat(places).to(self.raw.device)

    def tensor(self, leaf: dict[str, object]) -> torch.Tensor:
        """The memory of one leaf."""
        return view(self.raw, leaf, int(str(leaf["offset"])))

    def write(self, group: int, tensors: list[torch.Tensor]) -> None:
        """Put values there; the addresses that others know stay the same."""
        for place, tensor in zip(self.views[group], tensors, strict=True):
            place.copy_(tensor)

    def guards_intact(self) -> bool:
        """Whether nobody wrote between the tensors."""
        return not bool((self.raw[self._between] != POISON).any())

    def close(self) -> None:
        """Give it back; a process that still maps it keeps its own view."""
        torch.cuda.synchronize()
        self.views.clear()
        driver.free(self.address)


def _leaf(tensor: torch.Tensor, offset: int) -> dict[str, object]:
    shape, strides = list(tensor.shape), list(tensor.stride())
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": shape,
        "strides": strides,
        "offset": offset,
        "span": _span(shape, strides, tensor.element_size()),
    }


class Mapped:
    """Another process's allocation, mapped here."""

    def __init__(self, handle: str) -> None:
        self.address, self.size = driver.open_exported(handle)
        self.raw = bytes_at(self.address, self.size)

    def tensor(self, leaf: dict[str, object], offset: int) -> torch.Tensor:
        """One tensor in it."""
        return view(self.raw, leaf, offset)

    def close(self) -> None:
        """Let go of it."""
        driver.close_exported(self.address)
