"""C++ for floats that are compared as integers: what routers and sorts share."""

UNKEYED = """\
static inline float unkeyed(int32_t key) {
  const int32_t bits = key ^ ((key >> 31) & 0x7fffffff);
  float v;
  std::memcpy(&v, &bits, 4);
  return v;
}
template <class T> static inline vec rounded(vec v) {
  for (int k = 0; k < W; ++k) v[k] = float(T(v[k]));
  return v;
}
template <> inline vec rounded<float>(vec v) { return v; }
"""
"""An integer's float again, and values as a dtype of memory holds them."""
