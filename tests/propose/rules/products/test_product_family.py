"""The family of products that is read from a task's source: what it takes, and that it is right.

Candidates run in Triton's interpreter beside float64, in shapes drawn at random.
"""

import dataclasses
import pickle
import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "kinds"))

from part_runner import error, runner
from rule_tasks import a_task

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task, Workload
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.guards.static import inspect_source
from kernelsmith.propose.rules.family import owned
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.products.replace import product_sites
from kernelsmith.propose.rules.products.standalone import product_family
from kernelsmith.propose.rules.products.written import written_products
from kernelsmith.testing import QUICK as JUDGED

PAIR = {"names": "x, y", "inputs": "torch.randn(70, 45), torch.randn(45, 66)"}
BATCHED = {"names": "x, y", "inputs": "torch.randn(3, 40, 33), torch.randn(3, 33, 48)"}
LINEAR = {"init": "self.fc = nn.Linear(48, 70)", "inputs": "torch.randn(2, 33, 48)"}
TASKS = {
    "matmul": (a_task("return torch.matmul(x, y)", **PAIR), (0, 70, 66, 45)),
    "at": (a_task("return x @ y", **PAIR), (0, 70, 66, 45)),
    "turned": (a_task("return x.T @ y.transpose(0, 1)", names="x, y",
                      inputs="torch.randn(45, 70), torch.randn(66, 45)"), (0, 70, 66, 45)),
    "bmm": (a_task("return torch.bmm(x, y)", **BATCHED), (3, 40, 48, 33)),
    "heads": (a_task("return x @ y.mT", names="x, y", inputs="torch.randn(2, 3, 40, 33), "
                     "torch.randn(2, 3, 48, 33)"), (6, 40, 48, 33)),
    "einsum": (a_task("return torch.einsum('bijl,lk->bijk', x, y)", names="x, y",
                      inputs="torch.randn(2, 3, 11, 40), torch.randn(40, 36)"), (0, 66, 36, 40)),
    "einsum_pairs": (a_task("return torch.einsum('bmk, bnk -> bmn', x, y)", names="x, y",
                            inputs="torch.randn(3, 40, 33), torch.randn(3, 48, 33)"),
                     (3, 40, 48, 33)),
    "lower": (a_task("return torch.tril(x @ y)", **PAIR), (0, 70, 66, 45)),
    "upper": (a_task("return torch.triu(x @ y, diagonal=-3) * 2", **BATCHED), (3, 40, 48, 33)),
    "symmetric": (a_task("return x @ y", names="x, y", inputs="(torch.rand(40, 40) + torch.rand("
                         "40, 40).T) / 2, torch.tril(torch.rand(40, 40))"), (0, 40, 40, 40)),
    "linear": (a_task("return self.fc(x)", **LINEAR), (0, 66, 70, 48)),
    "linear_gelu": (a_task("return F.gelu(self.fc(x))", **LINEAR), (0, 66, 70, 48)),
    "linear_mish": (a_task("return F.mish(self.fc(x)).clamp(max=2.0) * self.by", arguments=", by",
                           given="0.75", inputs=LINEAR["inputs"],
                           init=LINEAR["init"] + "\nself.by = by"), (0, 66, 70, 48)),
    "residual": (a_task("return F.relu(x @ y) + z", names="x, y, z",
                        inputs=PAIR["inputs"] + ", torch.randn(70, 1)"), (0, 70, 66, 45)),
    "addmm": (a_task("return torch.tanh(torch.addmm(z, x, y))", names="z, x, y",
                     inputs="torch.randn(66), " + PAIR["inputs"]), (0, 70, 66, 45)),
    "scaled": (a_task("return (x @ y) * s", names="x, y, s", inputs=PAIR["inputs"] + ", 3.5"),
               (0, 70, 66, 45)),
    "normed": (a_task("return F.silu(self.norm(self.fc(x)))", inputs="torch.randn(66, 48)",
                      init=LINEAR["init"] + "\nself.norm = nn.BatchNorm1d(70)"), (0, 66, 70, 48)),
    "bilinear": (a_task("return x @ self.w", inputs="torch.randn(66, 48)", arguments=", n",
                        given="70", init="self.w = nn.Parameter(torch.randn(48, n))"),
                 (0, 66, 70, 48)),
}  # fmt: skip
REFUSED = {
    "computed in between": a_task(
        "return self.point(self.each(x))", inputs="torch.randn(2, 8, 9, 9)",
        init="self.each = nn.Conv2d(8, 8, 3, groups=8)\nself.point = nn.Conv2d(8, 16, 1)",
    ),
    "rules find no product": a_task("return x * 2"),
    "one product at a time": a_task("return x @ y + y @ x", names="x, y",
                                    inputs="torch.randn(40, 40), torch.randn(40, 40)"),
    "products of inputs and weights": a_task("return F.relu(x) @ y", **PAIR),
    "reductions here": a_task("return (x @ y).sum(dim=-1)", **PAIR),
    "leave this product to the library": a_task("return x @ y", names="x, y",
                                                inputs="torch.randn(8, 9), torch.randn(9, 4)"),
    "cannot tell the value of `n": a_task("return x @ y", names="x, y",
                                          inputs="torch.randn(n(), 40), torch.randn(40, 40)"),
    "kept in": a_task("return x @ y", names="x, y", inputs="torch.randn(40, 40, dtype=torch.half),"
                      " torch.randn(40, 40, dtype=torch.half)"),
    "cannot tell the size of 'x'": a_task("return x @ y", names="x, y", inputs="torch.randn(40, 50)"
                                          ".transpose(0, 1), torch.randn(40, 40)"),
    "know products of matrices": a_task("return x @ y", names="x, y",
                                        inputs="torch.randn(40, 40), torch.randn(40)"),
    "'ij,jk->ki' as a product": a_task("return torch.einsum('ij,jk->ki', x, y)", **PAIR),
    "the sum 'ii,ij->ij'": a_task("return torch.einsum('ii,ij->ij', x, y)", **PAIR),
    "not the other way round": a_task("return x @ y + z", names="x, y, z", inputs=PAIR["inputs"]
                                      + ", torch.randn(2, 70, 66)"),
    "with running statistics": dataclasses.replace(TASKS["normed"][0], training=True),
    "must know `self.by`": a_task("return x @ y * self.by", init="self.by = max(1, 2)", **PAIR),
}  # fmt: skip


