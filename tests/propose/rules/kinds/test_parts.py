"""Attention, recurrent layers and convolutions: recognised, written, and right in float64's eyes.

Triton runs in its interpreter on small shapes; C++ is built. Shapes are drawn at random.
"""

import dataclasses
import random
from dataclasses import replace

import pytest
from part_runner import arrived, error, runner
from part_tasks import MIXING, PARTS
from rule_tasks import a_task

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.propose.rules.family import owned
from kernelsmith.propose.rules.kinds import kinds_for, why_none
from kernelsmith.propose.rules.kinds.recurrent.triton import WAIT
from kernelsmith.testing import QUICK as JUDGED

pytest.importorskip("triton")

TASKS = [(kind, name) for kind, tasks in PARTS.items() for name in tasks]
QUICK = [("attention", "gpt"), ("attention", "shared"), ("recurrent", "gru"),
         ("recurrent", "gru_cell"), ("recurrent", "written_gru"), ("neighbours", "turned"),
         ("neighbours", "residual")]  # fmt: skip
PACKED = "packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([7, 6, 4, 4, 1]))\n"
NEAR = 4e-6
"""Of the largest value: float32 sums of these sizes are off by a tenth of it."""


@pytest.fixture(scope="module")
def pool():
    with runner() as found:
        yield found


def the_family(task, kind, backend):
    found = [each for each in kinds_for(task, backend) if each.space.template == kind]
    assert found, why_none(task, backend)[kind]
    return found[0]


def check(pool, task, kind, backend, number=0, bound=NEAR, **more):
    family = the_family(task, kind, backend)
    source = family.source(family.space.seed(number, number))
    off, eager = pool.submit(error, source, task.source, **more).result()
    assert off <= max(bound, 4 * eager), f"{off} with eager at {eager}\n{source}"


def backends(name):
    return ["triton"] if name in MIXING else ["cpu", "triton"]


@pytest.mark.parametrize(("kind", "name"), TASKS)
def test_a_part_is_recognised_and_its_candidates_are_its_own(kind, name):
    task = PARTS[kind][name]
    for backend in backends(name):
        family = the_family(task, kind, backend)
        over = ["packed"] if name in MIXING else []
        assert [each.space.template for each in kinds_for(task, backend)] == [*over, kind]
        for number in range(10):
            chosen = family.space.seed(number, 5)
            source = family.source(chosen)
            assert owned(family, source) == chosen
            assert source == the_family(task, kind, backend).source(chosen)
            assert family.words(chosen)
            compile(source, "candidate.py", "exec")


@pytest.mark.parametrize("name", MIXING)
def test_convolutions_across_channels_are_left_to_the_library_on_a_processor(name):
    assert kinds_for(MIXING[name], "cpu") == ()
    assert "mix channels" in why_none(MIXING[name], "cpu")["neighbours"]


@pytest.mark.parametrize(("kind", "name"), QUICK)
def test_the_first_seed_in_the_interpreter_is_right(pool, kind, name):
    check(pool, PARTS[kind][name], kind, "triton")


def test_the_first_seed_on_a_processor_is_right(pool):
    check(pool, PARTS["attention"]["gpt"], "attention", "cpu")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), TASKS)
def test_every_seed_is_right(pool, kind, name):
    for backend in backends(name):
        count = len(the_family(PARTS[kind][name], kind, backend).space.seeds)
        for number in range(count if backend == "triton" else 2):
            check(pool, PARTS[kind][name], kind, backend, number)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), TASKS)
def test_half_precision_is_right(pool, kind, name):
    for backend in backends(name):
        check(pool, PARTS[kind][name], kind, backend, dtype="float16", bound=3e-3)


