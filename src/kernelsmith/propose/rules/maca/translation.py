"""The mechanical part of porting a CUDA candidate to MACA: names, headers, masks, waves of 64.

A wave holds 64 lanes there. Whoever adds up 32 of them, or numbers lanes by 32, computes something
else, so every place that shows this assumption is rewritten; a source that may hide it elsewhere is
not translated, and the reason names the line.
"""

import re
from collections.abc import Callable

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.maca.names import renamed

FULL = "0xffffffffffffffffull"
WAVE = 64
_CALL = re.compile(r"\bcuda_library\s*\(\s*r?(\"\"\"|''')(.*?)\1", re.DOTALL)
_TALKS = re.compile(r"\b__(?:shfl\w*|ballot|any|all)_sync\b")
_REFUSED = (
    (r"\basm\b|__asm__", "PTX has no counterpart"),
    (r"\b__activemask\b|\b__(?:match|reduce)_\w+_sync\b", "depends on the hardware's own groups"),
    (r"cooperative_groups", "cooperative groups are not translated"),
    (r"\bnvcuda\b|<mma\.h>|\bwgmma|cuTensorMap|__cluster_dims__", "is NVIDIA's hardware"),
    (r"\bcub::|\bthrust::|\bcutlass", "a library of NVIDIA's"),
    (r"\b(?:cublas|cudnn|cufft|curand|cusparse|nccl)\w+", "a library of NVIDIA's"),
    (r"\b__shfl\w*_sync\s*\([^;]*,\s*(?:2|4|8|16|32)\s*\)\s*[;)]", "groups of less than a wave"),
)
_LANES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    # Masks: in place, by name, and as the type of what holds one.
    (
        r"(__\w+_sync\s*\(\s*)(?:0x[fF]{8}[uU]?[lL]{0,2}(?![0-9a-fA-F])|-1\b|~0[uU]?\b)",
        rf"\g<1>{FULL}",
    ),
    (r"(#\s*define\s+\w*MASK\w*\s+)\(?0x[fF]{8}[uU]?\)?(?![0-9a-fA-F])", rf"\g<1>{FULL}"),
    (
        r"\b(?:unsigned int|unsigned|uint32_t)(\s+\w*(?:mask|Mask|MASK)\w*\s*=\s*)0x[fF]{8}[uU]?\b",
        rf"unsigned long long\g<1>{FULL}",
    ),
    # Ballots are 64 bits wide.
    (r"\b__popc(\s*\(\s*__ballot_sync)", r"__popcll\1"),
    (r"\b__ffs(\s*\(\s*__ballot_sync)", r"__ffsll\1"),
    (
        r"\b(?:unsigned int|unsigned|uint32_t|int)(\s+\w+\s*=\s*__ballot_sync)",
        r"unsigned long long\1",
    ),
    # Numbers of lanes and waves.
    (r"(\b\w*(?:WARP_?SIZE|warp_?size|WarpSize|kWarp)\w*\s*=?\s*)32\b", r"\g<1>64"),
    (r"(\(\s*[\w.]+\s*\+\s*)31(\s*\)\s*)/(\s*)32\b", r"\g<1>63\2/\g<3>64"),
    (r"(\(\s*[\w.]+\s*\+\s*)31(\s*\)\s*)>>(\s*)5\b", r"\g<1>63\2>>\g<3>6"),
    (r"((?:threadIdx|blockDim)\.[xyz]\s*)&(\s*)(?:31|0x1[fF])\b", r"\1&\g<2>63"),
    (r"((?:threadIdx|blockDim)\.[xyz]\s*)([%/])(\s*)32\b", r"\1\2\g<3>64"),
    (r"((?:threadIdx|blockDim)\.[xyz]\s*)>>(\s*)5\b", r"\1>>\g<2>6"),
    (r"(\b(?:tid|tx|thread|thread_id|lane|lane_id)\s*)&(\s*)(?:31|0x1[fF])\b", r"\1&\g<2>63"),
    (r"(\b(?:tid|tx|thread|thread_id)\s*)([%/])(\s*)32\b", r"\1\2\g<3>64"),
    (r"(\b(?:tid|tx|thread|thread_id)\s*)>>(\s*)5\b", r"\1>>\g<2>6"),
    (r"(\blane\w*\s*(?:==|<=)\s*)31\b", r"\g<1>63"),
    (r"(\blane\w*\s*<\s*)32\b", r"\g<1>64"),
    # Trees over a wave: from half of it down, or from one up to all of it.
    (r"(\bfor\s*\([^;=]*=\s*)16(\s*;[^;]*;[^;)]*(?:>>=\s*1|/=\s*2))", r"\g<1>32\2"),
    (r"(\bfor\s*\([^;]*;\s*\w+\s*<\s*)32(\s*;[^;)]*(?:<<=\s*1|\*=\s*2))", r"\g<1>64\2"),
)  # fmt: skip
_UNROLL = re.compile(r"(#\s*pragma\s+unroll\s*)\(\s*(\w+)\s*\)")
_BLOCK = re.compile(r"<<<[^;]*?,\s*(\d+)\s*[,>]")
_MOST_WITHOUT_BOUNDS = 512


def to_maca(source: str) -> str:
    """A whole candidate: ``cuda_library`` becomes ``maca``, and the kernels with it.

    Raises:
        NotRecognised: It is no such candidate, or holds what has no mechanical counterpart.
    """
    if not _CALL.search(source):
        raise NotRecognised("the CUDA is not given to cuda_library as one text")
    made = _CALL.sub(lambda m: f"maca(r{m[1]}{kernels_to_maca(m[2])}{m[1]}", source)
    return re.sub(r"(from kernelsmith\.kernels import\s+)cuda_library\b", r"\1maca", made, count=1)


def kernels_to_maca(text: str) -> str:
    """The kernels and the functions that launch them.

    Raises:
        NotRecognised: Something in them has no mechanical counterpart.
    """
    bare = _without_comments(text)
    for pattern, why in _REFUSED:
        if match := re.search(pattern, bare):
            line = bare.count("\n", 0, match.start()) + 1
            raise NotRecognised(f"line {line} of the CUDA: {match.group().strip()!r}: {why}")
    if _TALKS.search(bare):
        _check_blocks(bare)
        for pattern, replacement in _LANES:
            text = re.sub(pattern, replacement, text)
    text = _UNROLL.sub(r"\1\2", text)
    return _bounded(renamed(text))


def _check_blocks(bare: str) -> None:
    """Blocks that are no multiple of a wave would leave half of one without work."""
    for size in _BLOCK.findall(bare):
        if int(size) % WAVE:
            raise NotRecognised(f"blocks of {size} threads are no multiple of a wave of {WAVE}")


def _bounded(text: str) -> str:
    """Kernels of large blocks say so, or they are compiled again at run time."""
    largest = max((int(size) for size in _BLOCK.findall(text)), default=0)
    if largest <= _MOST_WITHOUT_BOUNDS:
        return text
    return re.sub(
        r"(__global__\s+void\s+)(?!__launch_bounds__)", rf"\1__launch_bounds__({largest}) ", text
    )


def _without_comments(text: str) -> str:
    return re.sub(
        r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.DOTALL
    )
