"""C++ that keeps sums of products in registers, for whoever multiplies."""

REGISTERS = """\
#include <utility>
#include <vector>
// Keeps a value in its register: compilers would rather read it again for every product, and then
// loads are what takes the time.
template <class V> static inline __attribute__((always_inline)) void pinned(V& v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(V) <= 64) asm("" : "+v"(v));
#elif defined(__AVX__)
  if constexpr (sizeof(V) <= 32) asm("" : "+x"(v));
#endif
}
#ifdef ZMM
static inline vec load(const bf16* p, Full at) {
  const __m256i half = _mm256_loadu_si256((const __m256i*)(p + at.i));
  return (vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
}
static inline vec load(const f16* p, Full at) {
  return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)(p + at.i)));
}
#if defined(__AVX512BW__) && defined(__AVX512VL__)
static inline vec load(const bf16* p, Part at) {
  const __m256i half = _mm256_maskz_loadu_epi16((1u << at.n) - 1, p + at.i);
  return (vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
}
static inline vec load(const f16* p, Part at) {
  return (vec)_mm512_cvtph_ps(_mm256_maskz_loadu_epi16((1u << at.n) - 1, p + at.i));
}
#endif
#endif
// Sums leave their registers once: what is named by an address would be in memory all along.
template <int N> static inline __attribute__((always_inline)) void kept(vec (&sum)[N], vec* done) {
#pragma GCC unroll 48
  for (int n = 0; n < N; ++n) done[n] = sum[n];
}
// Calls f with a number that the compiler knows.
template <int M, class F> static inline void counted(int64_t many, F&& f) {
  if (many == M) f(std::integral_constant<int, M>());
  else if constexpr (M > 1) counted<M - 1>(many, f);
}
"""

TURNED = """\
// Of two vectors, the halves of blocks of 2 * H lanes that belong together.
template <int H, int... K>
static inline vec lower(vec a, vec b, std::integer_sequence<int, K...>) {
  return __builtin_shufflevector(a, b, (K & H ? W + (K ^ H) : K)...);
}
template <int H, int... K>
static inline vec upper(vec a, vec b, std::integer_sequence<int, K...>) {
  return __builtin_shufflevector(a, b, (K & H ? W + K : K ^ H)...);
}
template <int H> static inline __attribute__((always_inline)) void swapped(vec (&v)[W]) {
  if constexpr (H > 0) {
    constexpr auto all = std::make_integer_sequence<int, W>();
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i)
      if (!(i & H)) {
        const vec a = v[i], b = v[i + H];
        v[i] = lower<H>(a, b, all);
        v[i + H] = upper<H>(a, b, all);
      }
    swapped<H / 2>(v);
  }
}
// W rows of W elements, turned round; of fewer rows the rest is zero.
template <class T>
static inline void turned(const T* from, int64_t ahead, float* to, int64_t apart, int rows = W) {
  vec v[W];
#pragma GCC unroll 16
  for (int i = 0; i < W; ++i) v[i] = i < rows ? load(from + i * ahead, Full{0}) : vec{};
  swapped<W / 2>(v);
#pragma GCC unroll 16
  for (int i = 0; i < W; ++i) store(to + i * apart, Full{0}, v[i]);
}
"""

