"""The C++ that every CPU template starts with: vectors, positions, accumulators and functions.

The polynomials are minimax fits in float64 of the functions named beside them, rounded to float32;
``tests/propose/rules/test_math.py`` holds them against float64.
"""

VECTORS = """\
#if defined(__AVX__)
#include <immintrin.h>
#endif
#if defined(__AVX512F__) && {width} == 16
#define ZMM  // a vector is a register of this machine
#endif
constexpr int W = {width};   // floats per vector
constexpr int U = {unroll};  // vectors per step, each with an accumulator of its own
typedef float vec __attribute__((vector_size(4 * W), aligned(4)));
typedef int32_t ivec __attribute__((vector_size(4 * W), aligned(4)));
typedef double dvec __attribute__((vector_size(8 * W)));

struct bf16 {{
  uint16_t bits;
  operator float() const {{
    const uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
  }}
  bf16() = default;
  bf16(float value) {{
    uint32_t wide;
    std::memcpy(&wide, &value, 4);
    bits = value != value ? 0x7fc0 : (wide + 0x7fff + ((wide >> 16) & 1)) >> 16;
  }}
}};
typedef _Float16 f16;

struct Full {{ int64_t i; }};         // W elements, from i on
struct Part {{ int64_t i; int n; }};  // the last n < W elements of a row

static inline vec splat(float v) {{ return vec{{}} + v; }}
static inline ivec lanes() {{
  ivec v;
  for (int k = 0; k < W; ++k) v[k] = k;
  return v;
}}
static inline vec load(const float* p, Full at) {{
  vec v;
  std::memcpy(&v, p + at.i, sizeof v);
  return v;
}}
template <class T> static inline vec load(const T* p, Full at) {{
  vec v;
  for (int k = 0; k < W; ++k) v[k] = float(p[at.i + k]);
  return v;
}}
template <class T> static inline vec load(const T* p, Part at) {{
  vec v = {{}};
  for (int k = 0; k < at.n; ++k) v[k] = float(p[at.i + k]);
  return v;
}}
#ifdef ZMM
static inline vec load(const float* p, Part at) {{
  return (vec)_mm512_maskz_loadu_ps((1u << at.n) - 1, p + at.i);
}}
static inline void store(float* p, Part at, vec v) {{
  _mm512_mask_storeu_ps(p + at.i, (1u << at.n) - 1, (__m512)v);
}}
#endif
{store}
template <class T> static inline void store(T* p, Full at, vec v) {{
  for (int k = 0; k < W; ++k) p[at.i + k] = T(v[k]);
}}
template <class T> static inline void store(T* p, Part at, vec v) {{
  for (int k = 0; k < at.n; ++k) p[at.i + k] = T(v[k]);
}}
// Puts the elements of a vector together, pair by pair.
template <class E, class V, class F> static inline E across(V v, F&& two) {{
  E e[W];
  for (int k = 0; k < W; ++k) e[k] = v[k];
  for (int h = W / 2; h; h /= 2)
    for (int k = 0; k < h; ++k) e[k] = two(e[k], e[k + h]);
  return e[0];
}}
template <class E, class V> static inline E added(const V (&a)[U]) {{
  V v = a[0];
  for (int u = 1; u < U; ++u) v += a[u];
  return across<E>(v, [](E x, E y) {{ return x + y; }});
}}
static inline vec only(vec v, Full, float) {{ return v; }}
static inline vec only(vec v, Part at, float rest) {{ return lanes() < at.n ? v : splat(rest); }}

// Walks along a row: U vectors at a time, then one, then what is left.
template <class F> static inline void sweep(int64_t dim, F&& each) {{
  int64_t i = 0;
  for (; i + U * W <= dim; i += U * W)
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u) each(Full{{i + u * W}}, u);
  for (; i + W <= dim; i += W) each(Full{{i}}, 0);
  if (i < dim) each(Part{{i, int(dim - i)}}, 0);
}}
"""

