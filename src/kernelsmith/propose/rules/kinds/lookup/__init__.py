"""Rows of a table by number (embeddings), with elementwise work on them."""

from dataclasses import dataclass

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.graph import Kind, Node, NotRecognised, Shape
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.around import DTYPES
from kernelsmith.propose.rules.kinds.candidate import Parts, Written, cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.lowering import Lowering
from kernelsmith.propose.rules.kinds.texts import Texts, cpp_functions, triton_functions
from kernelsmith.propose.rules.kinds.trace import Expr, Traced
from kernelsmith.propose.rules.space import Parameters, Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """``after(table[ids])``."""

    ids: str
    table: str
    nodes: tuple[Node, ...]
    made: int
    output: int

    @property
    def numbers(self) -> dict[int, str]:
        """Numbers that are known at call time, by node."""
        return {i: n.text for i, n in enumerate(self.nodes) if n.kind is Kind.NUMBER}

    def fits(self, dtypes: str) -> tuple[str, ...]:
        """When the kernel may run."""
        return (f"{self.table}.dtype in {dtypes}", f"{self.ids}.dtype is torch.int64",
                f"{self.ids}.numel() > 0", f"{self.table}.is_contiguous()")  # fmt: skip

    def prepared(self) -> list[str]:
        """Lines of ``forward`` up to the launch."""
        return [
            f"{self.ids} = {self.ids}.contiguous()",
            f"table, count = {self.table}, {self.ids}.numel()",
            "tokens, dim = table.shape",
            f"out = table.new_empty((*{self.ids}.shape, dim))",
        ]


def recognise(traced: Traced, backend: str) -> Written:
    """A ``torch.nn.Embedding`` of an input, and what is elementwise behind it.

    Raises:
        NotRecognised: It is something else.
    """
    lookup = _read(traced)
    render = _render_cpu if backend == "cpu" else _render_triton
    return Written(
        backend=backend, module=traced.module, space=_space(backend),
        render=lambda chosen: render(lookup, chosen),
        does="Rows of the table go straight to where they belong, changed on the way.",
    )  # fmt: skip


def _read(traced: Traced) -> Lookup:
    found: list[Expr] = []

    def leaf(lowering: Lowering, expr: Expr) -> int | None:
        if expr.op == "layer" and expr.setting("kind") == "Embedding":
            found.append(expr)
            return lowering.build.add(Node(kind=Kind.INPUT, text="<row>", shape=Shape.FULL))
        if expr.op in ("input", "parameter"):
            raise NotRecognised("rules know nothing but numbers behind an embedding")
        return None

    if not isinstance(traced.result, Expr):
        raise NotRecognised("rules find no embedding")
    lowering = Lowering(leaf)
    output = lowering.lower(traced.result)
    if len(found) != 1 or len(found[0].args) != 1:
        raise NotRecognised("rules know one embedding at a time")
    layer, ids = found[0], found[0].args[0]
    known = {"kind", "num_embeddings", "embedding_dim", "padding_idx"}
    if not {name for name, _ in layer.settings} <= known:
        raise NotRecognised("rules do not know an embedding with norms")
    if not isinstance(ids, Expr) or ids.op != "input" or not ids.integer:
        raise NotRecognised("rules know embeddings of an input")
    nodes, output = lowering.needed(output, traced.module.task)
    made = next(i for i, n in enumerate(nodes) if n.kind is Kind.INPUT)
    return Lookup(ids=ids.text, table=f"{layer.text}.weight", nodes=nodes, made=made, output=output)


def _space(backend: str) -> Space:
    if backend == "cpu":
        made = [
            p.width(), p.unroll("4", "vectors per step"),
            p.sized("ahead", "2", "rows that are asked for ahead", "0", "1", "2", "4"),
            *p.threads(), p.choice("stores", ("stream", "plain"), "whether outputs are cached"),
        ]  # fmt: skip
        return p.a_space("lookup", made, (
            {}, {"stores": "plain"}, {"ahead": "0"}, {"ahead": "4"},
            {"width": "8", "ahead": "1"},
        ))  # fmt: skip
    made = [
        p.sized("block", "1024", "elements of a row per program", "256", "512", "1024", "2048"),
        p.sized("rows", "1", "rows per program", "1", "2", "4", "8"), p.warps("4"),
    ]  # fmt: skip
    return p.a_space("lookup", made, (
        {}, {"rows": "4"}, {"block": "2048", "warps": "8"}, {"block": "512", "rows": "4"},
    ))  # fmt: skip


