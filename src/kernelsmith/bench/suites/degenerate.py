"""KernelBench problems that accept kernels which do not do the work, at the commit that was read.

Found by running the references (commit 423217d) on two draws of their inputs: outputs that are
zero, constant or an input unchanged within a tolerance. METR's list is the complement of the set
that it kept in February 2025. Our judge notices most of these by itself and labels them; this list
is for tables that leave them out.
"""

_ZEROS = "zeros pass within 1e-4"
_CONSTANT = "one constant passes within 1e-4"
_INPUT = "the input unchanged passes: it never leaves the identity's region"
_LOOSE = "zeros, a constant or the answer to another input pass within 1e-2"
_METR = "METR left it out (outputs of no variance, algebraic constants, or carried state)"

_REASONS: tuple[tuple[str, dict[int, tuple[int, ...]]], ...] = (
    (_ZEROS, {1: (23, 37), 2: (9, 23, 38, 80, 83)}),
    (_CONSTANT, {2: (36, 42, 65)}),
    (_INPUT, {1: (19, 20, 31, 32)}),
    (_LOOSE, {1: (6, 39, 49, 53, 90, 95, 99, 100),
              2: (8, 10, 44, 45, 49, 56, 58, 64, 66, 67, 84, 89, 91, 93, 96, 99)}),
    (_METR, {1: (8, 12, 50, 77, 97), 2: (13, 27, 41, 77),
             3: (3, 5, 7, 11, 12, 18, 28, 32, 34, 35, 45, 46, 47)}),
)  # fmt: skip


def note_of(level: int, number: int) -> str:
    """Say what is known against a KernelBench problem; empty where nothing is.

    ``degenerate:`` at the tolerance that KernelBench itself has for float32, ``suspect:`` at looser
    ones, or in somebody else's judgement.
    """
    for reason, levels in _REASONS:
        if number in levels.get(level, ()):
            return f"{'suspect' if reason in (_LOOSE, _METR) else 'degenerate'}: {reason}"
    return ""
