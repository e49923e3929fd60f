"""Tasks of the families ``flat`` and ``rows``, drawn at random."""

import random

from drawn_inputs import Drawn, chain, of, sizes, values
from rule_tasks import a_task

_JOINED = ("{} + {}", "{} * {}", "{} - 0.5 * {}", "torch.maximum({}, {})", "torch.minimum({}, {})")
_TOTALS = ("({}).sum()", "({}).mean()")
_LOSSES = ("F.mse_loss(x, y)", "F.l1_loss(x, y)", "F.smooth_l1_loss(x, y, beta=0.5)",
           "F.huber_loss(x, y, delta=0.7)", "F.mse_loss(x, y, reduction='none')")  # fmt: skip


def drawn_flat(rng: random.Random) -> Drawn:
    """Elementwise work on one or two tensors, at times added up in the end."""
    rank = rng.randint(1, 4)
    text = rng.choice(_JOINED).format(chain(rng, "x", first=True), chain(rng, "y", first=True))
    text = chain(rng, f"({text})", 2)
    match rng.randrange(4):
        case 0:
            text = rng.choice(_TOTALS).format(text)
        case 1:
            text = rng.choice(_LOSSES)
    shape = sizes(rng, rank)
    task = a_task(f"return {text}", names="x, y", inputs=f"{of(shape)}, {of(shape)}")

    def inputs(rng: random.Random):  # type: ignore[no-untyped-def]
        shape = sizes(rng, rank, 40 if rank > 2 else 700)
        return [values(rng, shape), values(rng, shape)]

    return Drawn(task=task, inputs=inputs)


_ROWS = (
    "({}).sum(dim=-1)", "({}).mean(dim=-1)", "({}).amax(dim=-1)", "({}).amin(dim=-1)",
    "({}).var(dim=-1)", "({}).std(dim=-1, unbiased=False)", "torch.logsumexp({}, dim=-1)",
    "({}).norm(dim=-1)", "({}).norm(p=1, dim=-1)", "torch.max({}, dim=-1)[0]",
    "torch.logsumexp({}, dim=-1).mean()", "F.cosine_similarity({}, z, dim=-1)",
)  # fmt: skip
_KEPT = (
    "torch.softmax({}, dim=-1)", "F.log_softmax({}, dim=-1)", "F.normalize({}, dim=-1)",
    "({0} - ({0}).mean(dim=-1, keepdim=True))", "self.norm({})", "self.rms({})",
    "({0} / (1 + ({0}).abs().amax(dim=-1, keepdim=True)))", "F.layer_norm({}, (DIM,))",
    "({0} * torch.sigmoid(({0}).mean(dim=-1, keepdim=True)))",
)  # fmt: skip
_INIT = """\
self.norm = nn.LayerNorm({dim}, eps=1e-3)
self.rms = nn.RMSNorm({dim}, eps=1e-4)
self.bias = nn.Parameter(torch.zeros({dim}))
self.scale = 1.25"""


def drawn_rows(rng: random.Random) -> Drawn:
    """One or two steps along rows with elementwise work around them."""
    rank, dim = rng.randint(2, 4), rng.choice([1, 2, 7, 16, rng.randint(3, 70), 333])
    begin = rng.choice(["x", "(x + self.bias)", "(x * self.scale)", "(x * z)"])
    text = chain(rng, begin, 2, first=begin == "x")
    if rng.random() < 0.6:
        text = chain(rng, rng.choice(_KEPT).format(text), 1)
    if rng.random() < 0.5:
        text = rng.choice(_ROWS).format(text)
    else:
        text = chain(rng, rng.choice(_KEPT).format(text), 2)
    text = text.replace("DIM", str(dim))
    shape = [*sizes(rng, rank - 1), dim]
    task = a_task(f"return {text}", init=_INIT.format(dim=dim), names="x, z",
                  inputs=f"{of(shape)}, {of(shape)}")  # fmt: skip

    def inputs(rng: random.Random):  # type: ignore[no-untyped-def]
        shape = [*sizes(rng, rank - 1, 20), dim]
        return [values(rng, shape), values(rng, shape)]

    return Drawn(task=task, inputs=inputs)