def drawn_attention(rng):
    b, h, d, e = rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 70), rng.randint(1, 40)
    rows = rng.randint(1, 90)
    keys = rows if rng.random() < 0.5 else rng.randint(1, 150)
    lines = [f"scores = q @ k.transpose(-2, -1) * {rng.choice([0.1, 0.3])}"]
    if rng.random() < 0.3:
        lines.append(f"scores = scores + torch.linspace(-1, 1, {keys}, dtype=q.dtype)")
    if rng.random() < 0.5 and rows == keys:
        lines.append("ahead = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)")
        lines.append("scores = scores.masked_fill(ahead, float('-inf'))")
    elif rng.random() < 0.5:
        lines.append(f"hide = torch.arange({rows})[:, None] % 3 == torch.arange({keys}) % 3")
        lines.append(f"scores = scores.masked_fill(hide, {rng.choice(['-torch.inf', '-5.0'])})")
    lines.append("return torch.softmax(scores, -1) @ v")
    inputs = f"torch.randn({b}, {h}, {rows}, {d}), torch.randn({b}, 1, {keys}, {d}), "
    inputs += f"torch.randn({b}, {h}, {e}, {keys}).transpose(-2, -1)"
    return "attention", a_task("\n".join(lines), names="q, k, v", inputs=inputs)


def drawn_recurrent(rng):
    mode = rng.choice(["LSTM", "GRU", "RNN"])
    into, size, layers = rng.randint(1, 9), rng.randint(2, 40), rng.randint(1, 3)
    more = [f"num_layers={layers}"]
    more += ["batch_first=True"] * (rng.random() < 0.5) + ["bias=False"] * (rng.random() < 0.3)
    more += ["bidirectional=True"] * (rng.random() < 0.4)
    init = f"self.rnn = nn.{mode}({into}, {size}, {', '.join(more)})"
    inputs = f"torch.randn({rng.randint(1, 6)}, {rng.randint(1, 20)}, {into})"
    return "recurrent", a_task("return self.rnn(x)", init=init, inputs=inputs)


def drawn_steps(rng):
    """A loop over time: a cell of torch's, or a GRU written out."""
    mode = rng.choice(["LSTM", "GRU", "RNN", "written", "written"])
    into, size, batch = rng.randint(1, 9), rng.randint(2, 40), rng.randint(1, 9)
    times, bias = rng.randint(1, 8), rng.choice(["True", "False"])
    first = rng.random() < 0.5
    x, shape = ("x[:, t]", (batch, times)) if first else ("x[t]", (times, batch))
    step = [f"    h = self.cell({x}, h)"]
    if mode == "LSTM":
        step = [f"    h, c = self.cell({x}, (h, c))"]
    elif mode == "written":
        last = rng.choice(["(1.0 - z) * n + z * h", "n + z * (h - n)", "h * z + n * (1 - z)"])
        step = [f"    a, b, d = self.into({x}).chunk(3, dim=-1)",
                "    u, v, w = self.across(h).chunk(3, 1)",
                "    r, z = torch.sigmoid(u + a), torch.sigmoid(b + v)",
                "    n = torch.tanh(w * r + d)", f"    h = {last}"]  # fmt: skip
        step[2:3] = ["    r = torch.sigmoid(u + a)", "    z = torch.sigmoid(b + v)"]
    lines = ["outs = []", f"for t in range({times}):", *step, "    outs.append(h)"]
    init = f"self.cell = nn.{mode}Cell({into}, {size}, bias={bias})"
    if mode == "written":
        init = f"self.into = nn.Linear({into}, {3 * size})\n"
        init += f"self.across = nn.Linear({size}, {3 * size}, bias={bias})"
    names, many = ("x, h, c", 2) if mode == "LSTM" else ("x, h", 1)
    lines.append(f"return torch.stack(outs, dim={int(first)}), h" + ", c" * (mode == "LSTM"))
    inputs = f"torch.randn({shape[0]}, {shape[1]}, {into})"
    inputs += f", torch.randn({batch}, {size})" * many
    return "recurrent", a_task("\n".join(lines), init=init, names=names, inputs=inputs)