def _render_cpu(lookup: Lookup, chosen: Parameters) -> Parts:
    text = prelude.VECTORS.format(
        width=chosen["width"], unroll=chosen["unroll"], store=prelude.STORE[chosen["stores"]]
    ) + prelude.SIMPLE + cpp_functions(lookup.nodes, polynomial=True, also=frozenset())  # fmt: skip
    arguments = [
        ("const T*", "table"), ("const int64_t*", "ids"), ("T*", "out"), ("int64_t", "count"),
        ("int64_t", "tokens"), ("int64_t", "dim"), *[("float", f"s{n}") for n in lookup.numbers],
    ]  # fmt: skip
    texts = Texts(lookup.nodes, {lookup.made: "value"} | {n: f"s{n}" for n in lookup.numbers},
                  cpp=True)  # fmt: skip
    inside = texts.lines([lookup.output])
    ahead: list[str] = []
    if chosen["ahead"] != "0":
        ahead = [
            f"    if (i + {chosen['ahead']} < count) {{  // a later row is on its way meanwhile",
            f"      const int64_t next = ids[i + {chosen['ahead']}];",
            "      if (next >= 0 && next < tokens)",
            "        for (int64_t k = 0; k < std::min<int64_t>(dim, 1024); k += 64 / sizeof(T))",
            "          __builtin_prefetch(table + next * dim + k);",
            "    }",
        ]
    lines = [
        "// Returns how many numbers are not in the table.",
        "template <class T>",
        f"static int64_t kernel({', '.join(f'{kind} {name}' for kind, name in arguments)}) {{",
        "  int64_t missing = 0;",
        p.pragma(chosen, "count * dim") + " reduction(+ : missing)",
        "  for (int64_t i = 0; i < count; ++i) {",
        *ahead,
        "    const int64_t id = ids[i];",
        "    if (id < 0 || id >= tokens) {",
        "      ++missing;",
        "      continue;",
        "    }",
        "    const T* row = table + id * dim;",
        "    T* to = out + i * dim;",
        "    sweep(dim, [&](auto at, int) {",
        "      const vec value = load(row, at);",
        *[f"      {line}" for line in inside],
        f"      store(to, at, {texts.name(lookup.output)});",
        "    });",
        "  }",
        "  return missing;",
        "}",
        "",
    ]
    text += "\n".join(lines) + cpp_entries(arguments, "int64_t")
    given = ", ".join(["table", lookup.ids, "out", "count", "tokens", "dim",
                       *lookup.numbers.values()])  # fmt: skip
    return Parts(
        kernel=cpp_library(text), fits=lookup.fits("RUN"),
        launch=(*lookup.prepared(), f"if RUN[table.dtype]({given}):",
                '    raise IndexError("index out of range in self")', "return out"),
    )  # fmt: skip


def _render_triton(lookup: Lookup, chosen: Parameters) -> Parts:
    texts = Texts(lookup.nodes, {lookup.made: "value"} | {n: f"s{n}" for n in lookup.numbers},
                  cpp=False)  # fmt: skip
    inside = texts.lines([lookup.output])
    numbers = "".join(f"s{n}, " for n in lookup.numbers)
    lines = [
        "@triton.jit",
        f"def rows_of(table, ids, out, count, tokens, dim, {numbers}"
        "ROWS: tl.constexpr, BLOCK: tl.constexpr):",
        "    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]",
        "    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]",
        "    id = tl.load(ids + row, mask=row < count, other=0)",
        "    inside = (row < count) & (at < dim)",
        "    known = inside & (id >= 0) & (id < tokens)",
        "    value = tl.load(table + id * dim + at, mask=known, other=0.0).to(tl.float32)",
        *[f"    {line}" for line in inside],
        f"    tl.store(out + row * dim + at, {texts.name(lookup.output)}, mask=inside)",
    ]
    given = ", ".join(["table", lookup.ids, "out", "count", "tokens", "dim",
                       *lookup.numbers.values()])  # fmt: skip
    return Parts(
        kernel=triton_functions(lookup.nodes) + "\n".join(lines), fits=lookup.fits(DTYPES),
        launch=(
            *lookup.prepared(),
            f"block = min({chosen['block']}, triton.next_power_of_2(dim))",
            f"grid = (triton.cdiv(count, {chosen['rows']}), triton.cdiv(dim, block))",
            f"rows_of[grid]({given}, ROWS={chosen['rows']}, BLOCK=block, "
            f"num_warps={chosen['warps']})",
            "return out",
        ),
    )  # fmt: skip