STORE = {
    "plain": """\
static inline void store(float* p, Full at, vec v) { std::memcpy(p + at.i, &v, sizeof v); }""",
    "stream": """\
static inline void store(float* p, Full at, vec v) {
  float* to = p + at.i;  // past the caches where it lies right for that
#if defined(__AVX512F__)
  if (W % 16 == 0 && (uintptr_t(to) & 63) == 0) {
    for (int k = 0; k < W; k += 16) _mm512_stream_ps(to + k, _mm512_loadu_ps((float*)&v + k));
    return;
  }
#elif defined(__AVX__)
  if (W % 8 == 0 && (uintptr_t(to) & 31) == 0) {
    for (int k = 0; k < W; k += 8) _mm256_stream_ps(to + k, _mm256_loadu_ps((float*)&v + k));
    return;
  }
#endif
  std::memcpy(to, &v, sizeof v);
}""",
}

SUMS = {
    "lanes": """\
struct Sum {  // U * W partial sums; of long rows small terms would get lost in one chain
  vec a[U] = {}, b[U] = {};
  int count = 0;
  template <class At> void add(vec v, At at, int u) {
    a[u] += only(v, at, 0.0f);
    if (u == 0 && ++count == 512) {
      for (int w = 0; w < U; ++w) b[w] += a[w], a[w] = vec{};
      count = 0;
    }
  }
  float total() const { return added<float>(a) + added<float>(b); }
};
""",
    "blocked": """\
struct Sum {  // as two levels: no chain is longer than 32 vectors, or the number of blocks
  vec a[U] = {}, b[U] = {};
  int count[U] = {};
  template <class At> void add(vec v, At at, int u) {
    a[u] += only(v, at, 0.0f);
    if (++count[u] == 32) { b[u] += a[u]; a[u] = vec{}; count[u] = 0; }
  }
  float total() const { return added<float>(a) + added<float>(b); }
};
""",
    "double": """\
struct Sum {  // in double throughout
  dvec a[U] = {};
  template <class At> void add(vec v, At at, int u) {
    a[u] += __builtin_convertvector(only(v, at, 0.0f), dvec);
  }
  double total() const { return added<double>(a); }
};
""",
}

EXTREME = """\
struct {name} {{
  vec a[U];
  {name}() {{ for (int u = 0; u < U; ++u) a[u] = splat({worst}); }}
  template <class At> void add(vec v, At at, int u) {{ a[u] = {pick}(only(v, at, {worst}), a[u]); }}
  float total() const {{
    vec v = a[0];
    for (int u = 1; u < U; ++u) v = {pick}(a[u], v);
    return across<float>(v, [](float x, float y) {{ return {pick}(x, y); }});
  }}
}};
"""

ONLINE = """\
struct Online {  // maximum and sum of exp(v - maximum), with one exp per element
  vec m[U], s[U] = {};
  Online() { for (int u = 0; u < U; ++u) m[u] = splat(-3.4028234e38f); }
  template <class At> void add(vec v, At at, int u) {
    v = only(v, at, -INFINITY);
    const vec d = v == m[u] ? vec{} : v - m[u];  // infinities too
    const vec e = vexp(d > 0.0f ? -d : d);
    s[u] = d > 0.0f ? s[u] * e + 1.0f : s[u] + e;
    m[u] = d > 0.0f ? v : m[u];
  }
  float maximum() const {
    vec v = m[0];
    for (int u = 1; u < U; ++u) v = vmax(m[u], v);
    return across<float>(v, [](float x, float y) { return vmax(x, y); });
  }
  float total(float top) const {
    vec e[U];
    for (int u = 0; u < U; ++u) e[u] = s[u] * vexp(m[u] - top);
    return added<float>(e);
  }
};
"""

