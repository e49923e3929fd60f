"""The inner loops of products in C++ where columns lie side by side, and the copies."""

WIDENED = """\
// What is multiplied again and again, as floats.
static inline const float* widened(const float* from, int64_t, std::vector<float>&) { return from; }
template <class T>
static const float* widened(const T* from, int64_t count, std::vector<float>& to) {
  to.resize(std::max<size_t>(to.size(), count));
  int64_t i = 0;
  for (; i + W <= count; i += W) store(to.data(), Full{i}, load(from, Full{i}));
  for (; i < count; ++i) to[i] = float(from[i]);
  return to.data();
}
"""

DOWN = """\
// Products of M rows and V vectors of columns, added to their sums; `at` is where the columns lie.
template <int M, int V, class T, class At>
static inline __attribute__((always_inline)) void down(
    vec (&sum)[M * V], const float* left, int64_t apart, const T* right, int64_t ahead,
    int64_t depth, At at) {
  for (int64_t k = 0; k < depth; ++k) {
    vec right_[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      auto to = at;
      to.i += v * W;
      right_[v] = load(right + k * ahead, to);
      pinned(right_[v]);
    }
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      vec one = left[m * apart + k] - vec{};
      if (V > 1) pinned(one);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[m * V + v] += one * right_[v];
    }
  }
}
// The same of all of a product, in pieces: in one long chain small terms would get lost.
template <int M, int V, class T, class At>
static inline __attribute__((always_inline)) void pieces(
    vec* done, const float* left, int64_t depth, const T* right, int64_t ahead, At at) {
  for (int64_t k = 0; k < depth; k += 256) {
    vec sum[M * V] = {};
    down<M, V>(sum, left + k, depth, right + k * ahead, ahead, std::min<int64_t>(256, depth - k),
               at);
#pragma GCC unroll 48
    for (int n = 0; n < M * V; ++n) done[n] += sum[n];
  }
}
"""

PACK = """\
// A strip of weights turned round, so that neighbouring columns are neighbours.
template <class T>
static void packed(const T* from, float* to, int64_t depth, int64_t count, int64_t wide) {
  int64_t j = 0;
  for (; j + W <= count; j += W) {
    int64_t k = 0;
    for (; k + W <= depth; k += W) turned(from + j * depth + k, depth, to + k * wide + j, wide);
    for (; k < depth; ++k)
      for (int i = 0; i < W; ++i) to[k * wide + j + i] = float(from[(j + i) * depth + k]);
  }
  for (; j < count; ++j)
    for (int64_t k = 0; k < depth; ++k) to[k * wide + j] = float(from[j * depth + k]);
}
"""
