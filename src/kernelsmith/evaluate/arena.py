"""Shared memory that carries inputs to one process, with guard bands, and holds nothing else."""

import fcntl
import mmap
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import numpy as np

from kernelsmith.evaluate.tensors import CARRIERS, Spec, Tensor
from kernelsmith.evaluate.values import InputSet, Leaf

_ALIGN = 64
_GUARD = 256
"""Bytes before and after each tensor. Reading there gives NaN, writing there is noticed."""
_POISON = 0xFF


class Arena:
    """One sealed memory file, laid out for a number of slots of the same form."""

    def __init__(self, slots: Sequence[Sequence[Spec]], name: str = "inputs") -> None:
        offset = _GUARD
        self._places: list[list[tuple[int, Spec]]] = []
        for specs in slots:
            places = []
            for spec in specs:
                places.append((offset, spec))
                end = offset + max(spec.span_bytes, 1)
                offset = -(-end // _ALIGN) * _ALIGN + _GUARD
            self._places.append(places)
        self.nbytes = max(offset, mmap.PAGESIZE)
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.nbytes)
        # Whoever maps it could otherwise shrink it under the judge's feet.
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals)
        self._map = mmap.mmap(self.fd, self.nbytes)
        self._bytes = np.frombuffer(self._map, np.uint8)
        self._bytes[:] = _POISON

    @classmethod
    def of_leaves(cls, leaves: Sequence[Leaf]) -> Self:
        """Carry one group of tensors, such as weights."""
        arena = cls([[leaf.spec for leaf in leaves]], name="weights")
        for (offset, spec), leaf in zip(arena._places[0], leaves, strict=True):
            arena._put(offset, spec, leaf.raw)
        return arena

    @classmethod
    def of_tensors(cls, tensors: Sequence[Tensor]) -> Self:
        """Carry values that the judge holds, laid out contiguously."""
        leaves = []
        for tensor in tensors:
            values = np.ascontiguousarray(tensor.values)
            steps = tuple(step // values.itemsize for step in values.strides)
            spec = Spec(dtype=tensor.dtype, shape=tensor.shape, strides=steps)
            leaves.append(Leaf(spec, bytearray(values.tobytes())))
        return cls.of_leaves(leaves)

    @property
    def layout(self) -> list[list[dict[str, object]]]:
        """Where each slot's tensors lie, for the process that maps the file."""
        return [
            [
                {
                    "dtype": spec.dtype,
                    "shape": list(spec.shape),
                    "strides": list(spec.strides),
                    "offset": offset,
                    "span": spec.span_bytes,
                }
                for offset, spec in places
            ]
            for places in self._places
        ]

    def write(self, slot: int, inputs: InputSet) -> None:
        """Fill one slot; the addresses that the other side knows stay the same."""
        for (offset, spec), leaf in zip(self._places[slot], inputs.leaves, strict=True):
            self._put(offset, spec, leaf.raw)

    def read(self, slot: int, leaf: int) -> bytearray:
        """What a slot's tensor holds now."""
        offset, spec = self._places[slot][leaf]
        return bytearray(self._map[offset : offset + spec.span_bytes])

    def changed(self, slot: int, inputs: InputSet) -> list[int]:
        """Leaf numbers whose bytes are no longer what the judge wrote."""
        found = []
        for index, ((offset, spec), leaf) in enumerate(
            zip(self._places[slot], inputs.leaves, strict=True)
        ):
            now = self._bytes[offset : offset + spec.span_bytes]
            if not np.array_equal(now, np.frombuffer(leaf.raw, np.uint8)):
                found.append(index)
        return found

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Slot and leaf that an offset in the file lies in, if it lies in one."""
        for slot, places in enumerate(self._places):
            for leaf, (start, spec) in enumerate(places):
                if start <= offset < start + spec.span_bytes:
                    return slot, leaf
        return None

    def guards_intact(self) -> bool:
        """Whether nobody wrote between the tensors."""
        position = 0
        for places in self._places:
            for offset, spec in places:
                if not (self._bytes[position:offset] == _POISON).all():
                    return False
                position = offset + spec.span_bytes
        return bool((self._bytes[position:] == _POISON).all())

    def close(self) -> None:
        """Give the memory back; a process that still maps it keeps its own view."""
        del self._bytes
        self._map.close()
        os.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _put(self, offset: int, spec: Spec, raw: bytearray) -> None:
        if spec.span_bytes:
            self._bytes[offset : offset + spec.span_bytes] = np.frombuffer(raw, np.uint8)


def poison(dtype: str, count: int) -> bytes:
    """Bytes that stand for memory nobody wrote: NaN for floats, the lowest value for integers."""
    carrier = CARRIERS[dtype]
    return bytes([_POISON]) * (count * carrier.itemsize)
