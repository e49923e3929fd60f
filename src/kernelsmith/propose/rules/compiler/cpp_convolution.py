"""Convolutions over neighbours as a kernel of our own, for small and known sizes.

The input is copied once with its margin, columns that a stride leaves between them apart, so that
every weight meets 16 neighbouring outputs in one load. A tile of output channels by outputs stays
in registers; weights are read where they lie, one at a time, and serve the whole tile.
"""

from math import prod

from kernelsmith.propose.rules.compiler.call import Allocate, Kernel, Library, Named
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
_SHORTEST = 8
"""Outputs in a row below which most lanes would stand idle."""

CONVOLUTION = """\
// R channels by V * 16 outputs: sums over `channels` planes of the input, TAPS weights each.
template <int R, int V, int TAPS, class Place>
static inline __attribute__((always_inline)) void add_channels(
    const float* __restrict x, int64_t plane, int64_t channels, const float* __restrict weight,
    int64_t next, Place place, vec16 (&total)[R][V]) {
  vec16 sum[R][V] = {};
  for (int64_t c = 0; c < channels; ++c) {
#pragma GCC unroll 9
    for (int t = 0; t < TAPS; ++t) {
      vec16 in[V];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) in[v] = load16(x + c * plane + place(t) + 16 * v);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) sum[r][v] += weight[r * next + c * TAPS + t] * in[v];
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) total[r][v] += sum[r][v];
}
"""

RUN = """\
  constexpr int64_t plane = {high} * {pace} * {wide};  // of one channel, with its margin
{pragma}
  for (int64_t row = 0; row < {batch} * {inputs} * {high}; ++row) {{
    float* to = margin + row * {pace} * {wide};
    const int64_t from = row % {high} - {above};
    std::memset(to, 0, sizeof(float) * {pace} * {wide});
    if (from < 0 || from >= {height}) continue;
    const float* line = x + (row / {high} * {height} + from) * {width};
    for (int64_t i = 0; i < {width}; ++i)
      to[(i + {left}) % {pace} * {wide} + (i + {left}) / {pace}] = line[i];
  }}
  const auto place = [](int t) {{
    const int64_t down = t / {across} * {apart_down}, right = t % {across} * {apart};
    return down * {pace} * {wide} + right % {pace} * {wide} + right / {pace};
  }};
{pragma}
  for (int64_t tile = 0; tile < {batch} * ({outputs} / {rows}) * {rise}; ++tile) {{
    const int64_t up = tile % {rise}, o = tile / {rise} % ({outputs} / {rows}) * {rows};
    const int64_t image = tile / {rise} / ({outputs} / {rows});
    const float* around = margin + image * {inputs} * plane + up * {pace_down} * {pace} * {wide};
    for (int64_t i = 0; i < {run}; i += 16 * {vectors}) {{
      vec16 total[{rows}][{vectors}];
      for (int r = 0; r < {rows}; ++r)
        for (int v = 0; v < {vectors}; ++v) total[r][v] = vec16{{}} + {bias};
      for (int64_t c = 0; c < {inputs}; c += {chain})
        add_channels<{rows}, {vectors}, {taps}>(
            around + c * plane + i, plane, std::min<int64_t>({chain}, {inputs} - c),
            weight + (o * {inputs} + c) * {taps}, {inputs} * {taps}, place, total);
      for (int r = 0; r < {rows}; ++r) {{
        float* to = out + ((image * {outputs} + o + r) * {rise} + up) * {run} + i;
        const int64_t count = std::min<int64_t>(16 * {vectors}, {run} - i);
        std::memcpy(to, &total[r], sizeof(float) * count);
      }}
    }}
  }}"""


DEPTHWISE = """\
// One channel of a convolution along time: K weights that stay in registers.
template <int N, int K>
static inline void taps(const float* __restrict in, const float* __restrict weight, float bias,
                        float* __restrict out, int64_t n, int64_t step, int64_t apart) {
  float w[K];
  for (int t = 0; t < K; ++t) w[t] = weight[t];
  sweep<N>(0, n, [&](int64_t i, int) {
    float sum = bias;
    for (int t = 0; t < K; ++t) sum += w[t] * in[i * step + t * apart];
    out[i] = sum;
  });
}
"""

ALONG = """\
{pragma}
  for (int64_t row = 0; row < {rows}; ++row) {{
    const int64_t channel = row % {channels};
    taps<{lanes}, {k}>(x + row * {length}, weight + channel * {k}, {bias}, out + row * {n}, {n},
             {step}, {apart});
  }}"""


