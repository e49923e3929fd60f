"""What a parameter acts on, so that feedback about a kernel finds the parameters that matter."""

from enum import StrEnum


class Lever(StrEnum):
    """The resource or decision behind a parameter."""

    WARPS = "warps"
    """Threads that share one program's work."""
    TILE = "tile"
    """Work per program: registers and shared memory grow with it."""
    STAGES = "stages"
    """Loads in flight: shared memory grows with them."""
    PROGRAMS = "programs"
    """How the work is cut into programs."""
    THREADS = "threads"
    """How a processor's threads are woken and share the work."""
    CACHE = "cache"
    """Hints about what stays in which cache."""
    EXACTNESS = "exactness"
    """Arithmetic that trades accuracy for speed."""
    PRODUCT = "product"
    """Who computes a matrix product, and how."""
    FORM = "form"
    """Which algebra, which compiler option: another program altogether."""
    OTHER = "other"


_BY_WORD: tuple[tuple[Lever, tuple[str, ...]], ...] = (
    (Lever.WARPS, ("warps", "warp")),
    (Lever.STAGES, ("stages", "stage", "buffers")),
    (Lever.PRODUCT, ("product", "products", "precision", "planes", "matmul", "gemm", "library")),
    (Lever.FORM, ("form", "forms", "option", "options", "layout", "fusion", "variant", "compile")),
    (Lever.THREADS, ("threads", "schedule", "serial", "serial_below")),
    (Lever.CACHE, ("evict", "eviction", "stores", "cache")),
    (Lever.EXACTNESS, ("math", "accumulate")),
    (Lever.PROGRAMS, ("programs", "split", "splits", "persistent", "grid")),
    (Lever.TILE, ("tile", "block", "rows", "unroll", "width", "whole", "chunk", "vector")),
)


def lever_named(name: str) -> Lever:
    """Guess the lever from a parameter's name, word by word: ``k2_warps``, ``block_m``."""
    words = {word.rstrip("0123456789") for word in name.lower().split("_")}
    if any(word.endswith("block") for word in words):  # the compiler's XBLOCK and R0_BLOCK, too
        return Lever.TILE
    return next((lever for lever, known in _BY_WORD if words & set(known)), Lever.OTHER)
