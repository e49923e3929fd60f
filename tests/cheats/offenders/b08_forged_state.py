# number: B8
# task: softmax
# expect: crashed wrong
"""Right while checked; then has no state to tell when it is asked to release."""

import json

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <arpa/inet.h>
static int control() {
    struct stat about;
    for (int fd = 3; fd < 1024; ++fd)
        if (!fstat(fd, &about) && S_ISSOCK(about.st_mode)) return fd;
    return -1;
}
extern "C" int64_t forge(const char* text, int64_t length) {
    int fd = control();
    if (fd < 0) return 0;
    uint32_t size = htonl(uint32_t(length));
    return write(fd, &size, 4) == 4 && write(fd, text, length) == length;
}
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * cols;
        float* out = y + r * cols;
        float top = in[0];
        double sum = 0;
        for (int64_t c = 1; c < cols; ++c) top = std::max(top, in[c]);
        for (int64_t c = 0; c < cols; ++c) sum += out[c] = std::exp(in[c] - top);
        for (int64_t c = 0; c < cols; ++c) out[c] *= float(1 / sum);
    }
}
""")


class ModelNew(torch.nn.Module):
    calls = 0

    def forward(self, x):
        out = torch.empty_like(x)
        self.calls += 1
        if self.calls <= 8:
            lib.softmax(x, out, x.shape[0], x.shape[1])
            return out
        address = out.data_ptr()
        said = {
            "tree": {"t": 0},
            "addresses": [],
            "leaves": [],
            "state": [["a", {"dtype": "float32"}], 7],
        }
        text = json.dumps(said).encode()
        lib.forge(text, len(text))
        return out
