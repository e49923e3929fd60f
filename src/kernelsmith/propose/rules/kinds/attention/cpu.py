"""Attention as C++: a block of queries in cache, keys packed by blocks, softmax kept up online."""

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.kinds.attention.helpers import helpers
from kernelsmith.propose.rules.kinds.candidate import cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.parameters import pragma
from kernelsmith.propose.rules.space import Parameters

_TILE = """\
template <class T> static inline float dot(const float* a, const T* b, int64_t depth) {
  vec one = {}, two = {};
  int64_t d = 0;
  for (; d + 2 * W <= depth; d += 2 * W) {
    one += load(a, Full{d}) * load(b, Full{d});
    two += load(a, Full{d + W}) * load(b, Full{d + W});
  }
  for (; d + W <= depth; d += W) one += load(a, Full{d}) * load(b, Full{d});
  if (d < depth) two += load(a, Part{d, int(depth - d)}) * load(b, Part{d, int(depth - d)});
  return across<float>(one + two, [](float x, float y) { return x + y; });
}
// c[R x N] (+)= a[R x depth] b[depth x N], N a multiple of W: tiles of 4 rows by up to 4 vectors.
template <bool ADD>
static void product(const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                    int64_t ldc, int64_t rows, int64_t depth, int64_t columns) {
  auto tile = [&](auto many, auto vectors, int64_t r, int64_t n) {
    constexpr int M = decltype(many)::value, V = decltype(vectors)::value;
    vec sum[M][V] = {};
    for (int64_t k = 0; k < depth; ++k) {
      vec right[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) right[v] = load(b + k * ldb + n, Full{v * W});
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m) {
        const float one = a[(r + m) * lda + k];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) sum[m][v] += one * right[v];
      }
    }
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        float* to = c + (r + m) * ldc + n + v * W;
        store(to, Full{0}, ADD ? load(to, Full{0}) + sum[m][v] : sum[m][v]);
      }
  };
  auto down = [&](auto vectors, int64_t n) {
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) tile(std::integral_constant<int, 4>(), vectors, r, n);
    for (; r < rows; ++r) tile(std::integral_constant<int, 1>(), vectors, r, n);
  };
  int64_t n = 0;
  for (; n + 4 * W <= columns; n += 4 * W) down(std::integral_constant<int, 4>(), n);
  for (; n + 2 * W <= columns; n += 2 * W) down(std::integral_constant<int, 2>(), n);
  for (; n < columns; n += W) down(std::integral_constant<int, 1>(), n);
}
"""


