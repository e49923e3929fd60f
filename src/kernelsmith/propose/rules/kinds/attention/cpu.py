"""Attention as C++: a block of queries in cache, keys packed by blocks, softmax kept up online."""

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.kinds.attention.helpers import ON_PROCESSOR, helpers
from kernelsmith.propose.rules.kinds.candidate import cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.parameters import pragma
from kernelsmith.propose.rules.kinds.registers import ALONG, REGISTERS, TURNED
from kernelsmith.propose.rules.space import Parameters

_TILE = """\
// The lanes of a vector put together by shuffles: H is half of what is left of them.
template <int H, int... K> static inline vec far(vec v, std::integer_sequence<int, K...>) {
  return __builtin_shufflevector(v, v, (K ^ H)...);
}
template <int H = W / 2, class F> static inline float joined(vec v, F&& two) {
  if constexpr (H == 0) return v[0];
  else return joined<H / 2>(vec(two(v, far<H>(v, std::make_integer_sequence<int, W>()))), two);
}
// c[R x N] (+)= a[R x depth] b[depth x N], N a multiple of W: tiles of rows by up to 4 vectors.
constexpr int TALL = 6;
template <bool ADD, int M, int V>
static __attribute__((noinline)) void tile(const float* a, int64_t lda, const float* b, int64_t ldb,
                                           float* c, int64_t ldc, int64_t depth) {
  vec sum[M * V] = {};
  for (int64_t k = 0; k < depth; ++k) {
    vec right[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      right[v] = load(b + k * ldb, Full{v * W});
      pinned(right[v]);
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      vec one = a[m * lda + k] - vec{};
      if (V > 1) pinned(one);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[m * V + v] += one * right[v];
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      float* to = c + m * ldc + v * W;
      store(to, Full{0}, ADD ? load(to, Full{0}) + sum[m * V + v] : sum[m * V + v]);
    }
}
template <bool ADD>
static void product(const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                    int64_t ldc, int64_t rows, int64_t depth, int64_t columns) {
  const int64_t parts = (rows + TALL - 1) / TALL;
  for (int64_t n = 0; n < columns;) {
    const int64_t vectors = std::min<int64_t>(4, (columns - n) / W);
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t r = rows * part / parts, many = rows * (part + 1) / parts - r;
      counted<TALL>(many, [&](auto m) {
        counted<4>(vectors, [&](auto v) {
          tile<ADD, decltype(m)::value, decltype(v)::value>(
              a + r * lda, lda, b + n, ldb, c + r * ldc + n, ldc, depth);
        });
      });
    }
    n += vectors * W;
  }
}
// Keys side by side: to[d * apart + n] of n keys, zeros up to a multiple of W.
template <class T>
static void sideways(const T* from, int64_t across, int64_t ahead, float* to, int64_t apart,
                     int64_t count, int64_t depth) {
  for (int64_t n = 0; n < count; n += W) {
    const int64_t some = std::min<int64_t>(W, count - n);
    int64_t d = 0;
    if (across == 1)
      for (; d + W <= depth; d += W)
        turned(from + n * ahead + d, ahead, to + d * apart + n, apart, int(some));
    for (; d < depth; ++d) {
      const T* row = from + d * across + n * ahead;
      float* at = to + d * apart + n;
      if (ahead == 1 && some == W) store(at, Full{0}, load(row, Full{0}));
      else for (int64_t i = 0; i < W; ++i) at[i] = i < some ? float(row[i * ahead]) : 0.0f;
    }
  }
}
// Whole vectors are written: what was written in parts cannot be read soon as one.
static inline void plus(float* row, const float* bias, int64_t step, int64_t count) {
  if (step != 1) {
    for (int64_t n = 0; n < count; ++n) row[n] += bias[n * step];
    return;
  }
  int64_t n = 0;
  for (; n + W <= count; n += W) store(row, Full{n}, load(row, Full{n}) + load(bias, Full{n}));
  if (n < count)
    store(row, Full{n}, load(row, Full{n}) + load(bias, Part{n, int(count - n)}));
}
static inline void hidden(float* row, int64_t seen, int64_t even) {
  for (int64_t n = seen / W * W; n < even; n += W)
    store(row, Full{n}, lanes() < int(seen - n) ? load(row, Full{n}) : splat(-INFINITY));
}
// One row, copied and scaled.
template <class T, class S>
static inline void row_of(const T* from, int64_t across, S* to, int64_t apart, int64_t count,
                          float by) {
  int64_t i = 0;
  if (across == 1 && apart == 1) {
    for (; i + W <= count; i += W) store(to, Full{i}, load(from, Full{i}) * by);
    if (i < count) store(to, Part{i, int(count - i)}, load(from, Part{i, int(count - i)}) * by);
  } else {
    for (; i < count; ++i) to[i * apart] = S(float(from[i * across]) * by);
  }
}
"""


