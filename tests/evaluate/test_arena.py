"""Shared memory between the judge and one process: what goes in, and what is noticed."""

import os

import numpy as np
import pytest

from kernelsmith.evaluate.arena import Arena
from kernelsmith.evaluate.tensors import Spec, Tensor
from kernelsmith.evaluate.values import InputSet, Leaf


def a_set(*arrays):
    leaves = []
    for array in arrays:
        steps = tuple(step // array.itemsize for step in array.strides)
        spec = Spec(dtype=str(array.dtype), shape=array.shape, strides=steps)
        leaves.append(Leaf(spec, bytearray(array.tobytes())))
    paths = tuple(f"input[{i}]" for i in range(len(leaves)))
    return InputSet(id=0, tree=[], keywords=False, leaves=tuple(leaves), paths=paths)


def specs(inputs):
    return [leaf.spec for leaf in inputs.leaves]


@pytest.fixture
def inputs():
    return a_set(np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(4, dtype=np.int64))


def test_what_was_written_is_read_back(inputs):
    with Arena([specs(inputs), specs(inputs)]) as arena:
        arena.write(1, inputs)
        assert arena.read(1, 0) == inputs.leaves[0].raw
        assert arena.changed(1, inputs) == []


def test_a_change_behind_the_judges_back_is_noticed(inputs):
    with Arena([specs(inputs)]) as arena:
        arena.write(0, inputs)
        offset = arena.layout[0][1]["offset"]
        os.pwrite(arena.fd, b"\x07", offset)
        assert arena.changed(0, inputs) == [1]
        assert arena.guards_intact()


@pytest.mark.parametrize("where", ["before", "after"])
def test_writing_next_to_a_tensor_is_noticed(inputs, where):
    with Arena([specs(inputs)]) as arena:
        arena.write(0, inputs)
        leaf = arena.layout[0][0]
        at = leaf["offset"] - 1 if where == "before" else leaf["offset"] + leaf["span"]
        os.pwrite(arena.fd, b"\x00", at)
        assert not arena.guards_intact()
        assert arena.changed(0, inputs) == []


def test_nobody_can_shrink_the_memory_under_the_judge(inputs):
    with Arena([specs(inputs)]) as arena, pytest.raises(PermissionError):
        os.ftruncate(arena.fd, 0)


def test_an_offset_is_traced_to_its_slot_and_leaf(inputs):
    with Arena([specs(inputs), specs(inputs)]) as arena:
        leaf = arena.layout[1][1]
        assert arena.locate(leaf["offset"] + 8) == (1, 1)
        assert arena.locate(leaf["offset"] + leaf["span"]) is None


def test_empty_tensors_take_no_room_and_do_no_harm():
    with Arena.of_tensors([Tensor("float32", np.empty((0, 4), np.float32))]) as arena:
        assert arena.layout[0][0]["span"] == 0
        assert arena.guards_intact()