@pytest.fixture(scope="module")
def pool():
    pytest.importorskip("triton")
    with runner() as found:
        yield found


def check(pool, task, chosen, **more):
    found = product_family(task)
    source = found.source(found.space.defaults | chosen)
    off, eager = pool.submit(error, source, task.source, **more).result()
    assert off <= max(2e-6, 4 * eager), f"{off} with eager at {eager}\n{source}"


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_read_as_one_product_with_all_that_follows_in_it(name):
    task, (batch, m, n, k) = TASKS[name]
    (one,) = written_products(task)
    (site,) = product_sites(one.call)
    product = site.found.product
    assert (product.batch, product.m, product.n, product.k) == (batch or 1, m, n, k)
    assert (site.epilogue is not None) is bool(one.call.kernels)


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_no_such_product_is_refused_with_a_reason(why):
    with pytest.raises(NotRecognised, match=why.replace("(", r"\(")):
        product_family(REFUSED[why])


@pytest.mark.parametrize("name", TASKS)
def test_the_first_seed_is_right(pool, name):
    check(pool, TASKS[name][0], {})


CONVOLUTIONS = {
    "line": a_task("return F.gelu(self.conv(x)) + z", init="self.conv = nn.Conv1d(33, 70, 1)",
                   names="x, z", inputs="torch.randn(2, 33, 150), torch.randn(70, 1)"),
    "plane": a_task("return self.conv(x)", inputs="torch.randn(2, 48, 9, 17)",
                    init="self.conv = nn.Conv2d(48, 40, kernel_size=(1, 1), bias=False)"),
    "space": a_task("return torch.relu(self.conv(x))", inputs="torch.randn(1, 32, 3, 5, 7)",
                    init="self.conv = nn.Conv3d(32, 64, 1, stride=1, padding=0)"),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_of_one_point_is_a_product_in_what_eager_computes_it_in(pool, name):
    task = CONVOLUTIONS[name]
    found = product_family(task)
    source = found.source(found.space.defaults)
    assert "if torch.backends.cudnn.allow_tf32 == True:" in source
    assert "TF32, as the library's" in source
    off, _ = pool.submit(error, source, task.source).result()
    assert 2e-5 < off < 6e-4  # to the nearest TF32, which halves would not be
    check(pool, task, {"product": "tiles", "precision": "ieee"})


@pytest.mark.parametrize("layer", [
    "nn.Conv2d(48, 40, 3, padding=1)", "nn.Conv2d(48, 40, 1, stride=2)",
    "nn.Conv2d(48, 40, 1, padding=1)", "nn.Conv2d(48, 48, 1, groups=2)",
    "nn.Conv2d(48, 40, (1, 3))",
])  # fmt: skip
def test_other_convolutions_are_no_products(layer):
    with pytest.raises(NotRecognised, match="of one point"):
        product_family(a_task("return self.conv(x)", init=f"self.conv = {layer}",
                              inputs="torch.randn(2, 48, 9, 17)"))  # fmt: skip


@pytest.mark.parametrize("chosen", [
    {"product": "tiles", "precision": "ieee"}, {"product": "tiles", "precision": "tf32x3"},
    {"product": "planes", "product_tile": "64x64x64", "split_k": "2"}, {"product": "mixed"},
    {"product": "planes", "product_epilogue": "apart"},
])  # fmt: skip
def test_other_ways_are_right_too(pool, chosen):
    task = a_task("return torch.triu(F.gelu(self.fc(x)), 2) + z", names="x, z",
                  init="self.fc = nn.Linear(200, 70)",
                  inputs="torch.randn(2, 66, 200), torch.randn(66, 1)")  # fmt: skip
    check(pool, task, chosen)


def drawn(rng):
    """A product of some form, with something behind it, and a way to compute it."""
    m, n, k = (rng.randint(32, 90) for _ in range(3))
    batch = [rng.randint(1, 3) for _ in range(rng.randint(0, 2))]
    left, right = (k, m) if rng.random() < 0.3 else (m, k), (k, n)
    text = "x.mT" if left == (k, m) else "x"
    if batch or rng.random() < 0.5:
        right, other = ((n, k), "y.transpose(-2, -1)") if rng.random() < 0.5 else ((k, n), "y")
    else:
        other = "y"
    text = f"({text} @ {other})"
    shapes = [[*batch, *left], [*batch, *right]]
    names = "x, y"
    if rng.random() < 0.5:
        shape = rng.choice([[n], [m, 1], [1, n], [*batch, m, n], [1]])
        shapes.append(shape)
        names, text = "x, y, z", f"({text} + z)"
    around = ["torch.tril({}, -1)", "F.gelu({})", "torch.where({0} > 0, {0}, 0.1 * {0})",
              "F.softplus({}) * 2", "{}"]  # fmt: skip
    text = rng.choice(around).format(text)
    inputs = ", ".join(f"torch.randn({', '.join(map(str, each))})" for each in shapes)
    ways = [{"product": "planes"}, {"product": "tiles", "precision": "ieee"}, {"product": "mixed"},
            {"product": "planes", "product_tile": "64x64x64", "product_loads": "pointers"},
            {"product": "tiles", "precision": "ieee", "product_tile": "32x64x32"}]  # fmt: skip
    return a_task(f"return {text}", names=names, inputs=inputs), rng.choice(ways)


@pytest.mark.parametrize("seed", range(8))
def test_products_of_random_shapes_are_right(pool, seed):
    task, chosen = drawn(random.Random(f"product {seed}"))
    check(pool, task, chosen, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 60))