ALONG = """\
#if defined(__AVX512F__)
constexpr int NATIVE = 16, HELD = 32;
#else
constexpr int NATIVE = 8, HELD = 16;
#endif
constexpr int REGISTERS = W <= NATIVE ? HELD : HELD * NATIVE / W;
constexpr int MOST = REGISTERS >= 32 ? 8 : REGISTERS >= 16 ? 4 : 2;  // rows at a time
// How many outputs stay in registers with so many rows.
constexpr int outputs(int rows) {{
  for (int n : {{8, 6, 4, 3, 2}})
    if (n <= {outputs} && n * rows + n + 1 <= REGISTERS) return n;
  return 1;
}}
// Products of M rows and N rows of weights, added to their vectors of partial sums.
template <int M, int N, class T, class At>
static inline __attribute__((always_inline)) void step(
    vec (&sum)[M * N], const float* left, const T* right, int64_t depth,
    int64_t ahead, At at) {{
  vec weights[N];
#pragma GCC unroll 8
  for (int n = 0; n < N; ++n) {{
    weights[n] = load(right + n * ahead, at);
    pinned(weights[n]);
  }}
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {{
    vec one = load(left + m * depth, at);
    pinned(one);
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) sum[m * N + n] += one * weights[n];
  }}
}}
template <int M, int N, class T>
static inline __attribute__((always_inline)) void along(
    vec (&sum)[M * N], const float* left, const T* right, int64_t depth, int64_t ahead) {{
  int64_t k = 0;
  for (; k + W <= depth; k += W) step<M, N>(sum, left, right, depth, ahead, Full{{k}});
  if (k < depth) step<M, N>(sum, left, right, depth, ahead, Part{{k, int(depth - k)}});
}}
// Lanes whose number has the bit H come from b, the others from a; S: each with its neighbour's.
template <int H, int S, int... K>
static inline vec woven(vec a, vec b, std::integer_sequence<int, K...>) {{
  return __builtin_shufflevector(a, b, (K & H ? W + (K ^ S) : K ^ S)...);
}}
// The sum of each of N <= W vectors, in a lane of its own: N - 1 steps for all of them.
template <int H, int N> static inline __attribute__((always_inline)) vec totals(vec* v) {{
  if constexpr (H == 0) {{
    return v[0];
  }} else {{
    constexpr int M = N < H ? N : H;
    constexpr auto all = std::make_integer_sequence<int, W>();
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {{
      const vec other = i + H < N ? v[i + H] : vec{{}};
      v[i] = woven<H, 0>(v[i], other, all) + woven<H, H>(v[i], other, all);
    }}
    return totals<H / 2, M>(v);
  }}
}}
// Puts the sums of M rows where they belong.
template <int M, int N, int A = 0>
static inline void placed(vec* sum, float* to, int64_t apart) {{
  if constexpr (A < M * N) {{
    constexpr int count = M * N - A < W ? M * N - A : W;
    float done[W];
    store(done, Full{{0}}, totals<W / 2, count>(sum + A));
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) to[(A + i) / N * apart + (A + i) % N] = done[i];
    placed<M, N, A + W>(sum, to, apart);
  }}
}}
// One product of several that are added up; rows of `right` lie so far apart.
template <class T> struct Term {{ const float* left; const T* right; int64_t depth, ahead; }};
template <int M, int N, class T>
static __attribute__((noinline)) void block(const Term<T>* terms, int count, int64_t row,
                                            int64_t column, float* to, int64_t apart) {{
  vec sum[M * N] = {{}}, done[M * N];
  for (int i = 0; i < count; ++i) {{
    const Term<T> each = terms[i];
    along<M, N>(sum, each.left + row * each.depth, each.right + column * each.ahead, each.depth,
                each.ahead);
  }}
  kept(sum, done);
  placed<M, N>(done, to + row * apart + column, apart);
}}
// All rows by some rows of weights.
template <class T>
static void dots(const Term<T>* terms, int count, int64_t rows, int64_t columns, float* to,
                 int64_t apart) {{
  const int64_t parts = (rows + MOST - 1) / MOST;
  for (int64_t part = 0; part < parts; ++part) {{
    const int64_t row = rows * part / parts, last = rows * (part + 1) / parts;
    counted<MOST>(last - row, [&](auto many) {{
      constexpr int M = decltype(many)::value, O = outputs(M);
      int64_t at = 0;
      for (; at + O <= columns; at += O) block<M, O>(terms, count, row, at, to, apart);
      for (; at < columns; ++at)
        for (int64_t r = row; r < last; ++r) block<1, 1>(terms, count, r, at, to, apart);
    }});
  }}
}}
"""
