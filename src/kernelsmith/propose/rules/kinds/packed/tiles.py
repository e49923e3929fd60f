"""How large a program's tile may be, by what it multiplies float32 in.

TF32 goes from shared memory into tensor cores as it lies. What is exact takes more room: a factor
is split into parts (two of TF32, three of bfloat16) that stand in registers beside the sums, and
those of the weights go through shared memory once more.
"""

from kernelsmith.propose.rules.space import Parameters, Seed

ROUNDING = "tf32"
EXACT = ("bf16x6", "tf32x3", "ieee")
"""Six products of bfloat16, three of TF32, or float32 without tensor cores. The first is safe, and
was the fastest in tiles of products on an H200 (63 and 35 TFLOP/s; the library's float32: 51)."""
SMALLER: Seed = (("channels", "64"), ("stages", "3"))
"""What exact tiles begin with: two programs to a multiprocessor, one splits while the other
multiplies (128 registers a thread and 64 KiB, compiled for Hopper)."""
_ROUNDED_SUMS = 32768
"""That a program in TF32 may hold."""
_SUMS_A_THREAD = 64
"""Beside the parts of factors."""
_MOST_WARPS = 8
"""More of them have half the registers each, which parts do not fit."""
_DEEPEST = 32
"""Products of a step: tensor cores cut off what they add up, so that steps are short, and added to
one another outside."""
_SPLIT_BYTES = {"tf32x3": 8, "bf16x6": 6}
"""Of shared memory, per weight of a step."""
_SHARED = 227 * 1024
_LEAST = 16
"""Channels that tensor cores take."""


def precision_of(chosen: Parameters) -> str:
    """What float32 is multiplied in; what is half precision anyway has no choice."""
    return chosen.get("precision", ROUNDING)


def rounds(chosen: Parameters) -> bool:
    """Whether factors are rounded to TF32 before they are multiplied."""
    return precision_of(chosen) == ROUNDING


def most_sums(chosen: Parameters) -> int:
    """How many sums a program may hold."""
    return _ROUNDED_SUMS if rounds(chosen) else 32 * int(chosen["warps"]) * _SUMS_A_THREAD


def warps_of_all(chosen: Parameters) -> str:
    """Warps of a program that has all ``BC`` channels and at least 64 pixels, in Python."""
    return chosen["warps"] if rounds(chosen) else f"max({chosen['warps']}, BC // 32)"


def fitted(chosen: Parameters) -> dict[str, str]:
    """The choice, with a tile no larger than registers and shared memory hold.

    Where a tile must have all channels, which the text does not know, ``most_sums`` decides at
    call time how many pixels it has; 256 channels by 64 pixels fit at any depth of stages.
    """
    if rounds(chosen):
        return dict(chosen)
    warps, depth = min(_MOST_WARPS, int(chosen["warps"])), min(_DEEPEST, int(chosen["depth"]))
    found = dict(chosen) | {"warps": str(warps), "depth": str(depth)}
    if "channels" not in chosen:
        return found
    pixels, stages, most = int(chosen["pixels"]), int(chosen["stages"]), most_sums(found)
    channels = min(int(chosen["channels"]), max(_LEAST, most // pixels))
    pixels = min(pixels, most // channels)
    split = _SPLIT_BYTES.get(precision_of(chosen), 0) * channels * depth
    # One tile is in registers, the others lie ahead.
    ahead = (_SHARED - split) // (4 * (pixels + channels) * depth)
    sizes = {"pixels": pixels, "channels": channels, "stages": min(stages, 1 + ahead)}
    return found | {name: str(size) for name, size in sizes.items()}
