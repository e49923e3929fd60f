"""Tasks of the kinds, drawn at random."""

import random

from drawn_inputs import Drawn, chain, numbers, of, sizes, values
from rule_tasks import a_task


def drawn_scan(rng: random.Random) -> Drawn:
    """Running sums and products along any dimension, either way."""
    rank = rng.randint(1, 4)
    dim = rng.randrange(-rank, rank)
    masked = rng.random() < 0.3
    inner = "x * mask" if masked else chain(rng, "x", 1, first=True)
    if rng.random() < 0.3:
        inner = f"torch.tanh({inner})"
        text = f"torch.cumprod({inner}, dim={dim})"
    elif rng.random() < 0.4:
        text = f"torch.cumsum(({inner}).flip({dim}), dim={dim}).flip({dim})"
    else:
        text = f"torch.cumsum({inner}, dim={dim})"
        text += " - x" if rng.random() < 0.3 else ""
    shape = sizes(rng, rank)
    made, names = of(shape), "x"
    if masked:
        made += f", torch.randint(0, 2, ({', '.join(map(str, shape))},)).bool()"
        names = "x, mask"

    def inputs(rng: random.Random):  # type: ignore[no-untyped-def]
        shape = sizes(rng, rank, 40 if rank > 2 else 500)
        found = [values(rng, shape)]
        return [*found, values(rng, shape, "n") > 0] if masked else found

    return Drawn(task=a_task(f"return {text}", names=names, inputs=made), inputs=inputs)


_COLUMNS = (
    "({}).sum(dim={d})", "({}).mean(dim={d}, keepdim=True)", "({}).amax(dim={d})",
    "torch.min({}, dim={d})[0]", "({}).var(dim={d})", "torch.softmax({}, dim={d})",
    "F.log_softmax({}, dim={d})", "torch.logsumexp({}, dim={d})", "F.normalize({}, dim={d})",
    "torch.prod({}, dim={d})", "({0} - ({0}).mean(dim={d}, keepdim=True))",
    "({0} / torch.sqrt(torch.mean({0} ** 2, dim={d}, keepdim=True) + 1e-3))",
    "({}).norm(dim={d}, keepdim=True)",
)  # fmt: skip


def drawn_columns(rng: random.Random) -> Drawn:
    """Reductions, norms and softmax along a dimension that is not the last."""
    rank = rng.randint(2, 4)
    dim = rng.randrange(rank - 1)
    shown = dim if rng.random() < 0.5 else dim - rank
    made = rng.choice(_COLUMNS).replace("{d}", str(shown))
    text = chain(rng, made.format(chain(rng, "x", 2, first=True)), 1)

    def inputs(rng: random.Random):  # type: ignore[no-untyped-def]
        shape = sizes(rng, rank, 30)
        shape[dim] = rng.choice([1, 2, 5, rng.randint(1, 150)])
        return [values(rng, shape)]

    return Drawn(task=a_task(f"return {text}", inputs=of(sizes(rng, rank))), inputs=inputs)


