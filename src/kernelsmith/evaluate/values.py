"""What the judge and its processes hand each other, as the judge holds it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernelsmith.evaluate.checks.answer import Answer
from kernelsmith.evaluate.cuda.answer import DeviceAnswer, Placed
from kernelsmith.evaluate.tensors import Spec, Tensor, from_bytes

Expected = Answer | DeviceAnswer
"""What is right: values that the judge holds, or a ruler on the device."""
Found = Tensor | Placed
"""What a program made: values that the judge read, or where they lie on the device."""

Tree = object
"""Nested containers as JSON, tensors replaced by leaf numbers (see ``worker/trees.py``)."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """One tensor's bytes as they lay in the process that made it."""

    spec: Spec
    raw: bytearray

    @property
    def tensor(self) -> Tensor:
        """The values."""
        return from_bytes(self.raw, self.spec)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputSet:
    """The arguments of one launch."""

    id: int
    tree: Tree
    keywords: bool
    leaves: tuple[Leaf, ...]
    paths: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(leaf.spec.span_bytes for leaf in self.leaves)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """A module's parameters and persistent buffers, by state-dict key."""

    keys: tuple[str, ...]
    leaves: tuple[Leaf, ...]

    def shapes(self) -> Mapping[str, tuple[str, tuple[int, ...]]]:
        """Dtype and shape by key."""
        both = zip(self.keys, self.leaves, strict=True)
        return {key: (leaf.spec.dtype, leaf.spec.shape) for key, leaf in both}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setup:
    """What a side needs to construct its module for one workload."""

    init: Tree
    keywords: bool
    leaves: tuple[Leaf, ...]
    state: State
    seed: int
    """Construction runs under this seed on both sides."""
    dtype: str | None
    training: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """Everything the reference says about one input set."""

    tree: Tree
    outputs: tuple[Expected, ...]
    aliases: tuple[int | None, ...]
    """For each output, the input leaf whose memory the reference hands back, if any."""
    mutated: tuple[tuple[int, Expected], ...]
    """Inputs that the reference changes in place, by leaf number."""
    buffers: tuple[tuple[str, Expected], ...]
    """Buffers that the reference changes, by state-dict key."""
    exact: bool
    """Whether float64 could be had."""
    kept: tuple[bool, ...] = ()
    """For each output, whether the reference hands out memory that it keeps; empty: none is."""

    @property
    def is_finite(self) -> bool:
        """Whether eager stays finite; a range that breaks the reference tests nobody."""
        return all(_is_finite(answer) for answer in self.outputs if answer.eager.is_float)

    @property
    def nbytes(self) -> int:
        """Bytes of all outputs, as eager returns them."""
        return sum(
            each.eager.values.nbytes if isinstance(each, Answer) else each.eager.span_bytes
            for each in self.outputs
        )


def _is_finite(answer: Expected) -> bool:
    if isinstance(answer, Answer):
        return bool(np.isfinite(answer.eager.float64()).all())
    return answer.is_finite


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Launches:
    """What a side says about one batch: where the outputs lie, and what the judge's clock said."""

    elapsed_us: float
    """From the moment the side could first see its inputs to the moment it named its outputs."""
    waited_us: float
    """How long its threads waited for a core that something else was using."""
    tree: Tree
    specs: tuple[Spec | str, ...]
    """Of the first launch's outputs; a text says why one is no plain tensor."""
    addresses: tuple[tuple[int, ...], ...]
    """Of every output of every launch."""
    event_us: float = 0.0
    """On a device: what events in its process said; for resolution, never for trust."""
    faults: int = 0
    """Pages of memory that it touched for the first time: above a few, it is not warm yet."""
