"""Forms of a task file in which copies look the same: without names, as shingles, as numbers."""

import ast
import hashlib
import keyword
import re
import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

_RECIPES = {"get_inputs", "get_init_inputs", "get_workloads"}
_HELPERS = {"_split_pattern", "_spread", "_einops", "rearrange", "repeat", "reduce", "Rearrange",
            "Reduce", "_ActivationTable", "_Registry", "_built"}  # fmt: skip
PERMUTATIONS, BANDS = 128, 32
_SHINGLE = 5

Signature = np.ndarray[tuple[int], np.dtype[np.uint64]]


def body_of(text: str) -> ast.Module:
    """What a task computes: without recipes, docstrings and the stand-ins that we wrote."""
    tree = ast.parse(text)
    tree.body = [
        node for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name not in _RECIPES | _HELPERS
    ]  # fmt: skip
    for node in ast.walk(tree):
        inner = getattr(node, "body", None)
        if isinstance(inner, list) and inner and isinstance(inner[0], ast.Expr):
            said = inner[0].value
            if isinstance(said, ast.Constant) and isinstance(said.value, str):
                inner[0] = ast.Pass()
    return tree


def normal(tree: ast.Module) -> str:
    """A hash that does not depend on what classes, functions and variables are called."""
    numbers: dict[str, str] = {}

    def number(name: str) -> str:
        return numbers.setdefault(name, f"n{len(numbers)}")

    words = []
    for token in re.findall(r"[A-Za-z_]\w*|[^\sA-Za-z_]+", ast.unparse(tree)):
        plain = token.isidentifier() and not keyword.iskeyword(token)
        words.append(number(token) if plain and token not in _KNOWN else token)
    return hashlib.sha256(" ".join(words).encode("utf-8", "replace")).hexdigest()[:24]


_KNOWN = {"self", "super", "torch", "nn", "F", "math", "range", "len", "int", "float", "isinstance",
          "Linear", "Conv1d", "Conv2d", "Conv3d", "LayerNorm", "BatchNorm2d", "Dropout", "ReLU",
          "GELU", "SiLU", "Sequential", "ModuleList", "Module", "Parameter", "Embedding", "softmax",
          "relu", "gelu", "silu", "sigmoid", "tanh", "view", "reshape", "permute", "transpose",
          "matmul", "einsum", "cat", "stack", "sum", "mean", "max", "min", "exp", "log", "sqrt",
          "pow", "rsqrt", "forward", "__init__", "GroupNorm", "MaxPool2d", "AvgPool2d"}  # fmt: skip


def tokens(tree: ast.Module) -> list[str]:
    """Words of the code, class names left out: a copy is often only called otherwise."""
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    found = re.findall(r"[A-Za-z_]\w*|\d+\.?\d*|[^\sA-Za-z_\d]", ast.unparse(tree))
    return ["CLASS" if token in names else token for token in found]


Shingles = np.ndarray[tuple[int], np.dtype[np.uint64]]


@lru_cache(maxsize=1 << 17)
def _number(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "replace"))


def shingles(words: Sequence[str]) -> Shingles:
    """Hashes of every few words in a row, each once."""
    numbers = np.fromiter(map(_number, words), dtype=np.uint64, count=len(words))
    last = max(1, len(words) - _SHINGLE + 1)
    mixed = np.zeros(last, dtype=np.uint64)
    for offset in range(min(_SHINGLE, len(words))):
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + numbers[offset : offset + last]
    found: Shingles = np.unique(mixed ^ (mixed >> np.uint64(29)))
    return found


_GENERATOR = np.random.default_rng(20)
_ODD = _GENERATOR.integers(1, 1 << 62, PERMUTATIONS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def signature(parts: Shingles) -> Signature:
    """MinHash: the share of equal places of two estimates the share of equal shingles."""
    mixed = parts[:, None] * _ODD[None, :]
    found: Signature = (mixed >> np.uint64(20)).min(axis=0)
    return found


def likeness(one: Signature, other: Signature) -> float:
    """The estimate."""
    return float((one == other).mean())


def bands(of: Signature, count: int = BANDS) -> list[bytes]:
    """Keys under which likely copies meet: 32 from a likeness of 0.6 on, 16 from 0.8 on."""
    rows = PERMUTATIONS // count
    return [bytes([i]) + of[i * rows : (i + 1) * rows].tobytes() for i in range(count)]
