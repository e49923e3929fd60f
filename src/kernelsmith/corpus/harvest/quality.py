"""Is a repository worth harvesting? Six plain signs, each a point, told from its files alone.

Stars and downloads would need a network and say more about fame than about code. What these signs
find are dumps, scraps and generated code: no licence, no release, no test, files that do not parse.
"""

import ast
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from kernelsmith.corpus.harvest.sources import File, Source

MOST = 6
_PARSED, _DOCUMENTED, _LONG = 0.95, 0.2, 0.02
_LONG_LINE = 200
_NO_VERSION = ("", "0", "0.0.0", "unknown")
_TEST = re.compile(r"(^|/)(tests?/|test_[^/]*\.py$|[^/]*_test\.py$)")


@dataclass(frozen=True, slots=True)
class Quality:
    """Points of six, and what kept it from the others."""

    points: int
    lacking: tuple[str, ...]


def quality(source: Source, files: Sequence[File]) -> Quality:
    """Judge one source by what lies in it; nothing of it is imported."""
    trees = [_parsed(file.content) for file in files]
    whole = [tree for tree in trees if tree is not None]
    lines = [line for file in files for line in file.content.split(b"\n")]
    signs = {
        "no licence": source.licence not in ("", "unknown"),
        "no release or commit": source.version not in _NO_VERSION,
        "no tests": any(_TEST.search(file.path) for file in files),
        "files that do not parse": len(whole) >= _PARSED * max(1, len(files)),
        "hardly any docstrings": _documented(whole) >= _DOCUMENTED,
        "lines that nobody wrote by hand": _long(lines) <= _LONG,
    }
    lacking = tuple(name for name, there in signs.items() if not there)
    return Quality(len(signs) - len(lacking), lacking)


def _parsed(content: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of their escapes
            return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _documented(trees: Sequence[ast.Module]) -> float:
    """Which share of public classes and functions says what it is for."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    public = [
        node for tree in trees for node in ast.walk(tree)
        if isinstance(node, kinds) and not node.name.startswith("_")
    ]  # fmt: skip
    return sum(ast.get_docstring(node) is not None for node in public) / max(1, len(public))


def _long(lines: Sequence[bytes]) -> float:
    return sum(len(line) > _LONG_LINE for line in lines) / max(1, len(lines))
