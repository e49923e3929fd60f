"""What this device can do, measured: the ceilings that times are held against."""

import torch

_REPEATS = 5


def measure_speeds() -> dict[str, object]:
    """Bandwidth of memory and of the second-level cache in bytes a second, and matrix rates."""
    properties = torch.cuda.get_device_properties(0)
    cache = int(properties.L2_cache_size)
    large = min(1 << 30, properties.total_memory // 16)
    return {
        "dram_bytes_s": _copy_rate(large, 4),
        "l2_bytes_s": _copy_rate(max(cache // 8, 1 << 20), 64),
        "l2_bytes": cache,
        "processors": properties.multi_processor_count,
        "flops": {
            "float32": _product_rate(torch.float32, 4096),
            "bfloat16": _product_rate(torch.bfloat16, 8192),
        },
    }


def _copy_rate(count: int, rounds: int) -> float:
    source = torch.zeros(count // 4, device="cuda")
    target = torch.empty_like(source)

    def work() -> None:
        for _ in range(rounds):
            target.copy_(source)

    return 2.0 * rounds * source.nbytes / (1e-6 * _best_us(work))


def _product_rate(dtype: torch.dtype, size: int) -> float:
    a = torch.randn(size, size, device="cuda", dtype=dtype)
    b, c = torch.randn_like(a), torch.empty_like(a)
    return 2.0 * size**3 / (1e-6 * _best_us(lambda: torch.mm(a, b, out=c)))


def _best_us(work: object) -> float:
    assert callable(work)
    work()
    times = []
    for _ in range(_REPEATS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(1000.0 * begin.elapsed_time(end))
    return min(times)
