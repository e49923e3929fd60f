"""``maca-lint``: what CUDA sources take for granted and MetaX GPUs do not have, with the fix.

A wave holds 64 lanes there. What assumes 32 gives wrong sums or reads half of the data, so it is a
failure to build, told with its line before any compiler runs; whatever only costs time is a note.
A line that ends with ``// maca-lint: ok`` is left alone.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

RULE = "maca-lint"
_OK = re.compile(r"//[^\n]*\bmaca-lint:\s*ok\b")
_LOOKS_NATIVE = re.compile(r"#\s*include\b|\bextern\s+\"C\"|__global__|__device__")
_TEXT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_THREAD = (
    r"(?:(?:threadIdx|blockDim)\.[xyz]|\b(?:tid|tx|thread|thread_id|lane|lane_id|laneid)\b)\s*\)?"
)
_BOUNDS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One thing found in a native text."""

    line: int
    """Counted from 0, the text's first line."""
    what: str
    why: str
    fatal: bool

    def __str__(self) -> str:
        return f"`{self.what}` {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    pattern: re.Pattern[str]
    why: str
    fatal: bool = True


def _pattern(text: str, why: str, *, fatal: bool = True) -> _Pattern:
    return _Pattern(pattern=re.compile(text), why=why, fatal=fatal)


_PATTERNS = (
    _pattern(
        r"__\w+_sync\s*\(\s*(?:0x[fF]{8}[uU]?[lL]{0,2}(?![0-9a-fA-F])|-1\b|~0[uU]?\b(?![lL])|"
        r"0x[0-9a-fA-F]{1,8}[uU]?\b)",
        "names lanes of the lower half only: a wave has 64; write 0xffffffffffffffffull",
    ),
    _pattern(
        r"\b\w*(?:mask|MASK)\w*\s*=?\s*\(?\s*0x[fF]{8}[uU]?(?![0-9a-fA-F])",
        "is a mask of 32 lanes, and a wave has 64: write 0xffffffffffffffffull, in 64 bits",
    ),
    _pattern(
        rf"{_THREAD}\s*&\s*(?:31\b|0x1[fF]\b)",
        "is a lane of 32, and a wave has 64: write & 63",
    ),
    _pattern(rf"{_THREAD}\s*%\s*32\b", "is a lane of 32, and a wave has 64: write % 64"),
    _pattern(rf"{_THREAD}\s*/\s*32\b", "counts waves of 32, and a wave has 64: write / 64"),
    _pattern(rf"{_THREAD}\s*>>\s*5\b", "counts waves of 32, and a wave has 64: write >> 6"),
    _pattern(
        r"\b\w*(?:warp_?size|wave_?size|WARP_?SIZE|WAVE_?SIZE|WarpSize|WaveSize)\w*\s*=?\s*\(?\s*32\b",
        "says that a wave has 32 lanes; it has 64: write 64, or use warpSize",
    ),
    _pattern(
        r"\bfor\s*\([^;=]*=\s*16\s*;[^;]*;[^;)]*(?:>>=\s*1|/=\s*2)\s*\)[^;]*__shfl\w*_sync",
        "adds up 32 lanes, and a wave has 64: begin with 32",
    ),
    _pattern(
        r"\bfor\s*\([^;]*;\s*\w+\s*<\s*32\s*;[^;)]*(?:<<=\s*1|\*=\s*2)\s*\)[^;]*__shfl\w*_sync",
        "scans 32 lanes, and a wave has 64: go on to 64",
    ),
    _pattern(r"\blane\w*\s*==\s*31\b", "is the last of 32 lanes, and a wave has 64: write 63"),
    _pattern(
        r"\b__popc\s*\(\s*__ballot_sync|\b__ffs\s*\(\s*__ballot_sync",
        "looks at 32 bits of 64: a ballot is an unsigned long long, so __popcll and __ffsll",
    ),
    _pattern(
        r"\b(?:unsigned|unsigned int|uint32_t|int)\s+\w+\s*=\s*__ballot_sync",
        "keeps 32 bits of 64: a ballot is an unsigned long long",
    ),
    _pattern(r"\basm\s*(?:volatile)?\s*\(|\b__asm__\b", "is PTX, which MetaX GPUs do not have"),
    _pattern(
        r"#\s*pragma\s+unroll\s*\(", "is not understood by mxcc: no brackets, `#pragma unroll 4`"
    ),
    _pattern(
        r"\b__cluster_dims__|\bcuTensorMap\w*|\bCUtensorMap\b|\bcp_async_bulk\w*|\bcuda::barrier\b|"
        r"\bcuda::ptx\b|\bwgmma\w*",
        "is of NVIDIA's Hopper: MetaX GPUs have neither TMA nor clusters",
    ),
    _pattern(
        r"\bnvcuda\s*::|#\s*include\s*<\s*mma\.h\s*>",
        "is of NVIDIA's tensor cores: MetaX has __builtin_mxc_mma_*",
    ),
)
_SIZES = re.compile(r"<<<\s*[^,;]+,\s*(?P<block>\w+)")
_CONSTANT = re.compile(
    r"(?:#\s*define\s+(\w+)\s+|\b(?:constexpr|const)\s+(?:int|unsigned|size_t)\s+(\w+)\s*=\s*)(\d+)"
)
_KERNEL = re.compile(r"__global__(?P<bounds>[^(;{]*(?:__launch_bounds__\s*\([^)]*\))?[^(;{]*)\(")


def lint(text: str) -> list[Remark]:
    """Everything in a native text that MetaX GPUs stumble over, in the order of lines."""
    bare = _TEXT.sub(_blank, text)
    lines = text.splitlines()
    found = []
    for each in _PATTERNS:
        for match in each.pattern.finditer(bare):
            line = bare.count("\n", 0, match.start())
            what = " ".join(match.group().split())
            found.append(Remark(line=line, what=what, why=each.why, fatal=each.fatal))
    found += _without_bounds(bare)
    allowed = {number for number, line in enumerate(lines) if _OK.search(line)}
    return sorted((each for each in found if each.line not in allowed), key=lambda each: each.line)


def lint_candidate(source: str) -> Iterator[Remark]:
    """The same for the native texts in a Python source; lines are counted from 1, of the file."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if _LOOKS_NATIVE.search(node.value):
            # A text over several lines begins on its first: escapes would move the count.
            for each in lint(node.value):
                line = min(node.lineno + each.line, node.end_lineno or node.lineno)
                yield Remark(line=line, what=each.what, why=each.why, fatal=each.fatal)


def _without_bounds(bare: str) -> Iterator[Remark]:
    """Blocks of more than 512 threads are compiled again at run time unless a kernel says so."""
    constants = {a or b: int(value) for a, b, value in _CONSTANT.findall(bare)}
    largest = 0
    for match in _SIZES.finditer(bare):
        block = match["block"]
        largest = max(largest, int(block) if block.isdigit() else constants.get(block, 0))
    if largest <= _BOUNDS:
        return
    for match in _KERNEL.finditer(bare):
        if "__launch_bounds__" not in match["bounds"]:
            yield Remark(
                line=bare.count("\n", 0, match.start()),
                what="__global__",
                why=f"is launched with {largest} threads and does not say so: with more than "
                f"{_BOUNDS} it is compiled again at run time; add __launch_bounds__({largest})",
                fatal=False,
            )


def _blank(match: re.Match[str]) -> str:
    return "".join("\n" if each == "\n" else " " for each in match.group())
