"""Triton kernels."""

from kernelsmith.propose.knowledge.notes import Notes

_LANGUAGE = """\
Write the kernel in Triton inside the Python file and launch it from `forward`. Compute offsets in
int64 where a tensor may hold more than 2**31 elements, mask every load and store that can leave the
tensor, and skip the launch for empty tensors.

```python
import torch
import triton
import triton.language as tl


@triton.jit
def scaled_relu(x, y, n, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    values = tl.load(x + at, mask=inside)
    tl.store(y + at, scale * tl.maximum(values, 0.0), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        if n:
            scaled_relu[(triton.cdiv(n, 1024),)](x, y, n, self.scale, BLOCK=1024)
        return y
```"""

NOTES = Notes(
    language=_LANGUAGE,
    tips=(
        "Neighbouring lanes must touch neighbouring addresses; 16 bytes per thread and access is "
        "what fills the bus (for float32 a BLOCK of 4 times the threads).",
        "Register use limits how many blocks share an SM; spills (see the kernels table) cost more "
        "than a smaller tile.",
        "Try num_warps 1 to 16 and, for loops with loads, num_stages 2 to 5; `triton.autotune` may "
        "be used with few configurations and a key of the sizes that matter.",
        "One program per row is right while a row fits into registers (up to about 16 K elements); "
        "beyond that loop over the row in blocks, or split it over programs and combine.",
        "When rows are few and long, split the reduction over programs: a grid smaller than the "
        "number of SMs wastes the rest.",
        "Matrix products: tl.dot on tiles of 64 to 128 with float32 accumulators, programs grouped "
        "so that neighbours share tiles in L2, and the epilogue (bias, activation, norm) fused in. "
        'float32 inputs need input_precision="ieee" (or "tf32x3") to stay within the error budget.',
        "Several small kernels cost a launch each (2 to 5 us of device time for short ones): merge "
        "them, or make one persistent kernel that loops over tiles.",
        "Tell the compiler what is constant (tl.constexpr) and what divides evenly; "
        "`tl.multiple_of` and `tl.max_contiguous` help where it cannot see it.",
        'Use eviction_policy="evict_first" for streamed data and "evict_last" for what is reused.',
    ),
    hopper=(
        "On this GPU tensor descriptors (tl.make_tensor_descriptor) copy tiles by hardware (TMA) "
        "and hide latency behind arithmetic; warp specialisation and num_stages 3 to 5 go with it.",
    ),
)