SIMPLE = """\
// NaN wins, as in torch.
static inline vec vmax(vec a, vec b) { return ((a > b) | (a != a)) ? a : b; }
static inline vec vmin(vec a, vec b) { return ((a < b) | (a != a)) ? a : b; }
static inline float vmax(float a, float b) { return a > b || a != a ? a : b; }
static inline float vmin(float a, float b) { return a < b || a != a ? a : b; }
static inline vec capped(vec x, float low, float high) {  // NaN stays
#ifdef ZMM
  return (vec)_mm512_max_ps((__m512)splat(low), _mm512_min_ps((__m512)splat(high), (__m512)x));
#else
  x = x > high ? splat(high) : x;
  return x < low ? splat(low) : x;
#endif
}
// Never above one, and exactly that from a bound on: what is left of 1 + f(x) may be multiplied by
// much, and its sign may count.
static inline vec settled(vec x, float bound, vec inside) {
  inside = ((x >= bound) | (inside > 1.0f)) ? splat(1.0f) : inside;
  return ((x <= -bound) | (inside < -1.0f)) ? splat(-1.0f) : inside;
}
static inline vec vabs(vec x) { return (vec)((ivec)x & 0x7fffffff); }
static inline vec vsqrt(vec x) {
  vec y;
  for (int k = 0; k < W; ++k) y[k] = __builtin_sqrtf(x[k]);
  return y;
}
"""

LANE = """\
static inline vec v{name}(vec x) {{
  vec y;
  for (int k = 0; k < W; ++k) y[k] = {call};
  return y;
}}
"""

WHOLE = """\
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
extern "C" {{  // the C library has this for whole vectors, and a loop over it calls that
__attribute__((simd("notinbranch"))) float {name}f(float) noexcept;
}}
#endif
static inline vec v{name}(vec x) {{
  float from[W], to[W];
  std::memcpy(from, &x, sizeof x);
#pragma omp simd
  for (int k = 0; k < W; ++k) to[k] = ::{name}f(from[k]);
  std::memcpy(&x, to, sizeof x);
  return x;
}}
"""

POW = """\
static inline vec vpow(vec x, vec e) {
  vec y;
  for (int k = 0; k < W; ++k) y[k] = std::pow(x[k], e[k]);
  return y;
}
"""

