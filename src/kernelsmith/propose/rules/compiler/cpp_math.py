"""The C++ that compiler seeds start with: lanes, streams and functions that a compiler vectorises.

The polynomials are those of the vector templates (``rules/cpp_prelude.py``), one element at a time
and without branches, so that a loop over them becomes vector code;
``tests/propose/rules/compiler/test_cpp_math.py`` holds them against float64.
"""

HALVES = """\
struct bf16 {
  uint16_t bits;
  operator float() const {
    const uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
  }
  bf16() = default;
  bf16(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, 4);
    bits = value != value ? 0x7fc0 : (wide + 0x7fff + ((wide >> 16) & 1)) >> 16;
  }
};
typedef _Float16 f16;
"""

SIMPLE = """\
// NaN wins, as in torch; one question at a time, or g++ writes jumps.
template <class T> static inline T larger(T a, T b) {
  const T most = a > b ? a : b;
  return a != a ? a : most;
}
template <class T> static inline T smaller(T a, T b) {
  const T least = a < b ? a : b;
  return a != a ? a : least;
}
"""

WHOLE = """\
template <class T> static inline T floor_div(T a, T b) {
  const T q = a / b;
  return q - ((a % b != 0) & ((a < 0) != (b < 0)));
}
template <class T> static inline T floor_mod(T a, T b) { return a - floor_div(a, b) * b; }
static inline int64_t remainder_of(int64_t a, int64_t b) { return a % b; }
static inline int32_t remainder_of(int32_t a, int32_t b) { return a % b; }
static inline float remainder_of(float a, float b) { return std::fmod(a, b); }
static inline double remainder_of(double a, double b) { return std::fmod(a, b); }
"""

FREXP = """\
static inline int32_t exponent_of(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, 8);
  const int32_t found = int32_t(bits >> 52) & 0x7ff;
  if ((found != 0) & (found != 0x7ff)) return found - 1022;
  int exponent;
  std::frexp(value, &exponent);
  return exponent;
}
template <class T> static inline T mantissa_of(T value) {
  int exponent;
  return std::frexp(value, &exponent);
}
"""

FROM_FLOATS = """\
// As processors do it: what does not fit, NaN among it, becomes the least number. A plain cast says
// nothing of those, and g++ takes one back to float for a truncation, which keeps NaN.
static inline int32_t int32_of(double x) {
  return (x > -2147483649.0) & (x < 2147483648.0) ? int32_t(x) : INT32_MIN;
}
static inline int32_t int32_of(float x) {
  return (x >= -2147483648.0f) & (x < 2147483648.0f) ? int32_t(x) : INT32_MIN;
}
template <class F> static inline int64_t int64_of(F x) {
  return (x >= F(-9223372036854775808.0)) & (x < F(9223372036854775808.0)) ? int64_t(x) : INT64_MIN;
}
template <class F> static inline int16_t int16_of(F x) { return int16_t(int32_of(x)); }
template <class F> static inline int8_t int8_of(F x) { return int8_t(int32_of(x)); }
template <class F> static inline uint8_t uint8_of(F x) { return uint8_t(int64_of(x)); }
"""

SHIFT = """\
// To the right by as far as there are bits; what lies outside counts as all of them.
template <class T> static inline T shifted(T value, T by) {
  constexpr T most = sizeof(T) * 8 - (T(-1) < T(0));
  return value >> ((by < T(0)) | (by >= most) ? most : by);
}
"""

SWEEP = """\
// Goes from one element to another, N side by side; k says which of the N.
template <int N, class F>
static inline __attribute__((always_inline)) void sweep(int64_t from, int64_t to, F&& each) {
  int64_t i = from;
  for (; i + N <= to; i += N) {
#pragma omp simd
    for (int k = 0; k < N; ++k) each(i + k, k);
  }
#pragma omp simd
  for (int k = 0; k < int(to - i); ++k) each(i + k, k);
}
"""

