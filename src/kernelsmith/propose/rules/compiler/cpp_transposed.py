"""Transposed convolutions as a kernel of our own, for small and known sizes.

Outputs that are the stride apart, a phase, have the same weights: each phase is a small ordinary
convolution. The input is copied once with its margin; rows with their margin are one long run, so
that 16 neighbours fill a vector in images of any width. A tile of output channels by neighbours
stays in registers; weights are read where they lie.
"""

from itertools import product
from math import prod

from kernelsmith.propose.rules.compiler.call import Library
from kernelsmith.propose.rules.compiler.cpp_convolution import bias_fits, with_margin
from kernelsmith.propose.rules.compiler.cpp_operands import (
    Own,
    Tensor,
    dense,
    inputs_text,
    kernel_of,
    listed,
)

_TERMS = 256
"""Terms that one chain of additions in float32 takes; the chains are added afterwards."""
_ROWS, _VECTORS = (8, 4), (3, 2, 1)
"""Channels by vectors that fit the registers, best first."""
_PHASES = 16
"""More phases than this are left to the library."""

TRANSPOSED = """\
// R channels by V * 16 places of one phase: DOWN by ACROSS weights for each input channel.
template <int R, int V, int DOWN, int ACROSS>
static inline __attribute__((always_inline)) void add_phase(
    const float* __restrict x, int64_t plane, int64_t wide, int64_t channels, int64_t chain,
    const float* __restrict weight, int64_t next_input, int64_t next_output, int64_t down,
    int64_t right, vec16 (&total)[R][V]) {
  for (int64_t from = 0; from < channels; from += chain) {
    vec16 sum[R][V] = {};
    for (int64_t c = from; c < std::min(channels, from + chain); ++c)
#pragma GCC unroll 4
      for (int j = 0; j < DOWN; ++j)
#pragma GCC unroll 4
        for (int i = 0; i < ACROSS; ++i) {
          vec16 in[V];
#pragma GCC unroll 8
          for (int v = 0; v < V; ++v) in[v] = load16(x + c * plane - j * wide - i + 16 * v);
          const float* some = weight + c * next_input + j * down + i * right;
#pragma GCC unroll 8
          for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
            for (int v = 0; v < V; ++v) sum[r][v] += some[r * next_output] * in[v];
        }
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) total[r][v] += sum[r][v];
  }
}
"""

RUN = """\
  constexpr int64_t plane = {high} * {wide} + {spare};  // of one channel, with its margin
{pragma}
  for (int64_t image = 0; image < {batch} * {inputs}; ++image) {{
    float* to = margin + image * plane;
    std::memset(to, 0, sizeof(float) * plane);
    for (int64_t y = 0; y < {height}; ++y)
      std::memcpy(to + (y + {above}) * {wide} + {left}, x + (image * {height} + y) * {width},
                  sizeof(float) * {width});
  }}
{pragma}
  for (int64_t tile = 0; tile < {batch} * {phases} * ({outputs} / {rows}) * {steps}; ++tile) {{
    // Weights of the same channels lie in the cache while images and phases go by.
    const int64_t step = tile % {steps}, phase = tile / {steps} % {phases};
    const int64_t image = tile / {steps} / {phases} % {batch};
    const int64_t o = tile / {steps} / {phases} / {batch} * {rows};
    const float* around = margin + image * {inputs} * plane;
    vec16 total[{rows}][{vectors}];
    for (int r = 0; r < {rows}; ++r)
      for (int v = 0; v < {vectors}; ++v) total[r][v] = vec16{{}} + {bias};
    int64_t y = 0, x_0 = 0, lines = 0, line = 0;  // the phase's first output, and how many
    switch (phase) {{
{cases}
    }}
    // Places of the run beyond a line's end are margin, and no outputs.
    for (int r = 0; r < {rows}; ++r) {{
      float* to = out + (image * {outputs} + o + r) * {rise} * {run};
      const float* from = (const float*)&total[r];
      int64_t place = step * {vectors} * 16;
      const int64_t end = place + {vectors} * 16;
      for (int64_t q = place / {wide}; q < lines && q * {wide} < end; ++q) {{
        const int64_t first = std::max(place, q * {wide}) - q * {wide};
        const int64_t last = std::min(end, q * {wide} + line) - q * {wide};
        float* along = to + (y + q * {pace_down}) * {run} + x_0;
        const float* some = from + q * {wide} - place;
        for (int64_t i = first; i < last; ++i) along[i * {pace}] = some[i];
      }}
    }}
  }}"""

_CASE = """\
      case {number}:
        if (step * {vectors} * 16 >= {length}) continue;
        y = {y}, x_0 = {x}, lines = {lines}, line = {line};
        add_phase<{rows}, {vectors}, {down}, {across}>(
            around + {begin} + step * {vectors} * 16, plane, {wide}, {inputs}, {chain},
            weight + o * {taps} + {tap}, {next}, {taps}, {tap_down}, {pace}, total);
        break;"""


