"""Recurrent layers as C++: weights packed by strips of units once, then one pass per step."""

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.kinds.candidate import cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.recurrent import helpers
from kernelsmith.propose.rules.space import Parameters

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_ARGUMENTS = [
    ("const T*", "ahead"), ("const T*", "across"), ("const T*", "far"), ("T*", "held"),
    ("T*", "cell"), ("int64_t", "lines"), ("int64_t", "times"), ("int64_t", "batch"),
    ("int64_t", "size"), ("int64_t", "relu"),
]  # fmt: skip
_CELLS = {
    "LSTM": """\
            vec c = load(from_c, at);
            c = vsigmoid(g[1]) * c + vsigmoid(g[0]) * vtanh(g[2]);
            store(from_c, at, c);
            const vec h = vsigmoid(g[3]) * vtanh(c);
""",
    "GRU": """\
            const vec reset = vsigmoid(g[0]), keep = vsigmoid(g[1]);
            const vec value = vtanh(near + reset * g[2]);
            const vec h = (1.0f - keep) * value + keep * load(old, at);
""",
    "RNN": """\
            const vec h = relu ? vmax(g[0], vec{}) : vtanh(g[0]);
""",
}
_KERNEL = """\
constexpr int G = {gates}, R = {rows};  // gates, and sequences at a time
template <class T>
static void kernel({listed}) {{
  const int64_t strips = (size + W - 1) / W, plane = batch * size;
  std::vector<float> packed(lines * strips * size * G * W), state(2 * lines * plane), cells;
  const int64_t work = lines * strips * batch * size * G;
  for (int64_t i = 0; i < lines * plane; ++i)
    state[i] = float(held[i / plane * (times + 1) * plane + i % plane]);
  cells.assign(cell, cell + lines * plane);
#pragma omp parallel{count} if (work > {serial})
  {{
#pragma omp for collapse(2)
    for (int64_t line = 0; line < lines; ++line)  // units side by side, gates behind each other
      for (int64_t s = 0; s < strips; ++s) {{
        float* to = packed.data() + (line * strips + s) * size * G * W;
        for (int64_t k = 0; k < size; k += 16)  // a cache line of each row at a time
          for (int g = 0; g < G; ++g)
            for (int w = 0; w < W && s * W + w < size; ++w) {{
              const T* from = across + ((line * G + g) * size + s * W + w) * size;
              for (int64_t i = k; i < std::min(size, k + 16); ++i)
                to[(i * G + g) * W + w] = float(from[i]);
            }}
      }}
    for (int64_t t = 0; t < times; ++t) {{
#pragma omp for collapse(2) schedule({schedule})
      for (int64_t line = 0; line < lines; ++line)
        for (int64_t s = 0; s < strips; ++s) {{
          const int64_t time = line == 1 ? times - 1 - t : t;
          const float* weights = packed.data() + (line * strips + s) * size * G * W;
          const float* before = state.data() + (t % 2 * lines + line) * plane;
          float* after = state.data() + ((t + 1) % 2 * lines + line) * plane;
          auto units = [&](auto at, auto many, int64_t b) {{
            constexpr int M = decltype(many)::value;
            vec sum[M][G] = {{}};
            for (int64_t k = 0; k < size; ++k) {{
              vec w[G];
#pragma GCC unroll 4
              for (int g = 0; g < G; ++g) w[g] = load(weights + (k * G + g) * W, Full{{0}});
#pragma GCC unroll 4
              for (int m = 0; m < M; ++m) {{
                const float one = before[(b + m) * size + k];
#pragma GCC unroll 4
                for (int g = 0; g < G; ++g) sum[m][g] += one * w[g];
              }}
            }}
            vec done[M][G];  // sums leave their registers once
#pragma GCC unroll 4
            for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
              for (int g = 0; g < G; ++g) done[m][g] = sum[m][g];
#pragma GCC unroll 1
            for (int m = 0; m < M; ++m) {{
            const T* start = ahead + ((line * times + time) * batch + b + m) * G * size;
            vec g[G];
            for (int i = 0; i < G; ++i) {{
              g[i] = done[m][i] + load(far + (line * G + i) * size, at);
              if (G != 3 || i < 2) g[i] += load(start + i * size, at);
            }}
            const vec near = load(start + (G - 1) * size, at);
            (void)near;
            const float* old = before + (b + m) * size;
            float* from_c = cells.data() + line * plane + (b + m) * size;
            (void)old, (void)from_c;
{cell}            store(after + (b + m) * size, at, h);
            store(held + ((line * (times + 1) + t + 1) * batch + b + m) * size, at, h);
            }}
          }};
          auto rows = [&](auto at) {{
            int64_t b = 0;
            for (; b + R <= batch; b += R) units(at, std::integral_constant<int, R>(), b);
            for (; b < batch; ++b) units(at, std::integral_constant<int, 1>(), b);
          }};
          if (s * W + W <= size)
            rows(Full{{s * W}});
          else
            rows(Part{{s * W, int(size - s * W)}});
        }}
    }}
  }}
  for (int64_t i = 0; i < lines * plane; ++i) cell[i] = T(cells[i]);
}}
"""
_STEPS = '''\
def steps(mode, nonlinear, ahead, across, far, first, cell):
    """States after each step, for all directions of a layer, and the last cells."""
    lines, batch, size = first.shape
    times = ahead.shape[1]
    held = first.new_empty((lines, times + 1, batch, size))
    held[:, 0] = first
    cell = cell.clone(memory_format=torch.contiguous_format)
    RUN[held.dtype](ahead.contiguous(), across.contiguous(), far.contiguous(), held, cell,
                    lines, times, batch, size, nonlinear == "relu")
    return held, cell


'''


def render_cpu(mode: str, chosen: Parameters) -> str:
    """Write one choice of parameters."""
    needed = {"RNN": {"tanh"}}.get(mode, {"tanh", "sigmoid", "exp"})
    text = "#include <vector>\n" + prelude.VECTORS.format(
        width=chosen["width"], unroll="1", store=prelude.STORE["plain"]
    ) + prelude.SIMPLE + prelude.functions(needed, polynomial=chosen["math"] == "poly")  # fmt: skip
    text += _KERNEL.format(
        gates=_GATES[mode], rows=chosen["rows"], cell=_CELLS[mode], serial=chosen["serial_below"],
        listed=", ".join(f"{kind} {name}" for kind, name in _ARGUMENTS),
        count="" if chosen["threads"] == "all" else f" num_threads({chosen['threads']})",
        schedule=chosen["schedule"],
    )  # fmt: skip
    text += cpp_entries(_ARGUMENTS)
    layers = helpers.LAYERS % 'getattr(layer, "nonlinearity", "tanh")'
    around = helpers.HEAD % "RUN" + layers + helpers.TAIL + helpers.WRITTEN % "RUN"
    return cpp_library(text) + "\n\n\n" + _STEPS + around