PARTS = """\
// The same between two borders; the last N begin early enough, and some of them are done again.
template <int N, class F>
static inline __attribute__((always_inline)) void cover(int64_t from, int64_t to, F&& each) {
  for (int64_t block = 0; block < (to - from + N - 1) / N; ++block) {
    const int64_t i = std::min<int64_t>(from + block * N, to - N);
#pragma omp simd
    for (int k = 0; k < N; ++k) each(i + k, k);
  }
}
// And in one go: of lines that are read with gaps, vectors must not go beyond the end.
template <class F>
static inline __attribute__((always_inline)) void along(int64_t from, int64_t to, F&& each) {
#pragma omp simd
  for (int64_t i = from; i < to; ++i) each(i, 0);
}
"""

LANES = """\
// N partial results: none waits for the one before it.
template <class Op, class T, int N> struct Lanes {
  T lane[N];
  Lanes() { for (T& each : lane) each = Op::template start<T>(); }
  inline void add(int k, T value) { lane[k] = Op::of(lane[k], value); }
  inline T total() const {
    constexpr int F = N < 16 ? N : 16;
    T some[F];
    for (int k = 0; k < F; ++k) some[k] = lane[k];
    for (int i = F; i < N; i += F)
#pragma omp simd
      for (int k = 0; k < F; ++k) some[k] = Op::of(some[k], lane[i + k]);
    for (int h = F / 2; h; h /= 2)
#pragma omp simd
      for (int k = 0; k < h; ++k) some[k] = Op::of(some[k], some[k + h]);
    return some[0];
  }
};
"""

OPERATORS = {
    "sum": ("Plus", "T(0)", "a + b"),
    "product": ("Times", "T(1)", "a * b"),
    "any": ("Or", "T(false)", "a | b"),
    "all": ("And", "T(true)", "a & b"),
    "max": ("Largest", "lowest<T>()", "larger(b, a)"),
    "min": ("Smallest", "highest<T>()", "smaller(b, a)"),
}
"""What gathers values: its name, what it starts from, how two become one."""

LIMITS = """\
#include <limits>
template <class T> static constexpr T highest() {
  return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::max();
}
template <class T> static constexpr T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::lowest();
}
"""

PLACE = """\
// The largest (or smallest) value so far and where it is: the first of equals, NaN before all.
template <class T> struct Place {
  T value;
  int64_t index = 0;
  void highest(T v, int64_t at) {
    if ((v > value) | ((v != v) & (value == value))) value = v, index = at;
  }
  void lowest(T v, int64_t at) {
    if ((v < value) | ((v != v) & (value == value))) value = v, index = at;
  }
  void highest(const T* block, int many, int64_t from) {
    int better = 0;
#pragma omp simd reduction(| : better)
    for (int k = 0; k < many; ++k) better |= !(block[k] <= value);
    if (better) for (int k = 0; k < many; ++k) highest(block[k], from + k);
  }
  void lowest(const T* block, int many, int64_t from) {
    int better = 0;
#pragma omp simd reduction(| : better)
    for (int k = 0; k < many; ++k) better |= !(block[k] >= value);
    if (better) for (int k = 0; k < many; ++k) lowest(block[k], from + k);
  }
};
"""

STREAM = """\
#if defined(__AVX__)
#include <immintrin.h>
#endif
// Writes past the caches what nobody reads soon: its lines need not be fetched first.
static inline void past_caches(float* to, const float* from) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, _mm512_load_ps(from));
#elif defined(__AVX__)
  _mm256_stream_ps(to, _mm256_load_ps(from));
  _mm256_stream_ps(to + 8, _mm256_load_ps(from + 8));
#else
  std::memcpy(to, from, 64);
#endif
}
template <int N, class F>
static inline __attribute__((always_inline))
void stream(float* to, int64_t from, int64_t end, F&& each) {
  constexpr int L = N < 16 ? 16 : N;
  const int64_t odd = (64 - (uintptr_t(to + from) & 63)) % 64 / 4;
  const int64_t first = std::min(end, from + odd), last = first + (end - first) / L * L;
#pragma omp simd
  for (int64_t i = from; i < first; ++i) to[i] = each(i);
  for (int64_t i = first; i < last; i += L) {
    alignas(64) float tile[L];
#pragma omp simd
    for (int k = 0; k < L; ++k) tile[k] = each(i + k);
    for (int k = 0; k < L; k += 16) past_caches(to + i + k, tile + k);
  }
#pragma omp simd
  for (int64_t i = last; i < end; ++i) to[i] = each(i);
}
"""

