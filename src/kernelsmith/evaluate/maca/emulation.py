"""A MACA source made ready for NVIDIA's compiler, or refused where that would not be the truth."""

import re
from pathlib import Path

from kernelsmith.evaluate.builder import BuildFailed

INCLUDE = Path(__file__).parent / "include"
SHARED_BYTES = 64 << 10
_TEXT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_WAVES = re.compile(r"\b__(?:shfl\w*|ballot|any|all)_sync\b|\b__syncwarp\b")
_REFUSED = (
    (r"\b__activemask\b", "which lanes of the other half are active cannot be known here"),
    (r"\b__(?:match|reduce)_\w+_sync\b", "is not known to exist in MACA"),
    (r"cooperative_groups", "cooperative groups are not emulated"),
    (r"\b__builtin_mxc_\w+", "is an instruction of MetaX GPUs"),
    (r"\basm\b|\b__asm__\b", "is PTX, which MetaX GPUs do not have"),
    (r"\bcuda[A-Z]\w+|\bcuda_runtime\.h", "is a name of CUDA's: MACA's begins with mc"),
    (r"\bmc(?:Module|Ctx|rtc)\w+|\bMCdevice\b", "builds or loads code; the judge does that"),
    (r"\bmc(?:blas|dnn|fft|sparse|rand|solver|cl)[A-Z_]\w*", "is a library's: not emulated"),
)


def emulated(source: str) -> str:
    """The text that nvcc gets: kernels begin their waves, and a wave has 64 lanes.

    Raises:
        BuildFailed: It uses what cannot be imitated; the message names the line.
    """
    bare = _TEXT.sub(_blank, source)
    headers = re.sub(r"//[^\n]*|/\*.*?\*/", _blank, source, flags=re.DOTALL)
    for pattern, why in _REFUSED:
        where = headers if "cuda" in pattern or "cooperative" in pattern else bare
        if match := re.search(pattern, where):
            line = where.count("\n", 0, match.start()) + 1
            raise BuildFailed(f"kernel.maca({line}): not emulated: {match.group()}: {why}")
    if _WAVES.search(bare):
        source = _begun(source, bare)
        bare = _TEXT.sub(_blank, source)
    return f'#include "mc_runtime.h"\n#line 1 "kernel.maca"\n{_sized(source, bare)}'


def _begun(source: str, bare: str) -> str:
    """Put the start of its waves into each kernel."""
    made, at = [], 0
    for match in re.finditer(r"\b__global__\b", bare):
        opening = _body(bare, match.end())
        if opening is None:
            continue  # a declaration
        made += [source[at : opening + 1], " kernelsmith_wave_begin();"]
        at = opening + 1
    return "".join([*made, source[at:]])


def _body(bare: str, at: int) -> int | None:
    """Where the body of a kernel begins; none where it is only declared."""
    depth = 0
    for position in range(at, len(bare)):
        character = bare[position]
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and character == ";":
            return None
        if depth == 0 and character == "{":
            return position
        if character == "\n" and bare[position - 1 : position] == "\\":
            line = bare.count("\n", 0, position) + 1
            raise BuildFailed(
                f"kernel.maca({line}): not emulated: a kernel that a macro writes; write it out"
            )
    return None


def _sized(source: str, bare: str) -> str:
    """``warpSize`` is 64; a field of that name keeps it."""
    made, at = [], 0
    for match in re.finditer(r"(?<![\w.>])warpSize\b", bare):
        made += [source[at : match.start()], "64"]
        at = match.end()
    return "".join([*made, source[at:]])


def _blank(match: re.Match[str]) -> str:
    return "".join("\n" if each == "\n" else " " for each in match.group())
