"""What a kernel's source says about its structure, without running or compiling it.

Regular expressions over the kernels alone (``@triton.jit`` functions, C++ and CUDA in string
literals): 0.1 to 0.2 ms for 4 KB. Names, comments, layout and the Python around the kernel do not
count. A wrong guess puts a candidate into another cell and does no more.
"""

import functools
import re
from enum import StrEnum

LIMIT = 65536
"""Characters that are looked at; the text is a stranger's, and no pattern may take long on it."""

_PYTHON_NOISE = re.compile(
    r"""\"{3}.*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\#[^\n]*""",
    re.S,
)
_C_NOISE = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"', re.S)
_LITERAL = re.compile(r'("""|\'\'\')(.*?)\1', re.S)
_JIT = re.compile(r"^([ \t]*)@(?:triton\.)?jit\b", re.M)
_IS_C = re.compile(r"__global__|#include|\)\s*\{")
_DOES = (
    *"+-*/%&|^<>=!~@?[(",
    " for ",
    " for(",
    " if ",
    " if(",
    " while ",
    " while(",
    "elif ",
    "else",
)

# No pattern begins with \b: the literal prefix is what makes a search fast.
_T_PERSISTENT = re.compile(r"num_programs\(|range\(\s*\w{0,20}pid\w{0,20}\s*,|NUM_SMS?\b")
_T_SPLIT = re.compile(r"\.atomic_\w+\(")
_T_TILED = re.compile(r"\.dot(?:_scaled)?\(")
_T_REDUCTION = re.compile(
    r"\.(?:sum|max|min|argmax|argmin|reduce|xor_sum|cumsum|cumprod|associative_scan|softmax|sort)\("
)
_C_FOR = re.compile(r"for\s*\([^;{}]{0,200};[^;{}]{0,200};([^;{}()]{0,200})\)")
_C_STRIDE = re.compile(r"\s*(\w+)\s*\+=\s*(?!1\b)\w")
_C_PERSISTENT = re.compile(r"\+=[^;{}]{0,80}gridDim\b|grid\.sync\b|omp_get_thread_num\b")
_C_SPLIT = re.compile(r"atomic(?:Add|Max|Min|CAS)\b|omp atomic\b")
_C_TILED = re.compile(r"wmma\b|mma_sync\b|mma\.|ldmatrix\b|_tile_dp")
_C_FOLD = re.compile(r"reduction\s*\(|__shfl|_reduce_")
_C_SUM = re.compile(r"\+=[^;]{0,200}")
_C_EXTREME = re.compile(r"=\s*(?:std::)?f?(?:max|min)f?\(\s*(\w{1,40})")


class Family(StrEnum):
    """How a kernel divides its work, as its text suggests."""

    LIBRARY = "library"
    """No kernel of its own, or most of the time in somebody else's."""
    ELEMENTWISE = "elementwise"
    REDUCTION = "reduction"
    """Each row (or the like) in one go."""
    STREAMED = "streamed"
    """A reduction that walks over its row in pieces."""
    TILED = "tiled"
    """Blocks of a product, or nested blocking."""
    SPLIT = "split"
    """Several workers add into one result."""
    PERSISTENT = "persistent"
    """As many workers as the device holds, each looping over its share."""


@functools.lru_cache(maxsize=2)  # complexity and family ask in a row
def kernels_of(source: str) -> tuple[str, str]:
    """Return the text of all Triton kernels and of all C++ or CUDA, without comments."""
    source = source[:LIMIT]
    triton = "\n".join(_PYTHON_NOISE.sub("", each) for each in _jit_functions(source))
    literals = [found[2] for found in _LITERAL.finditer(source)]
    natives = [each for each in literals if ";" in each and _IS_C.search(each)]
    if not natives and not triton and "__global__" in source:
        natives = [source]
    return triton, "\n".join(_C_NOISE.sub("", each) for each in natives)


def complexity(source: str) -> int:
    """Count what the kernels do: operators, calls, subscripts, branches and loops.

    A source without a recognisable kernel counts as a whole.
    """
    triton, native = kernels_of(source)
    text = triton + native or _PYTHON_NOISE.sub("", source[:LIMIT])
    return sum(map(text.count, _DOES))


def family(source: str) -> Family | None:
    """Name the schedule's family; none where there is neither a kernel nor a library call."""
    triton, native = kernels_of(source)
    found = [_triton_family(triton)] if triton else []
    found += [_native_family(native)] if native else []
    if found:
        return max(found, key=list(Family).index)
    return Family.LIBRARY if re.search(r"\btorch\b", source) else None


def _jit_functions(source: str) -> list[str]:
    functions: list[str] = []
    for found in _JIT.finditer(source):
        began = source.find("def ", found.start())
        if began < 0 or sum(map(len, functions)) > LIMIT:
            break
        # The next line that is not deeper than the decorator ends it; ")" closes a long signature.
        after = re.compile(rf"\n[ \t]{{0,{len(found[1])}}}(?=[^\s)#])").search(source, began)
        end = after.start() if after is not None else len(source)
        functions.append(source[found.start() : end])
    return functions


def _triton_family(text: str) -> Family:
    if _T_PERSISTENT.search(text):
        return Family.PERSISTENT
    if _T_SPLIT.search(text):
        return Family.SPLIT
    if _T_TILED.search(text):
        return Family.TILED
    if _T_REDUCTION.search(text):
        return Family.STREAMED if re.search(r"\bfor\b", text) else Family.REDUCTION
    return Family.ELEMENTWISE


def _native_family(text: str) -> Family:
    advances = [_C_STRIDE.match(advance) for advance in _C_FOR.findall(text)]
    steps = {found[1] for found in advances if found is not None}
    body = _C_FOR.sub("for ", text)
    if _C_PERSISTENT.search(text):
        return Family.PERSISTENT
    if _C_SPLIT.search(body):
        return Family.SPLIT
    if len(steps) > 1 or _C_TILED.search(body):
        return Family.TILED
    if _folds(body):
        return Family.STREAMED if steps else Family.REDUCTION
    return Family.ELEMENTWISE


def _folds(body: str) -> bool:
    """Whether a sum is built up or a maximum kept: ``s += x``, ``m = max(m, x)``."""
    if _C_FOLD.search(body):
        return True
    for found in _C_SUM.finditer(body):
        before = body[max(found.start() - 8, 0) : found.start()].rstrip()[-1:]
        if before.isalnum() or before == "_" or (before == "]" and "*" in found[0]):
            return True
    return any(
        body[max(found.start() - 48, 0) : found.start()].rstrip().endswith(found[1])
        for found in _C_EXTREME.finditer(body)
    )