def drawn_window(rng: random.Random) -> Drawn:
    """Pooling and depthwise convolution with any settings."""
    ndim = rng.randint(1, 3)

    def some(low: int, high: int) -> tuple[int, ...]:
        return tuple(rng.randint(low, high) for _ in range(ndim))

    size, stride = some(1, 6 - ndim), some(1, 4)
    around = tuple(rng.randint(0, each // 2) for each in size)
    step, channels = some(1, 3), rng.randint(1, 5)
    init, more = "", f"{size}, stride={stride}, padding={around}"
    match rng.randrange(4):
        case 0:
            init = f"self.op = nn.MaxPool{ndim}d({more}, dilation={step})"
        case 1:
            step = (1,) * ndim
            count = rng.random() < 0.5
            init = f"self.op = nn.AvgPool{ndim}d({more}, count_include_pad={count})"
        case 2:
            step, around, stride = (1,) * ndim, (0,) * ndim, size
            init = f"self.op = nn.{rng.choice(['Max', 'Avg'])}Pool{ndim}d({size})"
        case _:
            bias = rng.random() < 0.5
            init = (f"self.op = nn.Conv{ndim}d({channels}, {channels}, {more}, dilation={step}, "
                    f"groups={channels}, bias={bias})")  # fmt: skip
    if ndim == 1:
        init = init.replace(",)", ")")
    least = [(k - 1) * d + 1 for k, d in zip(size, step, strict=True)]

    def inputs(rng: random.Random):  # type: ignore[no-untyped-def]
        space = [each + rng.choice([0, 1, 2, rng.randint(0, 30)]) for each in least]
        return [values(rng, [rng.randint(1, 3), channels, *space])]

    text = chain(rng, "self.op(x)", 2)
    shape = [2, channels, *(each + 5 for each in least)]
    task = a_task(f"return {text}", init=init, inputs=of(shape))
    return Drawn(task=task, inputs=inputs, halves="AvgPool3d" not in init)  # eager has no such


def drawn_groups(rng: random.Random) -> Drawn:
    """Norms over channels or groups of them."""
    ndim, groups = rng.randint(1, 3), rng.randint(1, 4)
    channels = groups * rng.randint(1, 3)
    affine = rng.random() < 0.5
    init = rng.choice([
        f"nn.BatchNorm{ndim}d({channels}, affine={affine}, eps=1e-3)",
        f"nn.GroupNorm({groups}, {channels}, affine={affine})",
        f"nn.InstanceNorm{ndim}d({channels}, affine={affine})",
    ])  # fmt: skip

    def inputs(rng: random.Random):  # type: ignore[no-untyped-def]
        space = [rng.choice([2, 3, rng.randint(2, 90 // ndim**2)]) for _ in range(ndim)]
        return [values(rng, [rng.randint(1, 3), channels, *space])]

    text = chain(rng, "self.norm(x)", 2)
    made = of([2, channels, *[7] * ndim])
    return Drawn(
        task=a_task(f"return {text}", init=f"self.norm = {init}", inputs=made), inputs=inputs
    )


def drawn_entropy(rng: random.Random) -> Drawn:
    """Cross entropy, some rows not counted, at times none at all."""
    ignored = rng.choice([-100, 0, 3])
    how = rng.choice(["mean", "sum", "none"])
    init = f"self.loss = nn.CrossEntropyLoss(ignore_index={ignored}, reduction='{how}')"

    def inputs(rng: random.Random):  # type: ignore[no-untyped-def]
        rows, count = rng.choice([1, 2, rng.randint(1, 40)]), rng.randint(1, 300)
        classes = numbers(rng, [rows], count)
        if count > ignored and rng.random() < 0.4:
            classes[values(rng, [rows], "n") > rng.choice([0.0, -10.0])] = ignored
        return [values(rng, [rows, count]), classes]

    task = a_task("return self.loss(x, y)", init=init, names="x, y",
                  inputs="torch.randn(9, 67), torch.randint(0, 67, (9,))")  # fmt: skip
    return Drawn(task=task, inputs=inputs)


def drawn_router(rng: random.Random) -> Drawn:
    """The best few of each row, plain or as weights."""
    k = rng.choice([1, 2, 4, rng.randint(1, 16)])
    score = rng.choice(["x", "torch.softmax(x, dim=-1)", "x * 0.5", "F.log_softmax(x, dim=-1)"])
    end = "weights, experts"
    if "soft" in score and "log" not in score and rng.random() < 0.5:
        end = "weights / weights.sum(dim=-1, keepdim=True), experts"
    elif score == "x" and rng.random() < 0.5:
        end = "torch.softmax(weights, dim=-1), experts"
    text = f"weights, experts = torch.topk({score}, {k}, dim=-1)\nreturn {end}"
    rank = rng.randint(1, 3)

    def inputs(rng: random.Random):  # type: ignore[no-untyped-def]
        return [values(rng, [*sizes(rng, rank - 1, 20), k + rng.choice([0, 1, rng.randint(0, 80)])],
                       "nu")]  # fmt: skip

    shape = [*sizes(rng, rank - 1), 40]
    return Drawn(task=a_task(text, inputs=of(shape)), inputs=inputs, halves=False)


_RANKED = (
    "torch.kthvalue({y}, {k}, dim=-1).values", "{y}.sort(dim=-1).values[..., -{k}] * 2",
    "torch.median({y}, dim=-1, keepdim=True).values", "torch.topk({y}, {k}).values[..., -1:]",
    "({y}).clamp(max={y}.kthvalue({k}, -1, True)[0])",
    "torch.softmax(x.masked_fill({y} < torch.topk({y}, {k})[0][..., -1:], float('-inf')), -1)",
)  # fmt: skip


def drawn_sort(rng: random.Random) -> Drawn:
    """Rows in order, all or the best of them, and what is computed with a value of some rank."""
    rank, k = rng.randint(1, 3), rng.choice([17, 20, rng.randint(17, 60)])
    down = rng.random() < 0.5
    y = rng.choice(["x", "x.abs()", "(-x)"])
    match rng.randrange(4):
        case 0:
            text = f"torch.sort({y}, dim=-1, descending={down}, stable=True)"
        case 1:
            text = f"({y}).argsort(dim=-1, descending={down}, stable=True)"
        case 2:
            text = chain(rng, f"torch.topk({y}, {k}, largest={down})[0]", 2)
        case _:
            text = rng.choice(_RANKED).format(y=y, k=k)

    def inputs(rng: random.Random):  # type: ignore[no-untyped-def]
        long = rng.choice([k, k + 1, rng.randint(k, 300), rng.randint(k, 6000)])
        return [values(rng, [*sizes(rng, rank - 1, 9), long], "nuwtts")]

    shape = [*sizes(rng, rank - 1), 70]
    return Drawn(task=a_task(f"return {text}", inputs=of(shape)), inputs=inputs)


def drawn_lookup(rng: random.Random) -> Drawn:
    """Rows of a table with elementwise work behind them."""
    rank, count, dim = rng.randint(1, 3), rng.randint(1, 40), rng.choice([1, 3, rng.randint(1, 90)])
    text = chain(rng, "self.table(ids)", 2)
    shape = sizes(rng, rank)
    task = a_task(f"return {text}", names="ids", init=f"self.table = nn.Embedding({count}, {dim})",
                  inputs=f"torch.randint(0, {count}, ({', '.join(map(str, shape))},))")  # fmt: skip

    def inputs(rng: random.Random):  # type: ignore[no-untyped-def]
        return [numbers(rng, sizes(rng, rank), count)]

    return Drawn(task=task, inputs=inputs)


def drawn_pick(rng: random.Random) -> Drawn:
    """Where the largest or smallest lies: equals and NaN decide."""
    rank = rng.randint(1, 4)
    dim = rng.randrange(-rank, rank)
    value = rng.choice(["x", "x * 2", "x.abs()", "-x"])
    kept = rng.choice(["", ", keepdim=True"])
    text = rng.choice([
        f"torch.argmax({value}, dim={dim}{kept})", f"torch.argmin({value}, dim={dim}{kept})",
        f"torch.max({value}, dim={dim})[1]",
    ])  # fmt: skip

    def inputs(rng: random.Random):  # type: ignore[no-untyped-def]
        return [values(rng, sizes(rng, rank, 40 if rank > 2 else 300), "ntts")]

    return Drawn(task=a_task(f"return {text}", inputs=of(sizes(rng, rank))), inputs=inputs)


def _drawn_products(rng: random.Random) -> Drawn:
    """Several products of one input: sums, thin ones, one behind another, gates."""
    into, out, thin = rng.randint(1, 70), rng.randint(1, 70), rng.randint(1, 20)
    into, out, thin = (rng.choice([each, each, 1, 16, 33]) for each in (into, out, thin))
    rank, bias = rng.randint(2, 3), rng.random() < 0.5
    init = [f"self.fc = nn.Linear({into}, {out}, bias={bias})",
            f"self.a = nn.Parameter(torch.randn({thin}, {into}) / {into} ** 0.5)",
            f"self.b = nn.Parameter(torch.randn({out}, {thin}) / {thin} ** 0.5)",
            f"self.c = nn.Parameter(torch.randn({into}, {thin}) / {into} ** 0.5)",
            f"self.d = nn.Parameter(torch.randn({thin}, {out}) / {thin} ** 0.5)",
            f"self.g = nn.Parameter(torch.randn({out}, {into}) / {into} ** 0.5)"]  # fmt: skip
    thin_ones = [f"({chain(rng, '(x @ self.a.T)', 1)}) @ self.b.mT",
                 f"({chain(rng, '(x @ self.c)', 1)}) @ self.d",
                 "F.linear(F.linear(x, self.a), self.b)", "(0.5 * (x @ self.a.t())) @ self.d",
                 "torch.tanh(x @ self.g.T)", "x @ self.g.transpose(0, 1)"]  # fmt: skip
    one, other = rng.sample(thin_ones, 2)
    text = rng.choice([f"self.fc(x) + {one}", f"{one} + self.fc(x) - {other}", f"{one} + {other}",
                       f"F.silu(self.fc(x)) * ({other})", one])  # fmt: skip
    text = chain(rng, f"({text})", 1)
    task = a_task(f"return {text}", init="\n".join(init), inputs=of([*sizes(rng, rank - 1), into]))
    return Drawn(
        task=task, inputs=lambda rng: [values(rng, [*sizes(rng, rank - 1, 80), into], "nuws")]
    )


def drawn_product(rng: random.Random) -> Drawn:
    """Products of inputs, or of inputs and weights, with what follows."""
    if rng.random() < 0.4:
        return _drawn_products(rng)
    if rng.random() < 0.5:
        into, out, rank = rng.randint(1, 70), rng.randint(1, 70), rng.randint(2, 4)
        bias = rng.random() < 0.5
        task = a_task(f"return {chain(rng, 'self.fc(x)', 2)}", inputs=of([*sizes(rng, rank - 1),
                      into]), init=f"self.fc = nn.Linear({into}, {out}, bias={bias})")  # fmt: skip
        return Drawn(
            task=task, inputs=lambda rng: [values(rng, [*sizes(rng, rank - 1, 20), into], "nuws")]
        )
    rank, turned = rng.randint(2, 3), rng.random() < 0.5
    residual = rng.random() < 0.4
    text = chain(rng, "(x @ y.transpose(-2, -1))" if turned else "torch.matmul(x, y)", 2)

    def shapes(rng: random.Random) -> list[list[int]]:
        batch, (m, n, k) = sizes(rng, rank - 2, 4), sizes(rng, 3, 70)
        return [[*batch, m, k], [*batch, *((n, k) if turned else (k, n))], [*batch, m, n]]

    first = shapes(rng)
    names, used = ("x, y, z", 3) if residual else ("x, y", 2)
    task = a_task(f"return {text}{' + z' if residual else ''}", names=names,
                  inputs=", ".join(of(each) for each in first[:used]))  # fmt: skip
    return Drawn(
        task=task, inputs=lambda rng: [values(rng, each, "nuws") for each in shapes(rng)[:used]]
    )


DRAWN = {
    "scan": drawn_scan, "columns": drawn_columns, "window": drawn_window, "groups": drawn_groups,
    "entropy": drawn_entropy, "router": drawn_router, "sort": drawn_sort, "lookup": drawn_lookup,
    "pick": drawn_pick, "product": drawn_product,
}  # fmt: skip
