"""CuTe DSL, a source form of ``cuda``: kernels in Python that NVIDIA's package compiles.

It compiles in the candidate's own process, so whose kernels ran is that process's word, as with
Triton, and neither registers nor precision are known from a build of ours.
"""

import ast
from collections.abc import Iterable
from importlib import metadata

from kernelsmith.domain.candidate import Candidate
from kernelsmith.errors import UsageError

PACKAGE = "nvidia-cutlass-dsl"


def is_cute(source: str) -> bool:
    """Whether a candidate imports ``cutlass.cute``; a source that does not parse does not."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names.add(f"{node.value.id}.{node.attr}")
    return any(f"{name}.".startswith("cutlass.cute.") for name in names)


def cute_version() -> str | None:
    """Of the installed package."""
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return None


def missing_cute(source: str) -> str | None:
    """What a candidate in CuTe DSL lacks here, in a line; none where nothing is."""
    if not is_cute(source) or cute_version() is not None:
        return None
    return (
        f"the candidate is written in CuTe DSL (it imports cutlass.cute), and {PACKAGE} is not "
        f"installed; try: pip install {PACKAGE}"
    )


def refuse_missing(candidates: Iterable[Candidate]) -> None:
    """Say what is not installed before anything is opened.

    In a search the same words are the candidate's verdict: the next one may do without.

    Raises:
        UsageError: A candidate is in CuTe DSL, and the package is not here.
    """
    for each in candidates:
        if each.backend == "cuda" and (missing := missing_cute(each.source)):
            raise UsageError(missing)