def test_more_products_of_random_shapes_are_right(pool, seed):
    task, chosen = drawn(random.Random(f"product {seed}"))
    check(pool, task, chosen, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear_gelu", "lower", "einsum", "scaled", "normed"])
def test_the_judge_lets_it_pass(name):
    settings = dataclasses.replace(JUDGED, robust=True, contention=1.0)
    task = TASKS[name][0]
    family = product_family(task)
    source = family.source(family.space.defaults | {"product": "planes"})
    with closing(LocalEvaluator("triton", settings)) as judge:
        found = judge.judge(task, Candidate(backend="triton", source=source))
    assert found.verdict is Verdict.PASSED, found.message
    assert "fragile" not in [label.name for label in found.labels], found.labels


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_multiplied_as_it_is(dtype):
    task = dataclasses.replace(TASKS["linear_gelu"][0], workloads=(Workload(dtype=dtype),))
    found = product_family(task)
    source = found.source(found.space.defaults)
    assert "input_precision" not in source
    assert f"torch.{dtype}" in source
    assert "precision" not in found.space.defaults


def test_every_workload_has_its_sizes_and_others_run_the_reference(pool):
    task = a_task("return F.relu(self.fc(x))", init="self.fc = nn.Linear(48, 70)",
                  inputs="torch.randn(rows, 48)")  # fmt: skip
    source = task.source.replace("def get_inputs():", "def get_inputs(rows=33):")
    both = tuple(Workload(name=str(n), arguments=(("rows", n),)) for n in (33, 65))
    task = dataclasses.replace(task, source=source, workloads=both)
    found = product_family(task)
    text = found.source(found.space.defaults)
    assert "((33, 48), (48, 1), torch.float32)" in text
    assert "((65, 48), (48, 1), torch.float32)" in text
    for rows in (33, 65):
        check(pool, task, {}, arguments={"rows": rows})
    with pytest.raises(AssertionError, match="the reference was run"):
        check(pool, task, {}, arguments={"rows": 34})


def test_a_number_that_is_not_what_the_file_says_runs_the_reference():
    found = product_family(TASKS["linear_mish"][0])
    assert "if self.by == 0.75:" in found.source(found.space.defaults)


@pytest.mark.parametrize("name", ["linear_gelu", "bmm"])
def test_every_seed_is_written_the_same_way_twice_or_refused(name):
    task = TASKS[name][0]
    found = product_family(task)
    written = 0
    for seed in found.space.starts:
        try:
            source = found.source(seed)
        except NotRecognised:
            continue
        written += 1
        assert owned(found, source) == seed
        assert source == product_family(task).source(seed)
        assert inspect_source(Candidate(backend="triton", source=source), task) is None
    assert written >= 4


def test_a_linear_layer_and_its_activation_are_one_product():
    found = product_family(TASKS["linear_gelu"][0])
    source = found.source(found.space.defaults | {"product": "planes"})
    assert "# kernelsmith rules: products product=planes" in source
    assert "from its source" in source
    assert "torch.mm" not in source
    assert source.count("tl.erf") == 2  # in the product, and where it is repaired


def test_what_is_left_to_the_library_is_no_candidate():
    found = product_family(TASKS["bmm"][0])
    with pytest.raises(NotRecognised):
        found.source(found.space.defaults | {"product": "library"})


def test_a_family_can_go_to_another_process():
    found = product_family(TASKS["linear_gelu"][0])
    again = pickle.loads(pickle.dumps(found))
    assert again.source(again.space.defaults) == found.source(found.space.defaults)


def test_reading_a_product_does_not_import_torch():
    text = "import sys, kernelsmith.propose.rules.products.standalone; "
    text += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text]).returncode == 0


def test_inputs_that_are_made_in_a_loop_are_left_alone():
    source = """
import torch

class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.relu(a @ b)

def get_inputs():
    return [torch.randn(64, 64) for _ in range(2)]
"""
    with pytest.raises(NotRecognised, match="cannot tell"):
        product_family(Task(name="made_in_a_loop", source=source))
