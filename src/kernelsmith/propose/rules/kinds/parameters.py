"""Parameters that several kinds share, and the seeds of a space."""

from collections.abc import Sequence

from kernelsmith.propose.rules.space import Parameter, Parameters, Seed, Space

THROUGH_A_SPAN = (
    "      int64_t i = s * span;",
    "      if (i + span <= inner) {",
    "        down(Full{i}, std::integral_constant<int, U>());",
    "        continue;",
    "      }",
    "      for (; i + W <= inner; i += W) down(Full{i}, std::integral_constant<int, 1>());",
    "      if (i < inner) down(Part{i, int(inner - i)}, std::integral_constant<int, 1>());",
    "    }",
)
"""Lines of C++ that call ``down`` for every vector of the span ``s``: many, single ones, a rest."""


def a_space(template: str, parameters: Sequence[Parameter], wanted: Sequence[Parameters]) -> Space:
    """A space whose seeds are those of the wanted ones that it can say, each once."""
    choices = {each.name: each.choices for each in parameters}
    defaults = {each.name: each.default for each in parameters}
    seeds: list[Seed] = []
    for each in wanted:
        kept = tuple(
            (k, v) for k, v in each.items() if v in choices.get(k, ()) and defaults[k] != v
        )
        if kept not in seeds:
            seeds.append(kept)
    return Space(template=template, parameters=tuple(parameters), seeds=tuple(seeds))


def width(default: str = "16") -> Parameter:
    """Floats per vector."""
    return Parameter(
        name="width", choices=("4", "8", "16"), default=default, why="floats per vector"
    )


def unroll(default: str, why: str, *choices: str) -> Parameter:
    """Vectors per step."""
    return Parameter(
        name="unroll", choices=choices or ("1", "2", "4", "8"), default=default, why=why
    )


def threads(serial_below: str = "16384") -> list[Parameter]:
    """How the work is handed to threads."""
    return [
        Parameter(name="schedule", choices=("static", "dynamic"), default="static",
                  why="how threads share the tasks", ordered=False),
        Parameter(name="threads", choices=("1", "all"), default="all",
                  why="one thread starts at once"),
        Parameter(name="serial_below", choices=("0", "4096", "16384", "65536"),
                  default=serial_below, why="small inputs are not worth waking threads for"),
    ]  # fmt: skip


def stores() -> Parameter:
    """Whether outputs go past the caches."""
    return Parameter(name="stores", choices=("plain", "stream"), default="plain", ordered=False,
                     why="outputs that nobody reads soon need no cache")  # fmt: skip


def math() -> Parameter:
    """Whose exponentials and the like."""
    return Parameter(name="math", choices=("poly", "libm"), default="poly", safe="libm",
                     why="polynomials run in vectors", ordered=False)  # fmt: skip


def sized(name: str, default: str, why: str, *choices: str) -> Parameter:
    """An ordered choice of sizes."""
    return Parameter(name=name, choices=choices, default=default, why=why)


def warps(default: str = "4") -> Parameter:
    """Warps per program."""
    return sized("warps", default, "warps per program", "1", "2", "4", "8", "16")


def evict() -> Parameter:
    """What the caches should keep."""
    return Parameter(name="evict", choices=("none", "first"), default="none", ordered=False,
                     why="inputs that are read once should leave the cache first")  # fmt: skip


def pragma(chosen: Parameters, work: str, *, collapse: int = 1) -> str:
    """The OpenMP line over a loop of tasks."""
    count = "" if chosen["threads"] == "all" else f" num_threads({chosen['threads']})"
    over = f" collapse({collapse})" if collapse > 1 else ""
    return (
        f"#pragma omp parallel for{over} schedule({chosen['schedule']}){count} "
        f"if ({work} > {chosen['serial_below']})"
    )


def choice(name: str, choices: tuple[str, ...], why: str, *, safe: str | None = None) -> Parameter:
    """A choice without order; the first is the default."""
    return Parameter(
        name=name, choices=choices, default=choices[0], why=why, ordered=False, safe=safe
    )


def precision(*exact: str, smaller: Seed = ()) -> Parameter:
    """How a convolution multiplies float32: in TF32, or in one of these; the first is safe.

    ``smaller`` is what else to choose where it may not round: factors that are split take room.
    """
    return Parameter(
        name="precision", choices=("tf32", *exact), default="tf32", ordered=False, safe=exact[0],
        rounded=(("tf32", (("precision", exact[0]), *smaller)),),
        why="how float32 is multiplied; tf32 is what torch's own convolutions do, where they may",
    )  # fmt: skip


def down_columns(chosen: Parameters, body: Sequence[str]) -> list[str]:
    """Lines of C++ that go down columns, as many side by side as there are lanes.

    The body is written once, for ``many`` vectors from column ``from`` on.
    """
    return [
        "  constexpr int64_t span = int64_t(U) * W;",
        "  const int64_t spans = (inner + span - 1) / span;",
        pragma(chosen, "outer * length * inner", collapse=2),
        "  for (int64_t o = 0; o < outer; ++o)",
        "    for (int64_t s = 0; s < spans; ++s) {",
        "      const int64_t first = o * length * inner;",
        "      auto down = [&](auto from, auto wide) {",
        "        constexpr int many = decltype(wide)::value;",
        *[f"        {line}" for line in body],
        "      };",
        *THROUGH_A_SPAN,
    ]
