"""Losses of rows of logits against the numbers of their classes."""

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.around import DTYPES
from kernelsmith.propose.rules.kinds.candidate import Parts, Written, cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.entropy.reading import Entropy, read
from kernelsmith.propose.rules.kinds.trace import Traced
from kernelsmith.propose.rules.space import Parameters, Space


def recognise(traced: Traced, backend: str) -> Written:
    """``cross_entropy`` or ``nll_loss`` against classes by number, smoothed or not, or written out.

    Raises:
        NotRecognised: It is something else.
    """
    entropy = read(traced)
    render = _render_cpu if backend == "cpu" else _render_triton
    does = (
        "Each row is read once for its maximum and sum, then the rows are added up in order."
        if entropy.normalised
        else "One element of each row is read, then the rows are added up in order."
    )
    return Written(
        backend=backend, module=traced.module, space=_space(backend), does=does,
        render=lambda chosen: render(entropy, chosen),
    )  # fmt: skip


def _space(backend: str) -> Space:
    if backend == "cpu":
        made = [
            p.width(), p.unroll("2", "vectors in flight hide latency"), p.math(),
            p.choice("passes", ("multi", "online"), "maximum and sum in one sweep", safe="multi"),
            *p.threads(),
        ]  # fmt: skip
        return p.a_space("entropy", made, (
            {}, {"unroll": "4"}, {"passes": "online"}, {"width": "8"},
        ))  # fmt: skip
    made = [
        p.sized("block", "4096", "logits per step", "1024", "2048", "4096", "8192", "16384"),
        p.sized("rows", "1", "rows per program", "1", "2", "4"), p.warps("8"), p.evict(),
    ]  # fmt: skip
    return p.a_space("entropy", made, (
        {}, {"warps": "4"}, {"block": "2048", "warps": "4"}, {"block": "8192", "warps": "16"},
        {"rows": "2"},
    ))  # fmt: skip


def _render_cpu(entropy: Entropy, chosen: Parameters) -> Parts:
    online, spread = chosen["passes"] == "online", entropy.average != 0
    text = "#include <vector>\n" + prelude.VECTORS.format(
        width=chosen["width"], unroll=chosen["unroll"], store=prelude.STORE["plain"]
    ) + prelude.SIMPLE  # fmt: skip
    text += prelude.functions({"exp"}, polynomial=chosen["math"] == "poly")
    text += prelude.SUMS["blocked"]
    if not entropy.normalised:
        body = []
    elif online:
        text += prelude.ONLINE
        body = [
            "Online seen;",
            *(["Sum plain;"] if spread else []),
            "sweep(dim, [&](auto at, int u) {",
            "  const vec v = load(row, at);",
            *(["  plain.add(v, at, u);"] if spread else []),
            "  seen.add(v, at, u);",
            "});",
            "const float top = seen.maximum(), sum = seen.total(top);",
            *(["const float below = top - plain.total() / float(dim);"] if spread else []),
        ]
    else:
        text += prelude.EXTREME.format(name="Max", worst="-INFINITY", pick="vmax")
        body = [
            "Max most;",
            "sweep(dim, [&](auto at, int u) { most.add(load(row, at), at, u); });",
            "const float top = most.total();",
            f"Sum all{', plain' if spread else ''};",
            "sweep(dim, [&](auto at, int u) {",
            "  const vec v = load(row, at) - top;",
            *(["  plain.add(v, at, u);"] if spread else []),
            "  all.add(vexp(v), at, u);",
            "});",
            "const float sum = all.total();",
            *(["const float below = -plain.total() / float(dim);"] if spread else []),
        ]
    if entropy.normalised:
        loss = f"{entropy.scale!r}f * std::log(sum) + {entropy.picked!r}f * (top - own)"
        loss += f" + {entropy.average!r}f * below" if spread else ""
    else:
        loss = f"-{entropy.picked!r}f * own"
    arguments = [("const T*", "logits"), ("const int64_t*", "targets"), ("T*", "out"),
                 ("int64_t", "rows"), ("int64_t", "dim")]  # fmt: skip
    end = {
        "none": ["for (int64_t i = 0; i < rows; ++i) out[i] = T(losses[i]);"],
        "sum": ["out[0] = T(float(total));"], "mean": ["out[0] = T(float(total / count));"],
    }[entropy.reduction]  # fmt: skip
    lines = [
        "// Returns how many targets are no class.",
        "template <class T>",
        f"static int64_t kernel({', '.join(f'{kind} {name}' for kind, name in arguments)}) {{",
        "  std::vector<float> losses(rows);",
        "  int64_t count = 0, missing = 0;",
        p.pragma(chosen, "rows * dim") + " reduction(+ : count, missing)",
        "  for (int64_t i = 0; i < rows; ++i) {",
        "    const int64_t target = targets[i];",
        *([f"    if (target == {entropy.ignored}) continue;"] if entropy.ignores else []),
        "    if (target < 0 || target >= dim) {",
        "      ++missing;",
        "      continue;",
        "    }",
        "    const T* row = logits + i * dim;",
        *[f"    {line}" for line in body],
        "    const float own = float(row[target]);",
        f"    losses[i] = {loss};",
        "    ++count;",
        "  }",
        "  double total = 0;",
        "  for (int64_t i = 0; i < rows; ++i) total += losses[i];",
        *[f"  {line}" for line in end],
        "  return missing;",
        "}",
        "",
    ]
    text += "\n".join(lines) + cpp_entries(arguments, "int64_t")
    x, y = entropy.logits, entropy.targets
    return Parts(
        kernel=cpp_library(text), fits=entropy.fits("RUN"),
        launch=(*entropy.prepared(), f"if RUN[{x}.dtype]({x}, {y}, out, rows, dim):",
                '    raise IndexError("a target is out of bounds")', "return out"),
    )  # fmt: skip


