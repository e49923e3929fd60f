"""C++ that sorts and selects: floats as integers in the same order, and what is done with those."""

from kernelsmith.propose.rules.kinds.keys import UNKEYED

KEYS = (
    """\
// Integers in the order of the floats; NaN is the largest and -0.0 is 0.0, as in torch.
static inline ivec keyed(vec v) {
  const ivec bits = (v != v) ? ivec{} + 0x7fffffff : (ivec)(v + 0.0f);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
"""
    + UNKEYED
    + """\
static inline ivec at_once(const int32_t* p) {
  ivec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
static inline void put(int32_t* p, ivec v) { std::memcpy(p, &v, sizeof v); }
static inline bool any(ivec v) {
#ifdef ZMM
  return _mm512_cmplt_epi32_mask((__m512i)v, _mm512_setzero_si512());
#else
  return across<int32_t>(v, [](int32_t a, int32_t b) { return a | b; });
#endif
}
struct Held {  // what a thread keeps from row to row
  std::vector<int32_t> keys, places, few;
  std::vector<uint64_t> pairs, others;
  std::vector<float> scratch;
  template <class E> static E* fit(std::vector<E>& held, int64_t size) {
    if (int64_t(held.size()) < size) held.resize(size);
    return held.data();
  }
  static Held& mine() {
    static thread_local Held held;
    return held;
  }
};
"""
)
SELECT = """\
// The m-th smallest of n integers by halving their range; whole vectors may be read at the end.
static int32_t smallest(const int32_t* keys, int64_t n, int64_t m) {
  const int64_t whole = n / W * W;
  const ivec there = lanes() < int(n - whole);
  const ivec rest = whole < n ? at_once(keys + whole) : ivec{};
  ivec low = ivec{} + INT32_MAX, high = ivec{} + INT32_MIN;
  for (int64_t i = 0; i < whole; i += W) {
    const ivec key = at_once(keys + i);
    low = key < low ? key : low;
    high = key > high ? key : high;
  }
  low = (there & (rest < low)) ? rest : low;
  high = (there & (rest > high)) ? rest : high;
  int64_t first = across<int32_t>(low, [](int32_t a, int32_t b) { return std::min(a, b); });
  int64_t last = across<int32_t>(high, [](int32_t a, int32_t b) { return std::max(a, b); });
  while (first < last) {
    const int32_t mid = int32_t(first + (last - first) / 2);
    ivec counts[4] = {};
    int64_t i = 0;
    for (; i + 4 * W <= whole; i += 4 * W)
      for (int u = 0; u < 4; ++u) counts[u] -= at_once(keys + i + u * W) <= mid;
    for (; i < whole; i += W) counts[0] -= at_once(keys + i) <= mid;
    counts[0] -= there & (rest <= mid);
    const ivec all = (counts[0] + counts[1]) + (counts[2] + counts[3]);
    const int64_t count = across<int32_t>(all, [](int32_t a, int32_t b) { return a + b; });
    if (count == m) {  // the largest of these
      ivec most = ivec{} + INT32_MIN;
      for (i = 0; i < whole; i += W) {
        const ivec key = at_once(keys + i);
        most = ((key <= mid) & (key > most)) ? key : most;
      }
      most = (there & (rest <= mid) & (rest > most)) ? rest : most;
      return across<int32_t>(most, [](int32_t a, int32_t b) { return std::max(a, b); });
    }
    if (count < m) first = int64_t(mid) + 1;
    else last = mid;
  }
  return int32_t(first);
}
"""
SIEVE = """\
// The m-th smallest key of a row, or the m-th smallest of the complements (`down`): a bar that the
// best m so far have set keeps most of a long row out.
template <bool down, class Get>
static int32_t sieved(int64_t n, int64_t m, Held& held, Get&& get) {
  const auto key = [](vec v) { return down ? ~keyed(v) : keyed(v); };
  const int64_t most = std::max<int64_t>(512, 4 * m) / W * W;
  if (n <= 2 * most) {
    int32_t* keys = Held::fit(held.keys, n + W);
    sweep(n, [&](auto at, int) { put(keys + at.i, key(get(at))); });
    return smallest(keys, n, m);
  }
  int32_t* few = Held::fit(held.few, most + 9 * W);
  for (int64_t i = 0; i < most; i += W) put(few + i, key(get(Full{i})));
  int64_t size = most, i = most;
  while (true) {
    const int32_t limit = smallest(few, size, m);
    if (i >= n) return limit;
    const float bar = unkeyed(down ? ~limit : limit);
    if (down && bar != bar) return limit;  // nothing is above NaN
    int64_t kept = 0;
    for (int64_t j = 0; j < size; ++j) {
      few[kept] = few[j];
      kept += few[j] < limit;
    }
    for (; kept < m; ++kept) few[kept] = limit;
    size = m;
    const auto passing = [&](vec v) { return down ? ~(v <= bar) : ~(v >= bar); };
    const auto taken = [&](vec v, int count) {
      const ivec pass = passing(v), keys = key(v);
      for (int k = 0; k < count; ++k)
        if (pass[k]) few[size++] = keys[k];
    };
    for (; i + 4 * W <= n && size <= most; i += 4 * W) {
      vec v[4];
      for (int u = 0; u < 4; ++u) v[u] = get(Full{i + u * W});
      if (any((passing(v[0]) | passing(v[1])) | (passing(v[2]) | passing(v[3]))))
        for (int u = 0; u < 4; ++u) taken(v[u], W);
    }
    if (i + 4 * W <= n) continue;
    for (; i + W <= n; i += W) taken(get(Full{i}), W);
    if (i < n) taken(get(Part{i, int(n - i)}), int(n - i));
    i = n;
  }
}
template <class Get>
static float kth(int64_t n, int64_t rank, Held& held, Get&& get) {  // from the nearer end
  return rank <= n - rank ? unkeyed(sieved<false>(n, rank, held, get))
                          : unkeyed(~sieved<true>(n, n - rank + 1, held, get));
}
template <class Get>
static float median(int64_t n, int64_t rank, Held& held, Get&& get) {
  ivec odd = {};
  sweep(n, [&](auto at, int) {
    const vec v = get(at);
    odd |= v != v;
  });
  return any(odd) ? NAN : kth(n, rank, held, get);
}
"""
ORDER = """\
// Every key's place is the number of those that come before it; of equal ones the first does.
template <class Put> static void by_counting(const int32_t* keys, int n, Put&& to) {
  for (int b = 0; b < n; b += W) {
    const ivec mine = at_once(keys + b);
    ivec before = {}, other = {};
    const int end = std::min(b + W, n);
    int j = 0;
    for (; j < b; j += 2) {  // W is even
      before -= keys[j] <= mine;
      other -= keys[j + 1] <= mine;
    }
    for (; j < end; ++j) before -= (keys[j] < mine) | ((keys[j] == mine) & (lanes() > j - b));
    for (; j + 2 <= n; j += 2) {
      before -= keys[j] < mine;
      other -= keys[j + 1] < mine;
    }
    for (; j < n; ++j) before -= keys[j] < mine;
    before += other;
    for (int k = 0; k < end - b; ++k) to(before[k], b + k);
  }
}
// Digit by digit from the lowest, which keeps the order of equal ones; digits that all keys share
// are left out, as are the LOW bits that the dtype does not have.
template <int LOW, class Put>
static void by_digits(const int32_t* keys, int64_t n, Held& held, Put&& to) {
  ivec low = ivec{} + keys[0], high = low;
  for (int64_t i = 0; i + W <= n; i += W) {
    const ivec key = at_once(keys + i);
    low = key < low ? key : low;
    high = key > high ? key : high;
  }
  int32_t first = across<int32_t>(low, [](int32_t a, int32_t b) { return std::min(a, b); });
  int32_t last = across<int32_t>(high, [](int32_t a, int32_t b) { return std::max(a, b); });
  for (int64_t i = n / W * W; i < n; ++i)
    first = std::min(first, keys[i]), last = std::max(last, keys[i]);
  const uint32_t base = uint32_t(first), span = (uint32_t(last) - base) >> LOW;
  if (!span) {
    for (int64_t i = 0; i < n; ++i) to(i, i);
    return;
  }
  const int bits = 32 - __builtin_clz(span), passes = (bits + DIGIT - 1) / DIGIT;
  const int digit = (bits + passes - 1) / passes;
  const uint32_t mask = (1u << digit) - 1;
  uint32_t counts[4][1 << DIGIT];
  for (int p = 0; p < passes; ++p) std::fill_n(counts[p], mask + 1, 0);
  const auto counting = [&](auto many) {
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t key = (uint32_t(keys[i]) - base) >> LOW;
      for (int p = 0; p < decltype(many)::value; ++p) ++counts[p][(key >> (p * digit)) & mask];
    }
  };
  if (passes == 1) counting(std::integral_constant<int, 1>());
  else if (passes == 2) counting(std::integral_constant<int, 2>());
  else if (passes == 3) counting(std::integral_constant<int, 3>());
  else counting(std::integral_constant<int, 4>());
  uint32_t totals[4] = {};
  for (uint32_t d = 0; d <= mask; ++d)
    for (int p = 0; p < passes; ++p) {
      const uint32_t count = counts[p][d];
      counts[p][d] = totals[p];
      totals[p] += count;
    }
  uint64_t* from = Held::fit(held.pairs, n);
  uint64_t* into = Held::fit(held.others, n);
  if (passes == 1) {
    for (int64_t i = 0; i < n; ++i) to(counts[0][(uint32_t(keys[i]) - base) >> LOW]++, i);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t key = (uint32_t(keys[i]) - base) >> LOW;
    from[counts[0][key & mask]++] = uint64_t(key >> digit) << 32 | uint32_t(i);
  }
  for (int p = 1; p < passes - 1; ++p) {
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t pair = from[i];
      into[counts[p][uint32_t(pair >> 32) & mask]++] =
          (pair >> (32 + digit)) << 32 | uint32_t(pair);
    }
    std::swap(from, into);
  }
  uint32_t* last_counts = counts[passes - 1];
  for (int64_t i = 0; i < n; ++i) to(last_counts[uint32_t(from[i] >> 32)]++, uint32_t(from[i]));
}
template <class T> constexpr int lowest = 0;
template <> constexpr int lowest<bf16> = 16;
template <> constexpr int lowest<f16> = 13;
template <class T, class Put>
static void in_order(const int32_t* keys, int64_t n, Held& held, Put&& to) {
  if (n <= SMALL) by_counting(keys, int(n), to);
  else by_digits<lowest<T>>(keys, n, held, to);
}
"""
FIRST = """\
// The first m of n keys in order: those below the m-th smallest, and as many equal to it as fit.
template <class T, class Put>
static void first_in_order(const int32_t* keys, int64_t n, int64_t m, Held& held, Put&& to) {
  if (m == n) return in_order<T>(keys, n, held, to);
  const int32_t limit = smallest(keys, n, m);
  int32_t* few = Held::fit(held.few, m + W);
  int32_t* places = Held::fit(held.places, m + W);
  int64_t equal = m, size = 0;
  for (int64_t i = 0; i + W <= n; i += W) {
    const ivec below = at_once(keys + i) < limit;
    if (any(below)) for (int k = 0; k < W; ++k) equal += below[k];
  }
  for (int64_t i = n / W * W; i < n; ++i) equal -= keys[i] < limit;
  const auto taken = [&](int64_t i) {
    if (keys[i] > limit || (keys[i] == limit && equal-- <= 0)) return;
    few[size] = keys[i];
    places[size++] = int32_t(i);
  };
  int64_t i = 0;
  for (; i + W <= n && size < m; i += W)
    if (any(at_once(keys + i) <= limit)) for (int k = 0; k < W; ++k) taken(i + k);
  for (; i < n && size < m; ++i) taken(i);
  in_order<T>(few, m, held, [&](int64_t at, int64_t which) { to(at, places[which]); });
}
"""
