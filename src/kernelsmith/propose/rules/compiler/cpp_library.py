"""Library calls that small kernels of our own can replace: products, scans, the best of a row.

The compiler leaves these to torch, whose kernels are made for all sizes. Here every size is known,
so that loops have fixed lengths and the accumulators of a product stay in registers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from kernelsmith.propose.rules.compiler.call import (
    Allocate,
    Call,
    Kernel,
    Launch,
    Library,
    Named,
    Operand,
    Part,
    Step,
    Viewed,
)
from kernelsmith.propose.rules.compiler.cpp_convolution import (
    ALONG,
    CONVOLUTION,
    DEPTHWISE,
    RUN,
    convolution,
    depthwise,
)
from kernelsmith.propose.rules.compiler.cpp_operands import (
    Own,
    Tensor,
    dense,
    inputs_text,
    kernel_of,
)
from kernelsmith.propose.rules.compiler.cpp_reader import roots
from kernelsmith.propose.rules.compiler.cpp_scatter import HELPER as SCATTER
from kernelsmith.propose.rules.compiler.cpp_scatter import RUN as SCATTERED
from kernelsmith.propose.rules.compiler.cpp_scatter import SCATTERS, scatter
from kernelsmith.propose.rules.compiler.cpp_transposed import RUN as PHASES
from kernelsmith.propose.rules.compiler.cpp_transposed import TRANSPOSED, transposed
from kernelsmith.propose.rules.compiler.cpp_writer import SCHEDULES

_LONGEST = 512
"""Terms of a product up to which one chain of additions in float32 is exact enough."""
_WIDEST = 4096
"""How long a row may be that is searched for its best."""
_BEST = 8
"""How many of a row the selection below finds; each takes one pass."""

VECTOR = """\
typedef float vec16 __attribute__((vector_size(64), aligned(4)));
static inline vec16 load16(const float* p) {
  vec16 v;
  std::memcpy(&v, p, 64);
  return v;
}
"""

PRODUCT = """\
// R rows of a product: N columns of the result stay in registers, K terms in order.
template <int R, int N, int K>
static inline __attribute__((always_inline)) void rows_of_product(
    const float* __restrict a, int64_t a_row, const float* __restrict b, int64_t b_row,
    const float* __restrict bias, float* __restrict c, int64_t c_row) {
  constexpr int V = N / 16;
  vec16 sum[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[r][v] = bias ? load16(bias + 16 * v) : vec16{};
  for (int k = 0; k < K; ++k) {
    vec16 row[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) row[v] = load16(b + k * b_row + 16 * v);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[r][v] += a[r * a_row + k] * row[v];
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) std::memcpy(c + r * c_row + 16 * v, &sum[r][v], 64);
}
template <int R, int N, int K>
static inline __attribute__((always_inline)) void columns_of_product(
    int64_t m, const float* __restrict a, int64_t a_row, const float* __restrict b, int64_t b_row,
    const float* __restrict bias, float* __restrict c, int64_t c_row) {
  int64_t i = 0;
  for (; i + R <= m; i += R)
    rows_of_product<R, N, K>(a + i * a_row, a_row, b, b_row, bias, c + i * c_row, c_row);
  for (; i < m; ++i)
    rows_of_product<1, N, K>(a + i * a_row, a_row, b, b_row, bias, c + i * c_row, c_row);
}
"""

SCAN = """\
// Running sums: 16 at a time in four steps, with what came before kept in double.
static inline void running_sums(const float* __restrict in, float* __restrict out, int64_t n) {
  const vec16 none = {};
  double before = 0;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    vec16 v = load16(in + i);
    v += __builtin_shufflevector(
        none, v, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
    v += __builtin_shufflevector(
        none, v, 0, 1, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29);
    v += __builtin_shufflevector(
        none, v, 0, 1, 2, 3, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27);
    v += __builtin_shufflevector(
        none, v, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    const vec16 sums = v + float(before);
    before += double(v[15]);
    std::memcpy(out + i, &sums, 64);
  }
  for (; i < n; ++i) {
    before += double(in[i]);
    out[i] = float(before);
  }
}
"""

BEST = """\
#include <utility>
// Larger for larger values, NaN above all; among equals larger for the earlier one.
static inline int64_t rank(float value, int32_t at) {
  int32_t bits;
  std::memcpy(&bits, &value, 4);
  bits = bits < 0 ? bits ^ 0x7fffffff : bits;
  bits = value != value ? 0x7fffffff : bits;
  return int64_t((uint64_t(uint32_t(bits)) << 32) | uint32_t(~at));
}
// As torch does it, for rows with equals among the best: which one is taken is its order's doing.
template <int N, int K>
static void best_of_equals(const float* in, float* values, int64_t* places) {
  typedef std::pair<float, int64_t> Entry;
  Entry queue[N];
  for (int64_t i = 0; i < N; ++i) queue[i] = Entry(in[i], i);
  const auto before = [](const Entry& x, const Entry& y) {
    return (x.first != x.first && y.first == y.first) || x.first > y.first;
  };
  if (K * 64 <= N) {
    std::partial_sort(queue, queue + K, queue + N, before);
  } else {
    std::nth_element(queue, queue + K - 1, queue + N, before);
    std::sort(queue, queue + K - 1, before);
  }
  for (int j = 0; j < K; ++j) values[j] = queue[j].first, places[j] = queue[j].second;
}
template <int N, int K>
static inline void best(const float* __restrict in, float* __restrict values, int64_t* places) {
  int64_t last = INT64_MAX;
  bool equals = false;
  for (int j = 0; j < K; ++j) {
    int64_t top = INT64_MIN;
#pragma omp simd reduction(max : top)
    for (int32_t i = 0; i < N; ++i) {
      const int64_t one = rank(in[i], i);
      top = one < last && one > top ? one : top;
    }
    last = top;
    places[j] = int32_t(~uint32_t(top));
    values[j] = in[places[j]];
    equals |= j > 0 && !(values[j] < values[j - 1]);
  }
  int32_t many = 0;
#pragma omp simd reduction(+ : many)
  for (int32_t i = 0; i < N; ++i) many += !(in[i] < values[K - 1]);
  if (equals || many > K) best_of_equals<N, K>(in, values, places);
}
"""

PLANES = """\
// 16 products side by side, each of its own matrices: R rows by C columns stay in registers.
template <int R, int C, int K>
static inline __attribute__((always_inline)) void tile_of_planes(
    const float* __restrict a, int64_t a_row, int64_t a_term, const float* __restrict b,
    int64_t b_term, int64_t b_column, float* __restrict out, int64_t out_batch, int64_t out_row) {
  vec16 sum[R][C] = {};
  for (int k = 0; k < K; ++k) {
    vec16 left[R], right[C];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) left[r] = load16(a + r * a_row + k * a_term);
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) right[c] = load16(b + k * b_term + c * b_column);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) sum[r][c] += left[r] * right[c];
  }
  for (int lane = 0; lane < 16; ++lane)
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) out[lane * out_batch + r * out_row + c] = sum[r][c][lane];
}
"""

HELPERS = {
    "product": (VECTOR, PRODUCT), "scan": (VECTOR, SCAN), "best": (BEST,),
    "depthwise": (DEPTHWISE,), "planes": (VECTOR, PLANES), "convolution": (VECTOR, CONVOLUTION),
    "scatter": (SCATTER,), "transposed": (VECTOR, TRANSPOSED),
}  # fmt: skip

BODIES = {
    "product": """\
{pragma}
  for (int64_t tile = 0; tile < {batch} * ({n} / {columns}); ++tile) {{
    const int64_t batch = tile / ({n} / {columns}), from = tile % ({n} / {columns}) * {columns};
    const float* left = a + batch * {a_batch};
    const float* right = b + batch * {b_batch} + from * {b_column};
{packed}
    columns_of_product<{rows}, {columns}, {k}>(
        {m}, left, {a_row}, right, {b_row_used}, {bias}, out + batch * {m} * {n} + from, {n});
  }}""",
    "planes": """\
{pragma}
  for (int64_t tile = 0; tile < {blocks} * ({m} / {rows}) * ({n} / {columns}); ++tile) {{
    const int64_t column = tile % ({n} / {columns}) * {columns};
    const int64_t row = tile / ({n} / {columns}) % ({m} / {rows}) * {rows};
    // The last 16 may overlap those before them; both come to the same values.
    const int64_t batch = std::min<int64_t>(
        tile / ({n} / {columns}) / ({m} / {rows}) * 16, {batch} - 16);
    tile_of_planes<{rows}, {columns}, {k}>(
        a + batch + row * {a_row}, {a_row}, {a_term}, b + batch + column * {b_column}, {b_term},
        {b_column}, out + (batch * {m} + row) * {n} + column, {m} * {n}, {n});
  }}""",
    "convolution": RUN,
    "scatter": SCATTERED,
    "transposed": PHASES,
    "scan": """\
{pragma}
  for (int64_t row = 0; row < {rows}; ++row)
    running_sums(x + row * {n}, out + row * {n}, {n});""",
    "best": """\
{pragma}
  for (int64_t row = 0; row < {rows}; ++row)
    best<{n}, {k}>(x + row * {n}, values + row * {k}, places + row * {k});""",
    "depthwise": ALONG,
}

_PACKED = """\
    alignas(64) float packed[{k} * {columns}];  // columns side by side, as the lanes take them
    for (int64_t j = 0; j < {columns}; ++j)
      for (int64_t i = 0; i < {k}; ++i)
        packed[i * {columns} + j] = right[i * {b_row} + j * {b_column}];
    right = packed;"""


def replaced(call: Call) -> Call:
    """The same call with kernels of our own for the library calls that are known here."""
    known = _tensors(call)
    steps: list[Step] = []
    kernels = list(call.kernels)
    parts: dict[str, dict[int, str]] = {}
    for step in call.steps:
        if isinstance(step, Part) and step.of in parts:
            continue
        made = _own(step, known, call) if isinstance(step, Library) else None
        if made is None:
            steps.append(step)
            continue
        kernel, before, operands = made
        name = f"{kernel.name}_{len(kernels)}"
        kernels.append(replace(kernel, name=name))
        steps += [*before, Launch(kernel=name, operands=operands)]
        known |= _allocated(call, before)
        if isinstance(step, Library) and kernel.fixed and dict(kernel.fixed)["kind"] == "best":
            parts[str(step.result)] = {}
    return replace(call, steps=tuple(steps), kernels=tuple(kernels))


def own_text(name: str, kernel: Kernel, parameters: Mapping[str, str]) -> str:
    """The C++ of a kernel that ``replaced`` put in."""
    sizes = dict(kernel.fixed)
    work = int(sizes["work"])
    threaded = parameters["threads"] != "1" and work >= int(parameters["serial_below"])
    pragma = f"#pragma omp parallel for schedule({SCHEDULES[parameters['schedule']]})"
    body = BODIES[sizes["kind"]].format(
        **sizes,
        lanes=parameters["lanes"],
        pragma=pragma if threaded else "  // too little to share",
    )
    kind = "int64_t" if checked(kernel) else "void"
    return f'extern "C" {kind} {name}({kernel.text}) {{\n{body}\n}}'


def checked(kernel: Kernel) -> bool:
    """Whether it reports numbers that are out of range."""
    return "checks" in dict(kernel.fixed)


def helpers(kernels: list[Kernel]) -> str:
    """What such kernels call, each once."""
    found: list[str] = []
    for kernel in kernels:
        for text in HELPERS[dict(kernel.fixed)["kind"]]:
            if text not in found:
                found.append(text)
    return "".join(found)


def _tensors(call: Call) -> dict[str, Tensor]:
    """Layouts by name, where they are told."""
    found: dict[str, Tensor] = {}
    for each in call.arguments:
        if each.shape is not None and each.stride is not None:
            found[each.name] = Tensor(
                operand=Named(name=each.name), shape=each.shape, stride=each.stride,
                dtype=each.dtype,
            )  # fmt: skip
    return found | _allocated(call, call.steps, found)


def _allocated(
    call: Call, steps: Sequence[Step], known: Mapping[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """What these steps allocate, and all names under which that or what is known goes."""
    found: dict[str, Tensor] = dict(known or {})
    for step in steps:
        if isinstance(step, Allocate):
            found[step.name] = Tensor(
                operand=Named(name=step.name), shape=step.shape, stride=step.stride,
                dtype=step.dtype,
            )  # fmt: skip
    for name, of in roots(call).items():
        if of.name in found:
            base = found[of.name]
            found[name] = (
                replace(base, operand=of, shape=of.shape, stride=of.stride)
                if isinstance(of, Viewed) else replace(base, operand=of)
            )  # fmt: skip
    return found


def _tensor(operand: Operand, known: Mapping[str, Tensor]) -> Tensor | None:
    if isinstance(operand, Named):
        return known.get(operand.name)
    if isinstance(operand, Viewed) and operand.name in known:
        base = known[operand.name]
        return replace(base, operand=operand, shape=operand.shape, stride=operand.stride)
    return None


def _own(step: Library, known: Mapping[str, Tensor], call: Call) -> Own | None:
    given = [_tensor(each, known) for each in step.operands]
    if step.target in SCATTERS:
        return scatter(step, given)
    if any(each is not None and each.dtype != "float32" for each in given):
        return None
    if step.target in ("torch.mm", "torch.bmm", "torch.addmm"):
        out = known.get(step.out or "")  # our products write row by row
        dense = out is not None and out.is_dense
        return (_product(step, given) or _planes(step, given)) if dense else None
    if step.target == "torch.ops.aten.cumsum.default":
        return _scan(step, given)
    if step.target == "torch.ops.aten.topk.default":
        return _best(step, given, call)
    if step.target == "torch.convolution" and dict(step.keywords).get("bias") is None:
        return depthwise(step, given) or convolution(step, given) or transposed(step, given)
    return None


def _product(step: Library, given: list[Tensor | None]) -> Own | None:
    keywords = dict(step.keywords)
    if step.out is None or any(keywords.get(key, 1) != 1 for key in ("alpha", "beta")):
        return None
    *before, a, b = given
    if a is None or b is None or any(each is None for each in before):
        return None
    batch, m, k = a.shape if len(a.shape) == 3 else (1, *a.shape)
    n = b.shape[-1]
    columns = next((each for each in (32, 16) if n % each == 0), None)
    bias = before[0] if before else None
    if columns is None or k > _LONGEST or a.stride[-1] != 1 or 1 not in b.stride[-2:]:
        return None
    if bias is not None and (bias.shape != (n,) or bias.stride != (1,)):
        return None
    b_row, b_column = b.stride[-2:]
    sizes: dict[str, int | str] = {
        "batch": batch, "m": m, "n": n, "k": k, "columns": columns,
        "rows": min(m, 8 if columns == 32 else 12),
        "a_batch": a.stride[0] if batch > 1 else 0, "a_row": a.stride[-2],
        "b_batch": b.stride[0] if batch > 1 else 0, "b_column": b_column,
        "b_row_used": b_row if b_column == 1 else columns,
        "bias": "bias + from" if bias is not None else "nullptr",
        "packed": "" if b_column == 1 else _PACKED.format(
            k=k, columns=columns, b_row=b_row, b_column=b_column),
    }  # fmt: skip
    pointers = ["a", "b", *(["bias"] if bias is not None else [])]
    text = inputs_text(pointers)
    kernel = kernel_of("product", f"{text}, float* __restrict out", 2 * batch * m * n * k, **sizes)
    operands = [a.operand, b.operand, *([bias.operand] if bias is not None else [])]
    return kernel, [], (*operands, Named(name=step.out))


def _planes(step: Library, given: list[Tensor | None]) -> Own | None:
    """Many small products whose matrices lie interleaved: lanes go across the products."""
    a, b = (given[0], given[1]) if len(given) == 2 else (None, None)
    if a is None or b is None or step.out is None or len(a.shape) != 3:
        return None
    (batch, m, k), n = a.shape, b.shape[-1]
    if a.stride[0] != 1 or b.stride[0] != 1 or batch < 16 or k > _LONGEST:
        return None
    rows, columns = (next(each for each in (4, 2, 1) if size % each == 0) for size in (m, n))
    kernel = kernel_of(
        "planes", f"{inputs_text(['a', 'b'])}, float* __restrict out", 2 * batch * m * n * k,
        batch=batch, blocks=(batch + 15) // 16, m=m, n=n, k=k, rows=rows, columns=columns,
        a_row=a.stride[1], a_term=a.stride[2], b_term=b.stride[1], b_column=b.stride[2],
    )  # fmt: skip
    return kernel, [], (a.operand, b.operand, Named(name=step.out))


def _scan(step: Library, given: list[Tensor | None]) -> Own | None:
    x = given[0]
    keywords = dict(step.keywords)
    dim = keywords.get("dim", step.operands[1] if len(step.operands) > 1 else None)
    if x is None or step.result is None or not x.is_dense or not x.shape:
        return None
    if dim not in (-1, len(x.shape) - 1) or keywords.get("dtype") is not None:
        return None
    n = x.shape[-1]
    kernel = kernel_of(
        "scan", "const float* __restrict x, float* __restrict out", prod(x.shape),
        rows=prod(x.shape) // max(1, n), n=n,
    )  # fmt: skip
    out = Allocate(name=step.result, shape=x.shape, stride=dense(x.shape), dtype="float32")
    return kernel, [out], (x.operand, Named(name=step.result))


def _best(step: Library, given: list[Tensor | None], call: Call) -> Own | None:
    x = given[0]
    if x is None or step.result is None or not x.is_dense or not x.shape:
        return None
    count, dim, largest, *_ = (*step.operands[1:], -1, True, True)[:3]
    fits = isinstance(count, int) and 0 < count <= _BEST and largest is True
    if not fits or dim not in (-1, len(x.shape) - 1) or step.keywords:
        return None
    n = x.shape[-1]
    if not int(str(count)) <= n <= _WIDEST:
        return None
    parts = {
        each.index: each.name
        for each in call.steps if isinstance(each, Part) and each.of == step.result
    }  # fmt: skip
    shape = (*x.shape[:-1], int(str(count)))
    made: list[Step] = []
    operands: list[Operand] = [x.operand]
    for index, dtype in enumerate(("float32", "int64")):
        name = parts.get(index, f"{step.result}_{index}")
        made.append(Allocate(name=name, shape=shape, stride=dense(shape), dtype=dtype))
        operands.append(Named(name=name))
    kernel = kernel_of(
        "best", "const float* __restrict x, float* __restrict values, int64_t* __restrict places",
        prod(x.shape), rows=prod(x.shape) // n, n=n, k=str(count),
    )  # fmt: skip
    return kernel, made, tuple(operands)