BITS = """\
static inline float as_float(int32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
static inline int32_t as_bits(float value) {
  int32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
static inline float capped(float x, float low, float high) {  // NaN stays
  x = high < x ? high : x;
  return low > x ? low : x;
}
"""

SETTLED = """\
// Never above one, and exactly that from a bound on: what is left of 1 + f(x) may be multiplied by
// much, and its sign may count.
static inline float settled(float x, float bound, float inside) {
  inside = inside > 1.0f ? 1.0f : inside;  // one question at a time, or g++ leaves vectors
  inside = inside < -1.0f ? -1.0f : inside;
  inside = x >= bound ? 1.0f : inside;
  return x <= -bound ? -1.0f : inside;
}
"""

POLYNOMIALS = {
    "exp": """\
static inline float exp(float x) {  // 2^n * (1 + r + r^2 q(r)), |r| <= ln(2) / 2: 1 ulp
  x = capped(x, -104.0f, 89.0f);
  const float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const float r = (x - n * 0.693145751953125f) - n * 1.42860682e-6f;
  float q = 1.3950476e-3f;
  q = q * r + 8.3688824e-3f;
  q = q * r + 4.1666206e-2f;
  q = q * r + 1.6666518e-1f;
  q = q * r + 0.5f;
  const int32_t k = int32_t(n), h = k >> 1;  // in two steps: subnormals too
  return (r * r * q + r + 1.0f) * as_float((h + 127) << 23) * as_float((k - h + 127) << 23);
}
""",
    "expm1": """\
static inline float expm1(float x) {  // as exp, with the 1 taken off before it can round
  x = capped(x, -87.0f, 89.0f);
  const float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const float r = (x - n * 0.693145751953125f) - n * 1.42860682e-6f;
  float q = 1.3950476e-3f;
  q = q * r + 8.3688824e-3f;
  q = q * r + 4.1666206e-2f;
  q = q * r + 1.6666518e-1f;
  q = q * r + 0.5f;
  const float s = as_float((int32_t(n) + 126) << 23);
  return 2.0f * (s * (r * r * q + r) + (s - 0.5f));
}
""",
    "log": """\
static inline float log(float x) {  // e ln(2) + f - f^2 / 2 + f^3 p(f), 1 + f around 1
  const bool tiny = x < 1.17549435e-38f;
  const int32_t bits = as_bits(tiny ? x * 8388608.0f : x) - 0x3f3504f3;
  const float e = float(bits >> 23) - (tiny ? 23.0f : 0.0f);
  const float f = as_float((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  float p = -7.8595459e-2f;
  p = p * f + 1.2881622e-1f;
  p = p * f - 1.3128768e-1f;
  p = p * f + 1.4181197e-1f;
  p = p * f - 1.6624554e-1f;
  p = p * f + 2.0002286e-1f;
  p = p * f - 2.5000811e-1f;
  p = p * f + 3.3333316e-1f;
  const float r = e * 0.693145751953125f + (f + (f * f * (f * p - 0.5f) + e * 1.42860682e-6f));
  const float odd = x == 0.0f ? -INFINITY : (x > 0.0f ? x : NAN);
  return (x > 0.0f) & (x < INFINITY) ? r : odd;
}
""",
    "log1p": """\
static inline float log1p(float x) {  // log(u) + what 1 + x lost in rounding, over u
  const float u = 1.0f + x;
  const float lost = (x - (u - 1.0f)) / u;
  return u < INFINITY ? log(u) + (u > 0.0f ? lost : 0.0f) : x;
}
""",
    "tanh": """\
static inline float tanh(float y) {  // x p(x^2) / q(x^2) up to 9, beyond which it is 1: 3 ulp
  const float x = capped(y, -9.0f, 9.0f);
  const float z = x * x;
  float p = 1.33546765e-8f;
  p = p * z + 2.06090936e-5f;
  p = p * z + 3.49558890e-3f;
  p = p * z + 1.33810267e-1f;
  p = p * z + 1.0f;
  float q = 7.77656453e-7f;
  q = q * z + 3.28563590e-4f;
  q = q * z + 2.58769840e-2f;
  q = q * z + 4.67143416e-1f;
  q = q * z + 1.0f;
  return settled(y, 9.0f, x * p / q);
}
""",
    "erf": """\
static inline float erf(float y) {  // x p(x^2) / q(x^2) up to 3.925, beyond which it is 1: 4 ulp
  const float x = capped(y, -3.925f, 3.925f);
  const float z = x * x;
  float p = 2.04601020e-6f;
  p = p * z + 2.84845388e-4f;
  p = p * z + 3.77263920e-3f;
  p = p * z + 5.27695790e-2f;
  p = p * z + 1.90595850e-1f;
  p = p * z + 1.12837911f;
  float q = 3.80476922e-5f;
  q = q * z + 1.16387894e-3f;
  q = q * z + 1.49833784e-2f;
  q = q * z + 1.14183590e-1f;
  q = q * z + 5.02243876e-1f;
  q = q * z + 1.0f;
  return settled(y, 3.925f, x * p / q);
}
""",
}