def render_cpu(features: frozenset[str], chosen: Parameters) -> str:
    """Write one choice of parameters."""
    wanted = {"softmax": {"exp"}, "sigmoid": {"exp", "sigmoid"}}
    needed = set().union(*(wanted.get(each, set()) for each in features))
    text = prelude.VECTORS.format(
        width=chosen["width"], unroll="1", store=prelude.STORE["plain"]
    ) + prelude.SIMPLE + prelude.functions(needed, polynomial=chosen["math"] == "poly")  # fmt: skip
    text += REGISTERS + TURNED + ALONG.format(outputs="8") + _TILE + _kernel(features, chosen)
    text += cpp_entries(_arguments(features))
    return cpp_library(text) + "\n\n\n" + _launch(features) + helpers(features, ON_PROCESSOR, "RUN")


def _arguments(features: frozenset[str]) -> list[tuple[str, str]]:
    made = [("const T*", "q"), ("const T*", "k"), ("const T*", "v"), ("T*", "out")]
    made += [("const float*", "bias")] if "bias" in features else []
    made += [("const uint8_t*", "mask")] if "mask" in features else []
    made += [("float", "scale")] + ([("float", "fill")] if "mask" in features else [])
    names = ["n0", "n1", "n2", "queries", "keys", "depth", "width"]
    names += [f"{t}{i}" for t in "qkvo" for i in range(5)]
    names += [f"b{i}" for i in range(5)] if "bias" in features else []
    names += [f"m{i}" for i in range(5)] if "mask" in features else []
    return [*made, *(("int64_t", each) for each in names)]


def _kernel(features: frozenset[str], chosen: Parameters) -> str:
    listed = ", ".join(f"{kind} {name}" for kind, name in _arguments(features))
    softmax, causal = "softmax" in features, "causal" in features
    last = "std::min(keys, first + rows)" if causal else "keys"
    lines = [
        f"constexpr int64_t BM = {chosen['queries']}, BN = {chosen['keys']};",
        "template <class T>",
        f"static void kernel({listed}) {{",
        "  const int64_t blocks = (queries + BM - 1) / BM, heads = n0 * n1 * n2;",
        "  const int64_t wide = (width + W - 1) / W * W;",
        pragma(chosen, "heads * queries * keys * depth / 8"),
        "  for (int64_t task = 0; task < heads * blocks; ++task) {",
        "    const int64_t head = task / blocks, i2 = head % n2, i1 = head / n2 % n1;",
        "    const int64_t i0 = head / (n1 * n2), first = task % blocks * BM;",
        "    const int64_t rows = std::min(BM, queries - first);",
        "    static thread_local std::vector<float> held;",
        "    held.resize(BM * depth + depth * BN + BN * wide + BM * BN + BM * wide + 2 * BM);",
        "    float* left = held.data();",
        "    float* keyed = left + BM * depth;",
        "    float* values = keyed + depth * BN;",
        "    float* scores = values + BN * wide;",
        "    float* sums = scores + BM * BN;",
        "    float* top = sums + BM * wide;",
        "    float* total = top + BM;",
        "    const T* from = q + i0 * q0 + i1 * q1 + i2 * q2 + first * q3;",
        "    for (int64_t r = 0; r < rows; ++r)",
        "      row_of(from + r * q3, q4, left + r * depth, 1, depth, scale);",
        "    std::fill(top, top + BM, -INFINITY);",
        "    std::fill(total, total + BM, 0.0f);",
        f"    const int64_t last = {last};",
        "    for (int64_t key = 0; key < last; key += BN) {",
        "      const int64_t count = std::min(BN, last - key), even = (count + W - 1) / W * W;",
        "      const T* of_k = k + i0 * k0 + i1 * k1 + i2 * k2 + key * k4;",
        "      if (rows <= MOST && k3 == 1) {  // too few to pack keys for",
        "        const Term<T> term = {left, of_k, depth, k4};",
        "        dots(&term, 1, rows, count, scores, BN);",
        "      } else {",
        "        sideways(of_k, k3, k4, keyed, BN, count, depth);",
        "        product<false>(left, depth, keyed, BN, scores, BN, rows, depth, even);",
        "      }",
        "      const T* of_v = v + i0 * v0 + i1 * v1 + i2 * v2 + key * v3;",
        "      const float* right = values;",
        "      int64_t apart = wide;",
        "      if (std::is_same<T, float>::value && v4 == 1 && width == wide) {",
        "        right = (const float*)of_v;  // lies as it is needed",
        "        apart = v3;",
        "      } else {",
        "        for (int64_t n = 0; n < count; ++n) {",
        "          row_of(of_v + n * v3, v4, values + n * wide, 1, width, 1.0f);",
        "          std::fill(values + n * wide + width, values + (n + 1) * wide, 0.0f);",
        "        }",
        "      }",
        "      for (int64_t r = 0; r < rows; ++r) {",
        "        float* row = scores + r * BN;",
        *[f"        {line}" for line in _row(features)],
        "      }",
        "      const auto weighed = key == 0 ? product<false> : product<true>;",
        "      weighed(scores, BN, right, apart, sums, wide, rows, count, wide);",
        "    }",
        "    T* to = out + i0 * o0 + i1 * o1 + i2 * o2 + first * o3;",
        "    for (int64_t r = 0; r < rows; ++r) {",
        f"      const float by = {'1.0f / total[r]' if softmax else '1.0f'};",
        "      row_of(sums + r * wide, 1, to + r * o3, o4, width, by);",
        "    }",
        "  }",
        "}",
        "",
    ]
    return "\n".join(lines)


