"""Tasks over grids, drawn at random: shapes, ways of reading, work before and behind."""

import random

from rule_tasks import a_task

from kernelsmith.domain.task import Task

SIZES = (1, 2, 3, 5, 7, 17, 40, 67, 130)
BEHIND = ("{}", "torch.tanh({})", "{} * 0.5 + 1.25", "F.silu({})", "F.relu({}) - 0.25 * {}")


def _shape(rng: random.Random, rank: int, largest: int = 8192) -> list[int]:
    while True:
        made = [rng.choice(SIZES) for _ in range(rank)]
        size = 1
        for each in made:
            size *= each
        if size <= largest:
            return made


def _tensor(sizes: list[int]) -> str:
    return f"torch.randn({', '.join(map(str, sizes))})"


def _numbers(rng: random.Random, below: int, sizes: list[int], *, negative: bool = False) -> str:
    low = -below if negative and rng.random() < 0.5 else 0
    return f"torch.randint({low}, {below}, ({', '.join(map(str, sizes))},))"


def a_gather(seed: int) -> Task:
    """A look-up of some form, with elementwise work behind it."""
    rng = random.Random(f"gather {seed}")
    form = rng.choice(["brackets", "inner", "pair", "gather", "take", "select", "bag", "combined",
                       "scaled"])  # fmt: skip
    x = _shape(rng, rng.choice([2, 3]) if form != "pair" else 3, 4096)
    rank, names, more = len(x), "x, ids", []
    dim = rng.randrange(rank)
    if form == "brackets":
        ids, read = (
            _numbers(rng, x[0], _shape(rng, rng.choice([1, 2]), 40), negative=True),
            "x[ids]",
        )
    elif form == "inner":
        ids, read = _numbers(rng, x[1], _shape(rng, 1), negative=True), "x[:, ids]"
    elif form == "pair":
        n = _shape(rng, 1)
        ids, read, names = _numbers(rng, x[0], n, negative=True), "x[ids, other]", "x, ids, other"
        more = [_numbers(rng, x[1], n, negative=True)]
    elif form == "gather":
        sizes = [rng.choice(SIZES[:7]) if i == dim else n for i, n in enumerate(x)]
        ids, read = (
            _numbers(rng, x[dim], sizes),
            f"torch.gather(x, {dim - rng.choice([0, rank])}, ids)",
        )
    elif form == "take":
        sizes = [
            rng.choice(SIZES[1:7]) if i == dim else rng.choice([1, n]) for i, n in enumerate(x)
        ]
        ids, read = _numbers(rng, x[dim], sizes), f"torch.take_along_dim(x, ids, {dim})"
    elif form == "select":
        ids, read = _numbers(rng, x[dim], _shape(rng, 1, 40)), f"x.index_select({dim}, ids)"
    else:
        x, bags = _shape(rng, 2, 4096), _shape(rng, 2, 70)
        ids = _numbers(rng, x[0], bags, negative=True)
        how = rng.choice(["sum", "mean", "amax", "amin"])
        weighted = "x[ids] * w.unsqueeze(-1)" if rng.random() < 0.5 else "x[ids] * w[..., None]"
        read, names, more = f"({weighted}).{how}(dim=1)", "x, ids, w", [_tensor(bags)]
        if form == "combined":
            read, names = f"r + {read}", "x, ids, w, r"
            more.append(_tensor([bags[0], x[1]]))
        elif form == "scaled":
            read, names = f"{read} / (1 + r.abs()[:, None])", "x, ids, w, r"
            more.append(_tensor([bags[0]]))
    behind = rng.choice(BEHIND).replace("{}", "y")
    return a_task(
        f"y = {read}\nreturn {behind}", names=names, inputs=", ".join([_tensor(x), ids, *more])
    )


def a_broadcast(seed: int) -> Task:
    """Tensors of which some miss dimensions, or have one element along them."""
    rng = random.Random(f"broadcast {seed}")
    full = [n if n > 1 else 4 for n in _shape(rng, rng.choice([3, 4]))]
    inputs, terms = [_tensor(full)], ["a0"]
    for i in range(1, rng.choice([2, 3, 4])):
        sizes = [n if rng.random() < 0.5 else 1 for n in full]
        if i == 1:  # neither a row, nor a column, nor all
            sizes = [n if (k == 1) else 1 for k, n in enumerate(full)]
        if rng.random() < 0.3:
            kept = [n for n in sizes if n > 1] or [full[-1]]
            if len(kept) == 1 and kept[0] in sizes:
                at = sizes.index(kept[0])
                listed = ", ".join("-1" if k == at else "1" for k in range(len(full)))
                terms.append(f"a{i}.view({listed})")
                inputs.append(_tensor(kept))
                continue
        terms.append(f"a{i}")
        inputs.append(_tensor(sizes))
    text = terms[0]
    for each in terms[1:]:
        sign = rng.choice(["{} + {}", "{} * {}", "torch.maximum({}, {})", "{} * torch.sigmoid({})"])
        text = sign.format(f"({text})", each)
    names = ", ".join(f"a{i}" for i in range(len(inputs)))
    behind = rng.choice(BEHIND).replace("{}", "y")
    return a_task(f"y = {text}\nreturn {behind}", names=names, inputs=", ".join(inputs))