POLYNOMIALS = {
    "exp": """\
static inline vec scaled(vec p, vec n) {  // p * 2^n, subnormals included
#ifdef ZMM
  return (vec)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
  const ivec k = __builtin_convertvector(n, ivec), h = k >> 1;
  return p * (vec)((h + 127) << 23) * (vec)((k - h + 127) << 23);
#endif
}
static inline vec vexp(vec x) {  // 2^n * (1 + r + r^2 q(r)), |r| <= ln(2) / 2: 1 ulp
  x = capped(x, -104.0f, 89.0f);
  const vec n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const vec r = (x - n * 0.693145751953125f) - n * 1.42860682e-6f;
  vec q = splat(1.3950476e-3f);
  q = q * r + 8.3688824e-3f;
  q = q * r + 4.1666206e-2f;
  q = q * r + 1.6666518e-1f;
  q = q * r + 0.5f;
  return scaled(r * r * q + r + 1.0f, n);
}
""",
    "log": """\
static inline vec vlog(vec x) {  // e ln(2) + f - f^2 / 2 + f^3 p(f), 1 + f in sqrt(1/2) .. sqrt(2)
  const ivec tiny = x < 1.17549435e-38f;
  const vec y = tiny ? x * 8388608.0f : x;
  const ivec bits = (ivec)y - 0x3f3504f3;
  const vec e = __builtin_convertvector(bits >> 23, vec) - (tiny ? splat(23.0f) : vec{});
  const vec f = (vec)((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  vec p = splat(-7.8595459e-2f);
  p = p * f + 1.2881622e-1f;
  p = p * f - 1.3128768e-1f;
  p = p * f + 1.4181197e-1f;
  p = p * f - 1.6624554e-1f;
  p = p * f + 2.0002286e-1f;
  p = p * f - 2.5000811e-1f;
  p = p * f + 3.3333316e-1f;
  const vec r = e * 0.693145751953125f + (f + (f * f * (f * p - 0.5f) + e * 1.42860682e-6f));
  const vec odd = x == 0.0f ? splat(-INFINITY) : (x > 0.0f ? x : splat(NAN));
  return ((x > 0.0f) & (x < INFINITY)) ? r : odd;
}
""",
    "log1p": """\
static inline vec vlog1p(vec x) {  // log(u) + what 1 + x lost in rounding, over u
  const vec u = 1.0f + x;
  const vec lost = (x - (u - 1.0f)) / u;
  return u < INFINITY ? vlog(u) + (u > 0.0f ? lost : vec{}) : x;
}
""",
    "sigmoid": """\
static inline vec vsigmoid(vec x) { return 1.0f / (1.0f + vexp(-x)); }
""",
    "tanh": """\
static inline vec vtanh(vec y) {  // x p(x^2) / q(x^2) up to 9, beyond which it is 1: 3 ulp
  const vec x = capped(y, -9.0f, 9.0f);
  const vec z = x * x;
  vec p = splat(1.33546765e-8f);
  p = p * z + 2.06090936e-5f;
  p = p * z + 3.49558890e-3f;
  p = p * z + 1.33810267e-1f;
  p = p * z + 1.0f;
  vec q = splat(7.77656453e-7f);
  q = q * z + 3.28563590e-4f;
  q = q * z + 2.58769840e-2f;
  q = q * z + 4.67143416e-1f;
  q = q * z + 1.0f;
  return settled(y, 9.0f, x * p / q);
}
""",
    "erf": """\
static inline vec verf(vec y) {  // x p(x^2) / q(x^2) up to 3.925, beyond which it is 1: 4 ulp
  const vec x = capped(y, -3.925f, 3.925f);
  const vec z = x * x;
  vec p = splat(2.04601020e-6f);
  p = p * z + 2.84845388e-4f;
  p = p * z + 3.77263920e-3f;
  p = p * z + 5.27695790e-2f;
  p = p * z + 1.90595850e-1f;
  p = p * z + 1.12837911f;
  vec q = splat(3.80476922e-5f);
  q = q * z + 1.16387894e-3f;
  q = q * z + 1.49833784e-2f;
  q = q * z + 1.14183590e-1f;
  q = q * z + 5.02243876e-1f;
  q = q * z + 1.0f;
  return settled(y, 3.925f, x * p / q);
}
""",
}

NEEDS = {"log1p": ("log",), "sigmoid": ("exp",)}
"""Functions that are written by others."""

LIBM = {
    "exp": "std::exp(x[k])", "log": "std::log(x[k])", "log1p": "std::log1p(x[k])",
    "sigmoid": "1.0f / (1.0f + std::exp(-x[k]))", "tanh": "std::tanh(x[k])",
    "erf": "std::erf(x[k])", "sin": "std::sin(x[k])", "cos": "std::cos(x[k])",
    "floor": "std::floor(x[k])", "sign": "float((x[k] > 0) - (x[k] < 0))",
}  # fmt: skip
"""The same functions element by element, from the C library."""


def functions(wanted: set[str], *, polynomial: bool) -> str:
    """The vector functions that a kernel calls, in an order that compiles."""
    needed = set(wanted)
    if polynomial:
        for name in sorted(wanted):
            needed |= set(NEEDS.get(name, ()))
    text = ""
    for name in ("exp", "log", "log1p", "sigmoid", "tanh", "erf", "sin", "cos", "floor", "sign"):
        if name not in needed:
            continue
        if polynomial and name in POLYNOMIALS:
            text += POLYNOMIALS[name]
        elif polynomial and name in ("sin", "cos"):
            text += WHOLE.format(name=name)
        else:
            text += LANE.format(name=name, call=LIBM[name])
    return text + (POW if "pow" in wanted else "")
