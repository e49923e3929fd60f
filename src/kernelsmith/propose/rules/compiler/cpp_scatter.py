"""``scatter_reduce_`` of whole rows by one list of numbers, as a kernel of our own.

Threads own rows, or columns where rows are few or short, and take what comes in order: no atomics,
the same result on any number of threads. torch sorts the numbers first, or, where rows do not lie
densely, goes element by element.
"""

from math import gcd, prod

from kernelsmith.propose.rules.compiler.call import Library
from kernelsmith.propose.rules.compiler.cpp_operands import Own, Tensor, dense, kernel_of
from kernelsmith.propose.rules.compiler.cpp_owners import OWNERS, WIDE, cut

_SIDE = 64
"""Columns that are taken side by side, at most."""
SCATTERS = ("torch.ops.aten.scatter_reduce_.two",)

HELPER = """\
#include <vector>
// As torch: NaN wins; one question at a time, or g++ writes jumps.
static inline float larger_of(float a, float b) {
  const float most = a > b ? a : b;
  return a != a ? a : most;
}
static inline float smaller_of(float a, float b) {
  const float least = a < b ? a : b;
  return a != a ? a : least;
}
"""

RUN = """\
  int64_t outside = 0;
{pragma}
  for (int64_t part = 0; part < {parts}; ++part) {{
    const int64_t low = {low}, high = {high}, from = {from_}, to = {to};
    std::vector<int64_t> terms({rows}, {begin});  // how many a row has by now
    for (int64_t i = 0; i < {n}; ++i) {{
      const int64_t row = index[i * {index_step}];
      if (row < 0 || row >= {rows}) {{
#pragma omp atomic write
        outside = 1;
        continue;
      }}
      if (row < low || row >= high) continue;
      float* held = self + row * {self_row};
      const float* term = source + i * {source_row};
      if (terms[row]++ == 0)
        sweep<{side}>(from, to, [=](int64_t j, int) {{ held[j] = {first}; }});
      else
        sweep<{side}>(from, to, [=](int64_t j, int) {{ held[j] = {fold}; }});
    }}{last}
  }}
  return outside;"""

_MEAN = """
    for (int64_t row = low; row < high; ++row) {{
      float* held = self + row * {self_row};
      const float many = float(std::max<int64_t>(1, terms[row]));
      sweep<{side}>(from, to, [=](int64_t j, int) {{ held[j] /= many; }});
    }}"""

_FOLDS = {
    "sum": ("0.0f + term[j]", "held[j] + term[j]"),
    "mean": ("0.0f + term[j]", "held[j] + term[j]"),
    "prod": ("term[j]", "held[j] * term[j]"),
    "amax": ("term[j]", "larger_of(held[j], term[j])"),
    "amin": ("term[j]", "smaller_of(held[j], term[j])"),
}
"""The first term of a row that leaves out what is there, and every other."""


def scatter(step: Library, given: list[Tensor | None]) -> Own | None:
    """Rows of the first dimension, one number for each; none where it is something else."""
    keywords = dict(step.keywords)
    names = ("self", "dim", "index", "src", "reduce")
    values = dict(zip(names, step.operands, strict=False)) | keywords
    tensors = dict(zip(names, given, strict=False))
    held, index, source = (tensors.get(each) for each in ("self", "index", "src"))
    fold, itself = values.get("reduce"), values.get("include_self", True)
    if held is None or index is None or source is None or step.result is not None:
        return None
    if (held.dtype, index.dtype, source.dtype) != ("float32", "int64", "float32"):
        return None
    if not isinstance(fold, str) or fold not in _FOLDS or not isinstance(itself, bool):
        return None
    if values.get("dim") not in (0, -len(held.shape)) or index.shape != source.shape:
        return None
    rows, *inside = held.shape
    n = source.shape[0] if source.shape else 0
    if not inside or source.shape[1:] != tuple(inside) or not rows * n * prod(inside):
        return None
    apart = dense(tuple(inside))
    if held.stride[1:] != apart or source.stride[1:] != apart or any(index.stride[1:]):
        return None
    if rows > 1 and held.stride[0] < prod(inside):
        return None
    first, other = _FOLDS[fold]
    inner = prod(inside)
    width = _SIDE if _by_rows(rows, inner) else cut(inner, line=True)
    sizes: dict[str, int | str] = {
        "rows": rows, "n": n, "inner": inner, "side": gcd(width, _SIDE), **_shares(rows, inner),
        "index_step": index.stride[0], "self_row": held.stride[0],
        "source_row": source.stride[0], "begin": int(itself), "first": first, "fold": other,
        "checks": "1",
    }  # fmt: skip
    sizes["last"] = _MEAN.format(**sizes) if fold == "mean" else ""
    kernel = kernel_of(
        "scatter", "float* __restrict self, const int64_t* __restrict index, "
        "const float* __restrict source", prod(source.shape), **sizes,
    )  # fmt: skip
    return kernel, [], (held.operand, index.operand, source.operand)


def _by_rows(rows: int, inner: int) -> bool:
    return rows >= 2 * OWNERS and inner >= WIDE


def _shares(rows: int, inner: int) -> dict[str, str | int]:
    """What a thread owns: rows from end to end, or columns."""
    if _by_rows(rows, inner):
        return {"parts": OWNERS, "low": f"{rows} * part / {OWNERS}", "from_": 0, "to": inner,
                "high": f"{rows} * (part + 1) / {OWNERS}"}  # fmt: skip
    width = cut(inner, line=True)
    return {"parts": -(-inner // width), "low": 0, "high": rows, "from_": f"part * {width}",
            "to": f"std::min<int64_t>({inner}, part * {width} + {width})"}  # fmt: skip