def convolution(step: Library, given: list[Tensor | None]) -> Own | None:
    """One or two dimensions, all channels together; none where the library does better."""
    x, weight = given[0], given[1]
    keywords, numbers = dict(step.keywords), listed(step)
    if x is None or weight is None or step.result is None or len(x.shape) not in (3, 4):
        return None
    plain = keywords.get("transposed") is False and keywords.get("groups") == 1
    if not (plain and x.is_dense and weight.is_dense):
        return None
    batch, inputs, *size = x.shape
    outputs, _, *kernel = weight.shape
    if not bias_fits(step, given, outputs):
        return None
    bias = given[2] if len(given) > 2 else None
    pace, margin, apart = (numbers[each] for each in ("stride", "padding", "dilation"))
    result = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(size, kernel, pace, margin, apart, strict=True)
    ]
    shape = (batch, outputs, *result)
    if step.stride is not None and step.stride != dense(shape):
        return None
    if prod(kernel) == 1 and prod(pace) == 1 and not any(margin):
        size, result = [prod(size)], [prod(result)]  # no neighbours: one long row
        kernel, pace, margin, apart = [1], [1], [0], [1]
    if len(size) == 1:
        size, result, kernel = [1, *size], [1, *result], [1, *kernel]
        pace, margin, apart = [1, *pace], [0, *margin], [1, *apart]
    rows = next((each for each in (8, 6, 4) if outputs % each == 0), None)
    taps, run = prod(kernel), result[1]
    if rows is None or run < _SHORTEST or taps > _TERMS:
        return None
    vectors = 2 if run > 16 else 1
    reached = -(-run // (16 * vectors)) * 16 * vectors + (apart[1] * (kernel[1] - 1)) // pace[1]
    wide = max(reached, -(-(size[1] + margin[1]) // pace[1])) + 1
    high = size[0] + 2 * margin[0]
    names = ["x", "weight", *(["bias"] if bias is not None else [])]
    made = kernel_of(
        "convolution", f"{inputs_text(names)}, float* __restrict margin, float* __restrict out",
        2 * prod(shape) * inputs * taps, batch=batch, inputs=inputs, outputs=outputs,
        height=size[0], width=size[1], high=high, wide=wide, above=margin[0], left=margin[1],
        pace_down=pace[0], pace=pace[1], apart_down=apart[0], apart=apart[1], across=kernel[1],
        taps=taps, rise=result[0], run=run, rows=rows, vectors=vectors,
        chain=max(1, _TERMS // taps), bias="bias[o + r]" if bias is not None else "0.0f",
    )  # fmt: skip
    kept = (batch, inputs, high, pace[1] * wide)
    return with_margin(made, step.result, [x, weight, bias], kept, shape)


def bias_fits(step: Library, given: list[Tensor | None], outputs: int) -> bool:
    """Whether there is no bias, or one whose values are known to lie side by side."""
    if len(step.operands) < 3 or step.operands[2] is None:
        return True
    bias = given[2]  # none: a tensor of which nothing is known
    return bias is not None and bias.shape == (outputs,) and bias.is_dense


def with_margin(
    made: Kernel, result: str, given: list[Tensor | None], kept: tuple[int, ...],
    shape: tuple[int, ...],
) -> Own:  # fmt: skip
    """A kernel that copies its input into memory of its own first, and what it is called with."""
    allocated = [
        Allocate(name=f"{result}_margin", shape=kept, stride=dense(kept), dtype="float32"),
        Allocate(name=result, shape=shape, stride=dense(shape), dtype="float32"),
    ]
    operands = [each.operand for each in given if each is not None]
    return made, [*allocated], (*operands, *(Named(name=each.name) for each in allocated))


def depthwise(step: Library, given: list[Tensor | None]) -> Own | None:
    """One channel by itself, along one dimension, without padding."""
    x, weight = given[0], given[1]
    keywords = dict(step.keywords)
    numbers = listed(step)
    if x is None or weight is None or step.result is None or len(x.shape) != 3:
        return None
    batch, channels, length = x.shape
    plain = numbers.get("padding") == [0] and keywords.get("transposed") is False
    if not plain or keywords.get("groups") != channels or weight.shape[:2] != (channels, 1):
        return None
    if not (x.is_dense and weight.is_dense and bias_fits(step, given, channels)):
        return None
    bias = given[2] if len(given) > 2 else None
    k, (pace,), (apart,) = weight.shape[2], numbers["stride"], numbers["dilation"]
    n = (length - apart * (k - 1) - 1) // pace + 1
    shape = (batch, channels, n)
    if step.stride is not None and step.stride != dense(shape):
        return None
    pointers = ["x", "weight", *(["bias"] if bias is not None else [])]
    text = inputs_text(pointers)
    kernel = kernel_of(
        "depthwise", f"{text}, float* __restrict out", prod(shape) * k, rows=batch * channels,
        channels=channels, length=length, n=n, k=k, step=pace, apart=apart,
        bias="bias[channel]" if bias is not None else "0.0f",
    )  # fmt: skip
    out = Allocate(name=step.result, shape=shape, stride=dense(shape), dtype="float32")
    operands = [x.operand, weight.operand, *([bias.operand] if bias is not None else [])]
    return kernel, [out], (*operands, Named(name=step.result))