def render_cpu(features: frozenset[str], chosen: Parameters) -> str:
    """Write one choice of parameters."""
    wanted = {"softmax": {"exp"}, "sigmoid": {"exp", "sigmoid"}}
    needed = set().union(*(wanted.get(each, set()) for each in features))
    text = "#include <vector>\n" + prelude.VECTORS.format(
        width=chosen["width"], unroll="1", store=prelude.STORE["plain"]
    ) + prelude.SIMPLE + prelude.functions(needed, polynomial=chosen["math"] == "poly")  # fmt: skip
    text += _TILE + _kernel(features, chosen)
    text += cpp_entries(_arguments(features))
    return cpp_library(text) + "\n\n\n" + _launch(features) + helpers(features, cpu=True)


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
        "    float* turned = left + BM * depth;",
        "    float* values = turned + depth * BN;",
        "    float* scores = values + BN * wide;",
        "    float* sums = scores + BM * BN;",
        "    float* top = sums + BM * wide;",
        "    float* total = top + BM;",
        "    const T* from = q + i0 * q0 + i1 * q1 + i2 * q2 + first * q3;",
        "    for (int64_t r = 0; r < rows; ++r)",
        "      for (int64_t d = 0; d < depth; ++d)",
        "        left[r * depth + d] = float(from[r * q3 + d * q4]) * scale;",
        "    std::fill(sums, sums + BM * wide, 0.0f);",
        "    std::fill(top, top + BM, -INFINITY);",
        "    std::fill(total, total + BM, 0.0f);",
        f"    const int64_t last = {last};",
        "    for (int64_t key = 0; key < last; key += BN) {",
        "      const int64_t count = std::min(BN, last - key), even = (count + W - 1) / W * W;",
        "      const T* of_k = k + i0 * k0 + i1 * k1 + i2 * k2 + key * k4;",
        "      if (rows <= 8 && k3 == 1) {  // too few to pack keys for",
        "        for (int64_t n = 0; n < count; ++n)",
        "          for (int64_t r = 0; r < rows; ++r)",
        "            scores[r * BN + n] = dot(left + r * depth, of_k + n * k4, depth);",
        "      } else {",
        "        for (int64_t n = 0; n < even; ++n)",
        "          for (int64_t d = 0; d < depth; ++d)",
        "            turned[d * BN + n] = n < count ? float(of_k[d * k3 + n * k4]) : 0.0f;",
        "        product<false>(left, depth, turned, BN, scores, BN, rows, depth, even);",
        "      }",
        "      const T* of_v = v + i0 * v0 + i1 * v1 + i2 * v2 + key * v3;",
        "      const float* right = values;",
        "      int64_t apart = wide;",
        "      if (std::is_same<T, float>::value && v4 == 1 && width == wide) {",
        "        right = (const float*)of_v;  // lies as it is needed",
        "        apart = v3;",
        "      } else {",
        "        for (int64_t n = 0; n < count; ++n)",
        "          for (int64_t e = 0; e < wide; ++e)",
        "            values[n * wide + e] = e < width ? float(of_v[n * v3 + e * v4]) : 0.0f;",
        "      }",
        "      for (int64_t r = 0; r < rows; ++r) {",
        "        float* row = scores + r * BN;",
        *[f"        {line}" for line in _row(features)],
        "      }",
        "      product<true>(scores, BN, right, apart, sums, wide, rows, count, wide);",
        "    }",
        "    T* to = out + i0 * o0 + i1 * o1 + i2 * o2 + first * o3;",
        "    for (int64_t r = 0; r < rows; ++r) {",
        f"      const float by = {'1.0f / total[r]' if softmax else '1.0f'};",
        "      for (int64_t e = 0; e < width; ++e)",
        "        to[r * o3 + e * o4] = T(sums[r * wide + e] * by);",
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
            "  for (int64_t n = 0; n < count; ++n) row[n] += b[n * b4];",
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
    lines.append(f"for (int64_t n = {seen}; n < even; ++n) row[n] = -INFINITY;")
    if "softmax" in features:
        return [
            *lines,
            "vec most = splat(top[r]);",
            "for (int64_t n = 0; n < even; n += W) most = vmax(load(row, Full{n}), most);",
            "const float both = across<float>(most, [](float a, float b) { return vmax(a, b); });",
            "const float shift = both == -INFINITY ? 0.0f : both;",
            "vec sum = {};",
            "for (int64_t n = 0; n < even; n += W) {",
            "  const vec raw = load(row, Full{n});",
            "  const vec e = raw == -INFINITY ? vec{} : vexp(raw - shift);",
            "  store(row, Full{n}, e);",
            "  sum += e;",
            "}",
            "const float old = top[r] == -INFINITY ? 0.0f : std::exp(top[r] - shift);",
            "total[r] = total[r] * old + "
            "across<float>(sum, [](float a, float b) { return a + b; });",
            "top[r] = both;",
            "if (old != 1.0f)",
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
              "*steps(five(out))"]  # fmt: skip
    given += ["*steps(bias)"] if "bias" in features else []
    given += ["*steps(mask)"] if "mask" in features else []
    lines = [
        "def attend(q, k, v, scale=1.0, bias=None, mask=None, fill=0.0):",
        '    """The attention, or none where the kernel is not made for what it got."""',
        "    if not fitting(q, k, v, scale, bias, mask, fill):",
        "        return None",
        "    batch = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])",
        "    heads = (*(1,) * (3 - len(batch)), *batch)",
        "    queries, depth, keys, width = q.shape[-2], q.shape[-1], k.shape[-1], v.shape[-1]",
        "    q, k, v = five(q), five(k), five(v)",
    ]
    if "bias" in features:
        lines.append("    bias = five(bias.float() if bias is not None else q.new_zeros(1, 1, "
                     "dtype=torch.float32))")  # fmt: skip
    if "mask" in features:
        lines.append("    mask = five(mask if mask is not None else q.new_zeros(1, 1, "
                     "dtype=torch.bool))")  # fmt: skip
    return "\n".join([
        *lines, "    out = q.new_empty((*batch, queries, width))",
        f"    RUN[q.dtype]({', '.join(given)})", "    return out",
    ]) + "\n\n\n"  # fmt: skip
