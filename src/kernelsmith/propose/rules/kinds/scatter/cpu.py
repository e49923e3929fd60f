"""A scatter as C++: whoever owns a part of the sums adds what belongs there."""

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.kinds.candidate import Parts, cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.parameters import pragma
from kernelsmith.propose.rules.kinds.scatter.graph import Scatter
from kernelsmith.propose.rules.kinds.spread.cpu import LANES, Access, indented, swept, values
from kernelsmith.propose.rules.kinds.spread.graph import leaf_nodes
from kernelsmith.propose.rules.kinds.texts import cpp_functions
from kernelsmith.propose.rules.space import Parameters


def render_cpu(scatter: Scatter, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    names, numbers = scatter.names, scatter.numbers()
    adding, after = Access(scatter.grid), Access(scatter.after.grid)
    adding.names = after.names = names
    after.integers = adding.integers
    body = [*_sums(scatter, adding, chosen, numbers),
            "  if ((const void*)held != (const void*)out) {",
            *indented(swept(scatter.after, after, chosen, numbers), 2), "  }"]  # fmt: skip
    nodes = (*scatter.nodes, *scatter.after.nodes)
    text = prelude.VECTORS.format(
        width=chosen["width"], unroll=chosen["unroll"], store=prelude.STORE["plain"]
    ) + prelude.SIMPLE + LANES  # fmt: skip
    text += cpp_functions(nodes, polynomial=chosen.get("math") != "libm", also=frozenset())
    leaves = (*scatter.grid.leaves, *scatter.after.grid.leaves)
    whole = {leaf.text for leaf in leaves if leaf.integer}
    arguments = [
        *[("float*" if t == "held" else "const int64_t*" if t in whole else "const T*", name)
          for t, name in names.items()],
        ("T*", "out"), ("int64_t", "size"),
        *[("int64_t", name) for name in adding.integers.values()],
        *[("float", name) for name in numbers],
    ]  # fmt: skip
    lines = ["// Returns how many numbers are out of range.", "template <class T>",
             f"static int64_t kernel({', '.join(f'{k} {n}' for k, n in arguments)}) {{",
             "  int64_t missing = 0;", *body, "  return missing;", "}", ""]  # fmt: skip
    text += "\n".join(lines) + cpp_entries(arguments, "int64_t")
    passed = ", ".join([*names.values(), "out", "held.numel()", *adding.integers,
                        *numbers.values()])  # fmt: skip
    return Parts(
        kernel=cpp_library(text), fits=scatter.fits("RUN"),
        launch=(*scatter.prepared("empty"), f"if RUN[{scatter.grid.like}.dtype]({passed}):",
                '    raise IndexError("index out of range")', "return out"),
    )  # fmt: skip


def _sums(
    scatter: Scatter, access: Access, chosen: Parameters, numbers: dict[str, str]
) -> list[str]:
    """Everything set to 0, then added up by owners.

    Where the first group of the grid is a dimension of the sums as well, its parts never meet
    and are the owners; else ranges of numbers are, and each owner reads all numbers.
    """
    grid, inner, target = scatter.grid, scatter.inner, scatter.target
    outer = list(range(inner))
    lengths = access.lengths()
    terms = grid.terms(target)
    (to,) = [t for t in terms if t.index is not None]
    assert to.index is not None
    count = access.integer(grid.leaves[target].size(to.dim))
    apart = inner > 0 and any(t.group == 0 for t in terms)
    owners = lengths[0] if apart else chosen["owners"]
    walked = outer[1:] if apart else outer
    fixed, inside, value = values(access, scatter.nodes, scatter.output, inner, numbers)
    addresses = [line for leaf in leaf_nodes(scatter.nodes).values()
                 for line in access.address(leaf, inner, outer)]  # fmt: skip
    late = grid.moves(to.index, inner)
    direct = [access.times("i" if t.group == inner else f"g{t.group}", t.stride)
              for t in terms if t.group is not None]  # fmt: skip
    row = [access.times(f"g{t.group}", t.stride) for t in terms if t.group not in (None, inner)]
    mine = [] if apart else ["if (id < low || id >= high) continue;"]
    count_once = "++missing" if apart else "missing += owner == 0"
    check = [f"if (id < 0 || id >= {count}) {{", f"  {count_once};", "  continue;", "}", *mine]
    far = access.times("id", to.stride)
    if late:
        step = [
            *addresses, *fixed,
            "sweep(inner, [&](auto at, int) {", *indented(inside, 2),
            f"  const vec terms = {value};",
            "  for (int k = 0; k < lanes_of(at); ++k) {",
            "    const int64_t i = at.i + k;",
            f"    const int64_t id = {access.element(to.index, inner, outer)};",
            *indented(check, 4), f"    held[{' + '.join([*direct, far])}] += terms[k];",
            "  }", "});",
        ]  # fmt: skip
    else:
        ahead = [f"const int64_t id = {access.element(to.index, None, outer)};", *check]
        along = [t for t in terms if t.group == inner]
        place = " + ".join(["held", *row, far])
        if along and along[0].stride == "1":
            add = [*indented(inside, 2), f"  store(to, at, load(to, at) + {value});"]
        else:
            stride = access.times("(at.i + k)", along[0].stride) if along else "0"
            add = [*indented(inside, 2), f"  const vec terms = {value};",
                   "  for (int k = 0; k < lanes_of(at); ++k)",
                   f"    to[{stride}] += terms[k];"]  # fmt: skip
        step = [*ahead, *addresses, *fixed, f"float* to = {place};",
                "sweep(inner, [&](auto at, int) {", *add, "});"]  # fmt: skip
    head = (
        ["const int64_t g0 = owner;"]
        if apart
        else [f"const int64_t low = {count} * owner / owners;",
              f"const int64_t high = {count} * (owner + 1) / owners;"]
    )  # fmt: skip
    many = " * ".join(lengths[g] for g in walked) or "1"
    return [
        f"  const int64_t inner = {lengths[inner]}, rows = {many}, owners = {owners};",
        pragma(chosen, "size"),
        "  for (int64_t i = 0; i < size; i += 16384)",
        "    std::memset(held + i, 0, sizeof(float) * std::min<int64_t>(16384, size - i));",
        pragma(chosen, "rows * inner") + " reduction(+ : missing)",
        "  for (int64_t owner = 0; owner < owners; ++owner) {",
        *indented(head, 4),
        "    for (int64_t row = 0; row < rows; ++row) {",
        *indented(["int64_t number = row;", *access.decoded(walked, "number")] if walked else [],
                  6),
        *indented(step, 6),
        "    }",
        "  }",
    ]  # fmt: skip