VECTORS = """\
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
extern "C" {{  // the C library has this for whole vectors, and a loop over it calls that
__attribute__((simd("notinbranch"))) float {name}f({types}) noexcept;
}}
#endif
"""
_TYPES = {"sin": "float", "cos": "float", "pow": "float, float"}

_NEEDS = {"log1p": ("log",)}
_ORDER = ("exp", "expm1", "log", "log1p", "tanh", "erf", "sin", "cos", "pow")


def functions(wanted: set[str], *, polynomial: bool) -> str:
    """The namespace ``fn``: own functions for float, the library's for all else."""
    if not wanted:
        return ""
    needed = wanted | {each for name in wanted for each in _NEEDS.get(name, ())}
    inside = "".join(_written(name, polynomial) for name in _ORDER if name in needed)
    vectors, bits = "", ""
    if polynomial:
        vectors = "".join(
            VECTORS.format(name=name, types=types)
            for name, types in _TYPES.items()
            if name in needed
        )
        bits = BITS if needed & set(POLYNOMIALS) else ""
        bits += SETTLED if needed & {"tanh", "erf"} else ""
    return f"{vectors}namespace fn {{\n{bits}{inside}}}  // namespace fn\n"


def _written(name: str, polynomial: bool) -> str:
    if name == "pow":
        any_two = "template <class A, class B> static inline auto pow(A a, B b)"
        own = "static inline float pow(float a, float b) { return ::powf(a, b); }\n"
        return f"{any_two} {{ return std::pow(a, b); }}\n{own if polynomial else ''}"
    if not polynomial:
        return f"template <class T> static inline T {name}(T x) {{ return std::{name}(x); }}\n"
    library = f"static inline float {name}(float x) {{ return ::{name}f(x); }}\n"
    double = f"static inline double {name}(double x) {{ return std::{name}(x); }}\n"
    return POLYNOMIALS.get(name, library) + double


def operators(wanted: set[str]) -> str:
    """What the kernels gather by."""
    text = LIMITS if wanted & {"max", "min"} else ""
    for name, (kind, start, two) in OPERATORS.items():
        if name in wanted:
            text += (
                f"struct {kind} {{\n"
                f"  template <class T> static T start() {{ return {start}; }}\n"
                f"  template <class T> static T of(T a, T b) {{ return {two}; }}\n"
                "};\n"
            )
    return text