def drawn_neighbours(rng):
    ndim, turned = rng.randint(1, 3), rng.random() < 0.5
    groups = rng.choice([1, 2, 3])
    into, out = groups * rng.randint(1, 5), groups * rng.randint(1, 5)

    def some(low, high):
        return tuple(rng.randint(low, high) for _ in range(ndim))

    size, stride, step = some(1, 3), some(1, 3), some(1, 2)
    around = tuple(rng.randint(0, (k - 1) * d // 2) for k, d in zip(size, step, strict=True))
    more = f"stride={stride}, padding={around}, dilation={step}, groups={groups}"
    if turned:
        extra = tuple(rng.randint(0, max(s, d) - 1) for s, d in zip(stride, step, strict=True))
        more += f", output_padding={extra}"
    init = f"self.conv = nn.Conv{'Transpose' * turned}{ndim}d({into}, {out}, {size}, {more})\n"
    init += f"self.norm = nn.BatchNorm{ndim}d({out})"
    shape = ", ".join(str(rng.randint(6, 9)) for _ in range(ndim))
    inputs = f"torch.randn({rng.randint(1, 2)}, {into}, {shape})"
    text = rng.choice(["F.gelu(self.norm(self.conv(x)))", "self.norm(self.conv(x * 2)).tanh()"])
    return "neighbours", a_task(f"return {text}", init=init, inputs=inputs)


@pytest.fixture(scope="module")
def judges():
    settings = dataclasses.replace(JUDGED, robust=True, contention=1.0)
    opened = {name: LocalEvaluator(name, settings) for name in ("cpu", "triton")}
    yield opened
    for each in opened.values():
        each.close()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpu", "triton"])
@pytest.mark.parametrize(("kind", "name"), [
    ("attention", "gpt"), ("attention", "shared"), ("recurrent", "deep_lstm"),
    ("recurrent", "tanh"), ("recurrent", "written_gru"), ("neighbours", "residual"),
    ("neighbours", "turned_depthwise"),
])  # fmt: skip
def test_the_judge_lets_the_first_seed_pass(judges, kind, name, backend):
    task = PARTS[kind][name]
    family = the_family(task, kind, backend)
    source = family.source(family.space.defaults)
    found = judges[backend].judge(task, Candidate(backend=backend, source=source))
    assert found.verdict is Verdict.PASSED, f"{found.verdict}: {found.message}\n{source}"


DRAWN = {"attention": drawn_attention, "recurrent": drawn_recurrent, "steps": drawn_steps,
         "neighbours": drawn_neighbours}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("kind", DRAWN)
def test_random_shapes_are_right(pool, kind, seed):
    rng = random.Random(f"{kind} {seed}")
    kind, task = DRAWN[kind](rng)
    for backend in ("cpu", "triton"):
        if kind == "recurrent" or kind in [f.space.template for f in kinds_for(task, backend)]:
            check(pool, task, kind, backend, rng.randrange(6), seed=seed)


@pytest.mark.parametrize("factor", ["1e25", "1e-35"])
def test_values_that_pairs_of_float16_cannot_hold_are_computed_again(pool, factor):
    inputs = f"torch.randn(2, 40, 8), torch.randn(2, 40, 8), torch.randn(2, 40, 8) * {factor}"
    task = a_task("return torch.softmax(q @ k.mT, dim=-1) @ v", names="q, k, v", inputs=inputs)
    check(pool, task, "attention", "triton")


@pytest.mark.parametrize("layer", ["GRU", "LSTM", "RNN"])
def test_states_that_are_tiny_from_the_first_step_on_keep_their_bits(pool, layer):
    task = a_task("return self.rnn(x)[0]", init=f"self.rnn = nn.{layer}(6, 18, bias=False)",
                  inputs="torch.randn(5, 3, 6) * 1e-9")  # fmt: skip
    check(pool, task, "recurrent", "triton")


@pytest.mark.parametrize("backend", ["cpu", "triton"])
def test_a_row_without_keys_is_no_number_as_in_torch(pool, backend):
    task = a_task(
        "hide = torch.arange(40)[:, None] % 4 == torch.zeros(40)\n"
        "return torch.softmax((q @ k.mT).masked_fill(hide, -torch.inf), dim=-1) @ v",
        names="q, k, v", inputs=", ".join(["torch.randn(2, 40, 8)"] * 3),
    )  # fmt: skip
    check(pool, task, "attention", backend)


@pytest.mark.parametrize(
    ("q", "k", "v"),
    [("2, 6, 5, 16", "2, 1, 7, 16", "2, 3, 7, 16"), ("2, 3, 5, 0", "2, 3, 7, 0", "2, 3, 7, 4")],
)
def test_heads_of_nothing_or_grouped_in_two_ways_are_torchs(pool, q, k, v):
    task = a_task(
        "return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)", names="q, k, v",
        inputs=f"torch.randn({q}), torch.randn({k}), torch.randn({v})",
    )  # fmt: skip
    for family in kinds_for(task, "cpu"):
        source = family.source(family.space.defaults)
        assert pool.submit(error, source, task.source, kept=True).result()[0] < 1e-5


@pytest.mark.parametrize("form", ["bare", "added"])
def test_a_triangle_of_other_sizes_is_not_the_past(pool, form):
    mask = {
        "bare": "w = w.masked_fill(torch.tril(torch.ones(n, n)) == 0, float('-inf'))",
        "added": "w = w + torch.triu(torch.full((n, n), float('-inf')), diagonal=1)",
    }[form]
    task = a_task(
        f"n = q.shape[-2]\nw = q @ k.transpose(-2, -1)\n{mask}\nreturn w.softmax(-1) @ v",
        names="q, k, v",
        inputs="torch.randn(2, 3, 1, 16), torch.randn(2, 3, 9, 16), torch.randn(2, 3, 9, 16)",
    )
    for family in kinds_for(task, "cpu"):
        source = family.source(family.space.defaults)
        assert pool.submit(error, source, task.source, kept=True).result()[0] < 1e-5
    same = replace(task, source=task.source.replace("(2, 3, 1, 16)", "(2, 3, 9, 16)"))
    check(pool, same, "attention", "cpu")


@pytest.mark.parametrize(
    "later",
    ["self.attn.register_forward_pre_hook(lambda m, i: tuple(e * 2 for e in i))",
     "self.attn.register_forward_hook(lambda m, i, o: (o[0] * 2, None))",
     "nn.utils.weight_norm(self.attn, 'in_proj_weight')",
     "nn.utils.parametrizations.weight_norm(self.attn, 'in_proj_weight')",
     "self.attn.out_proj.register_forward_hook(lambda m, i, o: o * 2)"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.torch.nn.utils.weight_norm. is deprecated:FutureWarning")
def test_attention_that_somebody_hooks_into_runs_as_written(pool, later):
    task = a_task("return self.attn(x, x, x)[0]", inputs="torch.randn(40, 2, 24)",
                  init=f"self.attn = nn.MultiheadAttention(24, 3)\n{later}")  # fmt: skip
    for family in kinds_for(task, "cpu"):
        source = family.source(family.space.defaults)
        found, eager = pool.submit(error, source, task.source, kept=True).result()
        assert found < max(1e-5, 4 * eager)


def test_an_inner_class_is_cut_and_the_model_around_it_stays(pool):
    inner = PARTS["attention"]["gpt"].source.split("def get_inputs")[0].replace("Model", "Inner")
    outer = (
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.parts = nn.ModuleList([Inner(), Inner()])\n"
        "    def forward(self, x):\n        for part in self.parts:\n            x = x + part(x)\n"
        "        return x\n"
        "def get_inputs():\n    return [torch.randn(2, 37, 32)]\n"
        "def get_init_inputs():\n    return []\n"
    )
    base = PARTS["attention"]["gpt"]
    task = type(base)(name="outer", source=inner + outer, workloads=base.workloads)
    check(pool, task, "attention", "triton")


@pytest.mark.parametrize(("kind", "task", "why"), [
    ("attention", a_task("w = torch.softmax(x @ x.mT, dim=-1)\nreturn w @ x, w"), "nobody else"),
    ("attention", a_task("return torch.softmax(x @ x.mT, dim=0) @ x"), "over keys"),
    ("attention", a_task("x = self.attn(x, x, x)\nreturn x[1]",
                         init="self.attn = nn.MultiheadAttention(8, 2)"), "weights nobody takes"),
    ("recurrent", a_task("return self.a(self.b(x)[0])[0]",
                         init="self.a = nn.GRU(4, 4)\nself.b = nn.LSTM(4, 4)"), "one sort"),
    ("attention", a_task("x.add_(1)\nreturn F.scaled_dot_product_attention(x, x, x)"),
     "in place"),
    ("recurrent", a_task(PACKED + "return self.a(packed)[0].data", init="self.a = nn.GRU(4, 4)"),
     "no recurrent layer"),
    ("recurrent", a_task(
        "for t in range(3):\n    h = self.cell(x[t], h * 2)\nreturn h", names="x, h",
        init="self.cell = nn.GRUCell(4, 4)", inputs="torch.randn(3, 2, 4), torch.randn(2, 4)"),
     "one cell of inputs and a state"),
    ("recurrent", a_task(
        "for t in range(3):\n    y = self.cell(x[t], h)\nreturn y", names="x, h",
        init="self.cell = nn.GRUCell(4, 4)", inputs="torch.randn(3, 2, 4), torch.randn(2, 4)"),
     "cells that give the next state"),
    ("recurrent", a_task(
        "for t in range(3):\n    h, c = self.cell(x[t], (c, h))\nreturn h", names="x, h, c",
        init="self.cell = nn.LSTMCell(4, 4)",
        inputs="torch.randn(3, 2, 4), torch.randn(2, 4), torch.randn(2, 4)"), "its own state"),
    ("recurrent", a_task(
        "for t in range(3):\n    a, b, d = self.into(x[t]).chunk(3, 1)\n"
        "    u, v, w = self.across(h).chunk(3, 1)\n    z = torch.sigmoid(b + v)\n"
        "    h = z * torch.tanh(d + torch.sigmoid(a + u) * w) + (1 - z) * h\nreturn h",
        names="x, h", init="self.into = nn.Linear(4, 12)\nself.across = nn.Linear(4, 12)",
        inputs="torch.randn(3, 2, 4), torch.randn(2, 4)"), "as torch.nn has them"),
    ("neighbours", a_task("return self.a(self.b(x))", init="self.a = nn.Conv1d(8, 8, 3)\n"
                          "self.b = nn.Conv1d(8, 8, 3)"), "Conv1d here"),
    ("neighbours", a_task("return self.a(x)", init="self.a = nn.Conv1d(8, 8, 3, padding='same')"),
     "sizes of a convolution"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_with_a_reason(kind, task, why):
    found = [each.space.template for each in kinds_for(task, "triton")]
    assert kind not in found
    assert why in why_none(task, "triton")[kind]


def test_dropout_that_does_something_runs_the_reference():
    family = the_family(PARTS["attention"]["gpt"], "attention", "triton")
    source = family.source(family.space.defaults)
    assert "if self.drop.training and self.drop.p > 0:\n            return self.plain(x)" in source


PACKS = {
    "seen": PACKED + "_, state = self.a(packed)\nreturn self.b(y, state)",
    "unseen": PACKED + "for one in [packed]:\n    kept = one\n_, state = self.a(kept)\n"
    "return self.b(y, state)",
}


@pytest.mark.parametrize("name", PACKS)
def test_a_packed_sequence_goes_through_its_layer_and_a_plain_one_through_the_kernel(pool, name):
    task = a_task(PACKS[name], init="self.a = nn.LSTM(6, 19)\nself.b = nn.LSTM(6, 19)",
                  names="x, y", inputs="torch.randn(7, 5, 6), torch.randn(7, 5, 6)")  # fmt: skip
    check(pool, task, "recurrent", "triton")


def test_the_reference_gets_the_arguments_as_they_were_given(pool):
    task = a_task("x = x + 1\nx = x[0]\nout, _ = self.rnn(x)\nreturn out",
                  init="self.rnn = nn.GRU(6, 18)", inputs="torch.randn(3, 7, 6)")  # fmt: skip
    check(pool, task, "recurrent", "triton", kept=True)


def test_keys_hidden_by_truth_values_are_hidden_and_rows_without_any_are_zero(pool):
    task = a_task(
        "seen = torch.arange(45)[:, None] % 7 != 3\nseen = seen & (torch.arange(45) > 9)\n"
        "return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)", names="q, k, v",
        inputs=", ".join(["torch.randn(2, 3, 45, 24)"] * 3))  # fmt: skip
    check(pool, task, "attention", "triton")
    check(pool, task, "attention", "cpu")


def test_who_gives_up_waiting_opens_the_way_for_all_others(pool):
    assert "< 4000000" in WAIT
    impatient = WAIT.replace("4000000", "3")
    assert pool.submit(arrived, impatient, 4, 1).result() == 4  # nobody had to wait
    # Here programs run one after the other, so the first of four waits for who never comes.
    assert pool.submit(arrived, impatient, 4, 4).result() >= 1 << 30