def a_mixed(seed: int) -> Task:
    """A reduction over dimensions that are not side by side, or of what broadcasts."""
    rng = random.Random(f"mixed {seed}")
    if rng.random() < 0.3:
        return a_pool(seed)
    rank = rng.choice([3, 4])
    x = [n if n > 1 else 3 for n in _shape(rng, rank)]
    gone = rng.choice([(0, 2), (0, 2), (1, 3), (0, 2, 3), (0, 3)] if rank == 4 else [(0, 2)])
    keep = rng.random() < 0.5
    how = rng.choice(["sum", "mean", "amax", "amin"])
    before = rng.choice(["x", "x * x", "torch.tanh(x)", "x * w"])
    shape = [1 if i in gone else n for i, n in enumerate(x)]
    w = shape if rng.random() < 0.5 else x
    behind = rng.choice(BEHIND).replace("{}", "y")
    names, inputs = ("x, w", f"{_tensor(x)}, {_tensor(w)}") if "w" in before else ("x", _tensor(x))
    return a_task(
        f"y = ({before}).{how}(dim={gone}, keepdim={keep})\nreturn {behind}", names=names,
        inputs=inputs,
    )  # fmt: skip


def a_pool(seed: int) -> Task:
    """An adaptive pool whose tiles are equal."""
    rng = random.Random(f"pool {seed}")
    ndim = rng.choice([1, 2, 2, 3])
    out = [rng.choice([1, 2, 3, 5]) for _ in range(ndim)]
    x = [rng.choice([1, 2, 3]), rng.choice([1, 4]), *(n * rng.choice([1, 2, 3, 7]) for n in out)]
    how, behind = rng.choice(["avg", "max"]), rng.choice(BEHIND).replace("{}", "y")
    return a_task(f"y = F.adaptive_{how}_pool{ndim}d(x, {tuple(out)})\nreturn {behind}",
                  inputs=_tensor(x))  # fmt: skip


def a_window(seed: int) -> Task:
    """A pool whose last windows may reach beyond the input."""
    rng = random.Random(f"window {seed}")
    ndim, how = rng.choice([1, 2, 2, 3]), rng.choice(["max", "avg"])
    size, stride = rng.choice([2, 3, 4]), rng.choice([1, 2, 3, 4])
    pad = rng.choice([0, 1])
    more = f", dilation={rng.choice([1, 2])}" if how == "max" else ", count_include_pad=False"
    x = [2, 3, *(rng.choice([9, 10, 11, 12, 17]) for _ in range(ndim - 1)), rng.choice([37, 70])]
    call = f"F.{how}_pool{ndim}d(x, {size}, {stride}, {pad}, ceil_mode=True{more})"
    return a_task(f"y = {call}\nreturn {rng.choice(BEHIND).replace('{}', 'y')}", inputs=_tensor(x))


def a_scatter(seed: int) -> Task:
    """Rows or elements added up where numbers say."""
    rng = random.Random(f"scatter {seed}")
    rank = rng.choice([1, 2, 2, 3])
    source = _shape(rng, rank, 4096)
    source = [n if n > 1 else 4 for n in source]
    dim, many = rng.randrange(rank), rng.choice(SIZES)
    sizes = [many if i == dim else n for i, n in enumerate(source)]
    made = ", ".join(map(str, sizes))
    base = rng.choice([f"x.new_zeros({made})", "base", "torch.zeros_like(base)",
                       f"torch.zeros({made}, dtype=x.dtype)"])  # fmt: skip
    value = rng.choice(["x", "x * 0.5", "torch.tanh(x) * w", "x * w"])
    if rng.random() < 0.5:
        ids, call = _numbers(rng, many, [source[dim]]), f"index_add({dim}, ids, {value})"
    else:
        index = "ids"
        ids = _numbers(rng, many, source)
        if rank == 2 and dim == 0 and rng.random() < 0.5:
            ids, index = _numbers(rng, many, source[:1]), "ids[:, None].expand_as(x)"
        call = f"scatter_add({dim}, {index}, {value})"
    shape = [n if rng.random() < 0.6 else 1 for n in source]
    behind = rng.choice((*BEHIND[:4], "F.relu(y) * base")).replace("{}", "y")
    names, inputs = ["x", "ids"], [_tensor(source), ids]
    if "w" in value:
        names.append("w")
        inputs.append(_tensor(shape))
    if "base" in base + behind:
        names.append("base")
        inputs.append(_tensor(sizes))
    text = f"y = {base}.{call}\nreturn {behind}"
    if base != "base" and rng.random() < 0.5:
        text = f"y = {base}\ny.{call.replace('_add(', '_add_(', 1)}\nreturn {behind}"
    return a_task(text, names=", ".join(names), inputs=", ".join(inputs))


DRAWN = {"scatter": a_scatter, "gather": a_gather, "broadcast": a_broadcast, "mixed": a_mixed,
         "window": a_window}  # fmt: skip