def _row(features: frozenset[str]) -> list[str]:
    lines = []
    if "bias" in features:
        lines += [
            "if (bias) {",
            "  const float* b = bias + i0 * b0 + i1 * b1 + i2 * b2 + (first + r) * b3 + key * b4;",
            "  plus(row, b, b4, count);",
            "}",
        ]
    if "mask" in features:
        lines += [
            "if (mask) {",
            "  const uint8_t* m = mask + i0 * m0 + i1 * m1 + i2 * m2;",
            "  m += (first + r) * m3 + key * m4;",
            "  for (int64_t n = 0; n < count; ++n) row[n] = m[n * m4] ? fill : row[n];",
            "}",
        ]
    seen = "count"
    if "causal" in features:
        lines.append(
            "const int64_t seen = std::max<int64_t>(0, std::min(count, first + r + 1 - key));"
        )
        seen = "seen"
    lines.append(f"hidden(row, {seen}, even);")
    if "softmax" in features:
        return [
            *lines,
            "vec most = splat(top[r]);",
            "for (int64_t n = 0; n < even; n += W) most = vmax(load(row, Full{n}), most);",
            "const float both = joined(most, [](vec a, vec b) { return vmax(a, b); });",
            "const float shift = both == -INFINITY ? 0.0f : both;",
            "vec sum = {};",
            "for (int64_t n = 0; n < even; n += W) {",
            "  const vec raw = load(row, Full{n});",
            "  const vec e = raw == -INFINITY ? vec{} : vexp(raw - shift);",
            "  store(row, Full{n}, e);",
            "  sum += e;",
            "}",
            "const float old = top[r] == -INFINITY ? 0.0f : std::exp(top[r] - shift);",
            "total[r] = total[r] * old + joined(sum, [](vec a, vec b) { return a + b; });",
            "top[r] = both;",
            "if (key > 0 && old != 1.0f)",
            "  for (int64_t e = 0; e < wide; e += W)",
            "    store(sums + r * wide, Full{e}, load(sums + r * wide, Full{e}) * old);",
        ]
    call = "vmax(raw, vec{})" if "relu" in features else "vsigmoid(raw)"
    return [
        *lines,
        "for (int64_t n = 0; n < even; n += W) {",
        "  const vec raw = load(row, Full{n});",
        f"  store(row, Full{{n}}, {call});",
        "}",
    ]


def _launch(features: frozenset[str]) -> str:
    given = ["q", "k", "v", "out"]
    given += ["bias"] if "bias" in features else []
    given += ["mask"] if "mask" in features else []
    given += ["float(scale)"] + (["float(fill)"] if "mask" in features else [])
    given += ["*heads", "queries", "keys", "depth", "width", "*steps(q)", "*steps(k)", "*steps(v)",
              "*steps(out)"]  # fmt: skip
    given += ["*steps(bias)"] if "bias" in features else []
    given += ["*steps(mask)"] if "mask" in features else []
    lines = [
        "def attend(q, k, v, scale=1.0, bias=None, mask=None, fill=0.0):",
        '    """The attention, or none where the kernel is not made for what it got."""',
        "    if not fitting(q, k, v, scale, bias, mask, fill):",
        "        return None",
        "    batch = leading(q, k, v)",
        "    heads = (*(1,) * (3 - len(batch)), *batch)",
        "    queries, depth, keys, width = q.shape[-2], q.shape[-1], k.shape[-1], v.shape[-1]",
    ]
    if "bias" in features:
        lines += [
            "    bias = q.new_zeros(1, 1, dtype=torch.float32) if bias is None else bias.float()",
            "    if bias.stride(-1) != 1 and 0 not in bias.stride():",
            "        bias = bias.contiguous()  # read once per head, copied once",
        ]
    if "mask" in features:
        lines.append("    mask = q.new_zeros(1, 1, dtype=torch.bool) if mask is None else mask")
    return "\n".join([
        *lines, "    out = q.new_empty((*batch, queries, width))",
        f"    RUN[q.dtype]({', '.join(given)})", "    return out",
    ]) + "\n\n\n"  # fmt: skip
