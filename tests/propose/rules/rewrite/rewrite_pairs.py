"""Every two steps, one after the other: small enough to try all of them."""

from itertools import chain, product

from rewrite_graphs import ANY, ATTRIBUTES, NUMBERS

from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import Arena

SHAPE = (2, 4, 6)
_CLAMPS = ((None, 0.5), (0.0, None), (-1.0, 1.0), (0.0, 6.0), (1.0, 0.0), (None, 0.0),
           (-0.5, float("nan")))  # fmt: skip


def _unary(op, attrs):
    return lambda b, x: b.unary(op, x, **attrs)


def _with_number(op, number, first):
    def step(b, x):
        n = b.number(number)
        return b.binary(op, *((x, n) if first else (n, x)))

    return step


def _with(op, other, first):
    def step(b, x):
        y = other(b, x)
        return b.binary(op, *((x, y) if first else (y, x)))

    return step


def _row(b, x):
    shape = b.arena.shape(x)
    return b.input("row", (*shape[:-1], 1), "float64")


def _channel(b, x):
    return b.weight("self.channel", (4, 1), "float64")


def _whole(b, x):
    return b.input("whole", b.arena.shape(x), "float64")


def _of_itself(op, dims):
    return lambda b, x: b.reduce(op, x, dims, keep=True)


_OTHERS = {
    "a row": _row, "a channel": _channel, "another": _whole, "itself": lambda b, x: x,
    "its mean": _of_itself("mean", (2,)), "its maximum": _of_itself("amax", (2,)),
    "its log-sum-exp": _of_itself("logsumexp", (2,)), "a maximum of all": _of_itself(
        "amax", (1, 2)),
}  # fmt: skip


def _bias(b, x, size):
    return b.weight(f"self.bias{size}", (size,), "float64")


def _linear(b, x):
    return b.linear(x, b.weight("self.linear", (6, 6), "float64"), _bias(b, x, 6))


def _conv(b, x):
    return b.conv(x, b.weight("self.conv", (4, 4, 3), "float64"), _bias(b, x, 4), stride=(1,),
                  padding=(1,), dilation=(1,))  # fmt: skip


def _norm(op, eps, **attrs):
    def step(b, x):
        size = b.arena.shape(x)[-1] if op == "layer_norm" else 4
        given = (b.weight(f"self.gain{size}", (size,), "float64"), _bias(b, x, size))
        if op == "batch_norm":
            given = (b.weight("self.mean", (4,), "float64"), b.weight("self.var", (4,), "float64"),
                     *given)  # fmt: skip
        return b.norm(op, (x, *given), eps=eps, **attrs)

    return step


def _reduce(op, dims, keep):
    return lambda b, x: b.reduce(op, x, dims, keep=keep)


def _steps():
    for op in ANY:
        table = ATTRIBUTES.get(op, {})
        for values in product(*table.values()):
            attrs = dict(zip(table, values, strict=True))
            yield f"{op} {attrs}", _unary(op, attrs)
    for low, high in _CLAMPS:
        yield f"clamp {low} {high}", _unary("clamp", {"low": low, "high": high})
    for op, number, first in product(("add", "sub", "mul", "div"), NUMBERS, (True, False)):
        if not (op == "div" and first and number == 0):
            yield f"{op} {number} {first}", _with_number(op, number, first)
    binary = ("add", "sub", "mul", "div", "maximum", "minimum")
    for op, name, first in product(binary, _OTHERS, (True, False)):
        yield f"{op} {name} {first}", _with(op, _OTHERS[name], first)
    for op, dims in product(("amax", "amin", "sum", "mean", "logsumexp", "var"), ((2,), (1, 2))):
        yield f"{op} {dims}", _reduce(op, dims, keep=True)
    yield "amax gone", _reduce("amax", (2,), keep=False)
    for op, kernel, stride in product(("max_pool", "avg_pool"), (2, 3), (1, 2)):
        yield f"{op} {kernel} {stride}", lambda b, x, op=op, k=kernel, s=stride: b.pool(
            op, x, (k,), (s,))  # fmt: skip
    yield "max_pool padded", lambda b, x: b.pool("max_pool", x, (2,), (2,), (1,))
    for op, dim in product(("softmax", "log_softmax"), (1, 2)):
        yield f"{op} {dim}", lambda b, x, op=op, dim=dim: b.softmax(op, x, dim)
    for eps in (1e-5, 0.0):
        yield f"batch_norm {eps}", _norm("batch_norm", eps)
        yield f"layer_norm {eps}", _norm("layer_norm", eps, rank=1)
        yield f"instance_norm {eps}", _norm("instance_norm", eps)
        yield f"group_norm {eps}", _norm("group_norm", eps, groups=2)
    yield "linear", _linear
    yield "conv", _conv
    yield "cat", lambda b, x: b.cat((x, b.unary("tanh", x)), 1)
    yield "stack", lambda b, x: b.stack((x, b.unary("tanh", x)), 1)


STEPS = dict(_steps())
_JOINED = {f"{op} {first}" for op in ("add", "sub", "mul", "div", "maximum", "minimum")
           for first in (True, False)}  # fmt: skip


def _is_joined(name):
    words = name.split()
    return f"{words[0]} {words[-1]}" in _JOINED


def pairs(*, everything):
    """Names of two steps: all pairs, or those that rules look for."""
    if everything:
        return product(STEPS, STEPS)
    joined = [each for each in STEPS if _is_joined(each)]
    alone = [each for each in STEPS if not _is_joined(each)]
    bounded = [each for each in STEPS
               if each.split()[0] in ("relu", "abs", "leaky_relu", "elu", "clamp")]  # fmt: skip
    shifted = ("softmax 2", "log_softmax 1", "layer_norm 1e-05", "layer_norm 0.0",
               "group_norm 1e-05", "instance_norm 1e-05", "sub its mean True",
               "avg_pool 2 2")  # fmt: skip
    return chain(
        product(STEPS, ("amax (2,)", "amin (2,)", "max_pool 2 2", "sub its log-sum-exp True")),
        product(alone, bounded),
        product((*joined, "linear", "conv", "batch_norm 0.0", "batch_norm 1e-05"), shifted),
        product(("linear", "conv"), STEPS),
        [each for number, each in enumerate(product(joined, joined)) if number % 41 == 0],
    )


def pair(first, second):
    """The arena and the result of one step after another; nothing where they do not fit."""
    b = Build(Arena())
    x = b.input("x", SHAPE, "float64")
    try:
        made = STEPS[second](b, STEPS[first](b, x))
    except (AssertionError, ValueError, IndexError):
        return None
    if any(n < 1 for n in b.arena.shape(made)):
        return None
    return b.arena, made
