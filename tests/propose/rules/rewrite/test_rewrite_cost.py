"""What the cost model prefers, and how tasks are made small."""

import ast

import pytest

from kernelsmith.domain.task import Task, Workload
from kernelsmith.propose.rules.chip import Chip
from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.cost import Peaks, cost_us, peaks_of
from kernelsmith.propose.rules.rewrite.graph import NONE, Arena
from kernelsmith.propose.rules.rewrite.search import replay, search
from kernelsmith.propose.rules.rewrite.shrink import Recipe, shrunk

H200 = Peaks()


def a_linear(rows, features, out):
    b = Build(Arena())
    x = b.input("x", (rows, features), "float32")
    w = b.weight("self.w", (out, features), "float32")
    return b, b.linear(x, w, b.weight("self.b", (out,), "float32"))


def test_elementwise_work_behind_a_product_is_one_launch():
    b, y = a_linear(1024, 1024, 1024)
    one = b.unary("relu", y)
    two = b.unary("square", b.binary("add", one, b.number(1.0)))
    alone, short, long = (cost_us(b.arena, (each,), H200) for each in (y, one, two))
    assert short - alone > H200.launch_us
    assert long - short < 1


def test_a_scale_is_folded_into_weights_only_where_they_are_small():
    best = {}
    for rows in (64, 65536):
        b, y = a_linear(rows, 4096, 4096)
        y = b.binary("mul", y, b.weight("self.s", (4096,), "float32"))
        found = search(b.arena, (y,), H200)
        written = cost_us(b.arena, (y,), H200)
        best[rows] = bool(found) and found[0].cost_us < written
    assert best == {64: False, 65536: True}


def test_a_chain_of_products_is_multiplied_from_its_thin_end():
    b = Build(Arena())
    a, c = (b.input(name, (2048, 2048), "float32") for name in "ac")
    v = b.input("v", (2048, 1), "float32")
    y = b.matmul(b.matmul(a, c), v)
    (best, *_) = search(b.arena, (y,), H200)
    assert best.names == ("reassociate",)
    assert best.cost_us < cost_us(b.arena, (y,), H200) / 10


def test_what_was_found_for_one_size_is_found_again_for_another():
    graphs = []
    for space in (64, 16):
        b = Build(Arena())
        x = b.input("x", (8, 4, space, space), "float32")
        w = b.weight("self.w", (16, 4, 3, 3), "float32")
        y = b.conv(x, w, NONE, stride=(1, 1), padding=(1, 1), dilation=(1, 1))
        graphs.append((b.arena, b.reduce("mean", b.binary("mul", y, b.number(2)), (2, 3),
                                         keep=False)))  # fmt: skip
    (large, root), (small, other) = graphs
    found = search(large, (root,), Peaks(launch_us=0))[0]
    again = replay(small, (other,), found, H200)
    assert again is not None
    assert set(again.names) == set(found.names)
    assert not any(small[n].op == "conv" for n in small.reachable(again.roots))


def test_float32_products_count_as_what_our_own_reach():
    own = peaks_of(Chip())
    b, y = a_linear(4096, 4096, 4096)
    assert cost_us(b.arena, (y,), own) < 0.4 * cost_us(b.arena, (y,), H200)
    b, y = a_linear(4096, 4096, 16)  # left to the library
    assert cost_us(b.arena, (y,), own) == pytest.approx(cost_us(b.arena, (y,), H200), abs=3)


def test_products_beside_a_convolution_in_tf32_are_not_split_into_planes():
    own = peaks_of(Chip())
    b, y = a_linear(4096, 4096, 4096)
    x, w = b.input("c", (1, 8, 4, 4), "float32"), b.weight("self.c", (8, 8, 1, 1), "float32")
    conv = b.conv(x, w, NONE, stride=(1, 1), padding=(0, 0), dilation=(1, 1))
    assert cost_us(b.arena, (y, conv), own) > 2 * cost_us(b.arena, (y,), own)


def test_of_a_product_whose_triangle_is_kept_half_is_multiplied():
    own = peaks_of(Chip())
    b = Build(Arena())
    y = b.matmul(*(b.input(name, (4096, 4096), "float32") for name in "ac"))
    lower, upper = b.tril(y), b.tril(y, upper=True)
    whole, half, both = (cost_us(b.arena, each, own) for each in ((y,), (lower,), (lower, upper)))
    assert half < 0.65 * whole
    assert both > whole


SOURCE = """
batch, features = 1024, 4096
kernel = 3


class Model:
    def __init__(self, features):
        self.hidden = 512


def get_inputs(rows=2048):
    return [torch.rand(batch, features, 8)]


def get_init_inputs():
    return [features]
"""


def test_a_smaller_task_has_smaller_sizes_and_the_same_small_numbers():
    task = Task(name="t", source=SOURCE, workloads=(Workload(arguments=(("rows", 640),)),))
    small, workload = shrunk(task, task.workloads[0], Recipe(by=16, floor=8))
    ast.parse(small.source)
    assert "(64, 256)" in small.source
    assert "kernel = 3" in small.source
    assert "512" in small.source
    assert "rows=128" in small.source
    assert workload.arguments == (("rows", 40),)
    inside, _ = shrunk(task, task.workloads[0], Recipe(by=16, floor=8, inside=True))
    assert "self.hidden = 32" in inside.source
