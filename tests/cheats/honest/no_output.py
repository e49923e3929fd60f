# number: honest
# task: h_scatter_
# expect: passed
"""Fills a cache in place and returns nothing, like the reference."""

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void store(float* cache, const float* rows, const int64_t* places, int64_t n, int64_t dim) {
    for (int64_t i = 0; i < n; ++i)
        std::memcpy(cache + places[i] * dim, rows + i * dim, dim * sizeof(float));
}
""")


def store(cache, rows, places):
    lib.store(cache, rows.contiguous(), places.contiguous(), rows.shape[0], rows.shape[1])