_LOSSES = """\
@triton.jit
def losses(logits, targets, partial, rows, dim, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    there = row < rows
{sums}    target = tl.load(targets + row, mask=there, other={ignored})
    known = there & (target >= 0) & (target < dim)
    own = tl.load(logits + row * dim + target, mask=known, other=0.0).to(tl.float32)
    counts = there & (target != {ignored})
    tl.store(partial + row, tl.where(counts, {loss}, 0.0), mask=there)


@triton.jit
def added(partial, targets, out, rows, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    count = tl.zeros([BLOCK], tl.float32)
    for start in range(0, rows, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < rows
        total += tl.load(partial + at, mask=inside, other=0.0)
        target = tl.load(targets + at, mask=inside, other={ignored})
        count += tl.where(inside & (target != {ignored}), 1.0, 0.0)
    tl.store(out, tl.sum(total, axis=0){by})"""


_SUMS = """\
    most = tl.full([ROWS, BLOCK], -3.4028234e38, tl.float32)
    total = tl.zeros([ROWS, BLOCK], tl.float32)
{none}    for start in range(0, dim, BLOCK):
        at = start + tl.arange(0, BLOCK)[None, :]
        inside = there & (at < dim)
        value = tl.load(
            logits + row * dim + at, mask=inside, other=float("-inf"){evict}
        ).to(tl.float32)
        grown = tl.exp(-tl.abs(value - most))
        total = tl.where(value > most, total * grown + 1.0, total + grown)
        most = tl.where(value > most, value, most)
{each}    top = tl.max(most, axis=1, keep_dims=True)
    total = tl.sum(total * tl.exp(most - top), axis=1, keep_dims=True)
{below}"""


def _sums(entropy: Entropy, evict: str) -> tuple[str, str]:
    """How a row's maximum and sums are found, and the loss that follows."""
    if not entropy.normalised:
        return "", f"-{entropy.picked!r} * own"
    loss = f"{entropy.scale!r} * tl.log(total) + {entropy.picked!r} * (top - own)"
    if not entropy.average:
        return _SUMS.format(evict=evict, none="", each="", below=""), loss
    text = _SUMS.format(
        evict=evict, none="    plain = tl.zeros([ROWS, BLOCK], tl.float32)\n",
        each="        plain += tl.where(inside, value, 0.0)\n",
        below="    below = top - tl.sum(plain, axis=1, keep_dims=True) / dim\n",
    )  # fmt: skip
    return text, f"{loss} + {entropy.average!r} * below"


def _render_triton(entropy: Entropy, chosen: Parameters) -> Parts:
    evict = ', eviction_policy="evict_first"' if chosen["evict"] == "first" else ""
    by = " / tl.sum(count, axis=0)" if entropy.reduction == "mean" else ""
    sums, loss = _sums(entropy, evict)
    kernel = _LOSSES.format(sums=sums, loss=loss, ignored=entropy.ignored, by=by)
    x, y = entropy.logits, entropy.targets
    target = "out" if entropy.reduction == "none" else "partial"
    launch = [
        f"block = min({chosen['block']}, triton.next_power_of_2(dim))",
        *([f"partial = torch.empty(rows, dtype=torch.float32, device={x}.device)"]
          if target == "partial" else []),
        f"losses[(triton.cdiv(rows, {chosen['rows']}),)]({x}, {y}, {target}, rows, dim, "
        f"ROWS={chosen['rows']}, BLOCK=block, num_warps={chosen['warps']})",
        *([f"added[(1,)](partial, {y}, out, rows, BLOCK=4096, num_warps=16)"]
          if target == "partial" else []),
    ]  # fmt: skip
    return Parts(
        kernel=kernel, fits=entropy.fits(DTYPES), launch=(*entropy.prepared(), *launch,
                                                          "return out"),
    )  # fmt: skip