def transposed(step: Library, given: list[Tensor | None]) -> Own | None:
    """One or two dimensions, all channels together, any stride; none where it is something else."""
    x, weight = given[0], given[1]
    keywords, numbers = dict(step.keywords), listed(step)
    if x is None or weight is None or step.result is None or len(x.shape) not in (3, 4):
        return None
    plain = keywords.get("transposed") is True and keywords.get("groups") == 1
    if not (plain and x.is_dense and weight.is_dense):
        return None
    batch, inputs, *size = x.shape
    _, outputs, *kernel = weight.shape
    if not bias_fits(step, given, outputs):
        return None
    bias = given[2] if len(given) > 2 else None
    pace, edge, apart, more = (
        numbers[each] for each in ("stride", "padding", "dilation", "output_padding")
    )
    result = [
        (n - 1) * s - 2 * p + k + m
        for n, k, s, p, m in zip(size, kernel, pace, edge, more, strict=True)
    ]
    shape = (batch, outputs, *result)
    if step.stride is not None and step.stride != dense(shape):
        return None
    if any(d != 1 for d in apart) or any(k < s for k, s in zip(kernel, pace, strict=True)):
        return None
    rows = next((each for each in _ROWS if outputs % each == 0), None)
    if rows is None or min(result) < 1 or prod(pace) > _PHASES:
        return None
    if len(size) == 1:
        size, result, kernel = [1, *size], [1, *result], [1, *kernel]
        pace, edge = [1, *pace], [0, *edge]
    taps = [-(-k // s) for k, s in zip(kernel, pace, strict=True)]
    before = [max(0, t - 1 - p // s) for t, p, s in zip(taps, edge, pace, strict=True)]
    reach = [(o - 1 + p) // s for o, p, s in zip(result, edge, pace, strict=True)]
    behind = [max(0, q + 1 - n) for q, n in zip(reach, size, strict=True)]
    before[1] = max(before[1], behind[1])  # what lies before a line lies behind the one above it
    high, wide = before[0] + size[0] + behind[0], before[1] + size[1]
    phases = [
        (_phase(0, down, result, pace, edge), _phase(1, right, result, pace, edge))
        for down, right in product(range(pace[0]), range(pace[1]))
    ]
    lengths = [(d[2] - 1) * wide + r[2] for d, r in phases if d[2] and r[2]]
    needed = -(-max(lengths) // 16)
    vectors = min(_VECTORS, key=lambda each: -(-needed // each) * each)
    cases = []
    for number, ((tap_y, y, lines, q_y), (tap_x, left, line, q_x)) in enumerate(phases):
        cases.append(_CASE.format(
            number=number, length=(lines - 1) * wide + line if lines and line else 0, y=y, x=left,
            lines=lines, line=line, rows=rows, vectors=vectors, wide=wide, inputs=inputs,
            down=-(-(kernel[0] - tap_y) // pace[0]), across=-(-(kernel[1] - tap_x) // pace[1]),
            begin=(q_y + before[0]) * wide + q_x + before[1],
            chain=max(1, _TERMS // prod(taps)), taps=prod(kernel),
            tap=tap_y * kernel[1] + tap_x, next=outputs * prod(kernel),
            tap_down=pace[0] * kernel[1], pace=pace[1],
        ))  # fmt: skip
    spare = 16 * vectors + wide
    names = ["x", "weight", *(["bias"] if bias is not None else [])]
    made = kernel_of(
        "transposed", f"{inputs_text(names)}, float* __restrict margin, float* __restrict out",
        2 * prod(shape) * inputs * prod(taps), batch=batch, inputs=inputs, outputs=outputs,
        height=size[0], width=size[1], high=high, wide=wide, spare=spare, above=before[0],
        left=before[1], phases=len(phases), rows=rows, vectors=vectors,
        steps=-(-needed // vectors), rise=result[0], run=result[1], pace_down=pace[0],
        pace=pace[1], bias="bias[o + r]" if bias is not None else "0.0f", cases="\n".join(cases),
    )  # fmt: skip
    kept = (batch, inputs, high * wide + spare)
    return with_margin(made, step.result, [x, weight, bias], kept, shape)


def _phase(
    dim: int, tap: int, result: list[int], pace: list[int], edge: list[int]
) -> tuple[int, int, int, int]:
    """Of the outputs whose first weight is ``tap``: that, the first, how many, where they read."""
    first = (tap - edge[dim]) % pace[dim]
    count = max(0, -(-(result[dim] - first) // pace[dim]))
    return tap, first, count, (first + edge[dim] - tap) // pace[dim]
