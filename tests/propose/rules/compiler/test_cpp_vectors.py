"""What keeps a loop of a compiler seed in vectors, and that it stays right."""

import platform
import subprocess

import numpy as np
import pytest
import torch
from cpp_cases import argument, found, loop, task, wrapper
from test_cpp_family import same

from kernelsmith.kernels import cpp
from kernelsmith.propose.rules.compiler import cpp_math as prelude
from kernelsmith.propose.rules.compiler.cpp_family import family_of

MASKED = f"""\
extern "C"  void  kernel(const float* in_ptr0, const int64_t* in_ptr1, float* out_ptr0)
{{
    {loop("x0", 6)}
    {{
        {loop("x1", 70)}
        {{
            {{
                float tmp_acc0 = 0;
                {loop("x2", 9)}
                {{
                    auto tmp0 = in_ptr0[static_cast<int64_t>(x1 + 70L*x2 + 630L*x0)];
                    auto tmp1 = in_ptr1[static_cast<int64_t>(x0)];
                    auto tmp2 = x2;
                    auto tmp3 = c10::convert<int64_t>(tmp2);
                    auto tmp4 = tmp3 < tmp1;
                    auto tmp5 = static_cast<float>(0.0);
                    auto tmp6 = tmp4 ? tmp0 : tmp5;
                    tmp_acc0 = tmp_acc0 + tmp6;
                }}
                out_ptr0[static_cast<int64_t>(x1 + 70L*x0)] = tmp_acc0;
            }}
        }}
        {loop("x1", 70)}
        {{
            auto tmp0 = out_ptr0[static_cast<int64_t>(x1 + 70L*x0)];
            auto tmp1 = in_ptr1[static_cast<int64_t>(x0)];
            auto tmp2 = c10::convert<float>(tmp1);
            auto tmp3 = tmp0 / tmp2;
            out_ptr0[static_cast<int64_t>(x1 + 70L*x0)] = tmp3;
        }}
    }}
}}
"""
WAVES = f"""\
extern "C"  void  kernel(const float* in_ptr0, float* out_ptr0)
{{
    {loop("x0", 670)}
    {{
        auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
        auto tmp1 = std::sin(tmp0);
        auto tmp2 = std::cos(tmp0);
        auto tmp3 = std::abs(tmp0);
        auto tmp4 = std::pow(tmp3, tmp1);
        auto tmp5 = tmp4 + tmp2;
        out_ptr0[static_cast<int64_t>(x0)] = tmp5;
    }}
}}
"""


@pytest.fixture(scope="module")
def masked():
    one = task(
        "(x * (torch.arange(9) < n[:, None])[:, :, None]).sum(1) / n[:, None]", given="x, n",
        inputs="torch.randn(6, 9, 70), torch.randint(1, 9, (6,))",
    )  # fmt: skip
    code = wrapper("arg0_1, arg1_1", """
buf0 = empty_strided_cpu((6, 70), (70, 1), torch.float32)
cpp_fused_sum_0(arg0_1, arg1_1, buf0)
return (buf0, )
""", cpp_fused_sum_0=MASKED)  # fmt: skip
    given = argument(0, "x", 6, 9, 70), argument(1, "n", 6, dtype="int64")
    return family_of(one, found(one, code, *given))


def test_columns_inside_a_row_are_gathered_side_by_side(masked):
    text = masked.source(masked.space.defaults)
    assert "for (int64_t from = 0; from < 70; from += 64)" in text
    for chosen in masked.space.starts:
        same(masked, chosen, torch.randn(6, 9, 70), torch.randint(1, 9, (6,)))


def test_no_load_waits_for_a_condition(masked):
    text = masked.source(masked.space.defaults)
    assert "?" in text
    assert not [line for line in text.splitlines() if "?" in line and "in_ptr0[" in line]


def test_sweeps_take_copies_of_what_they_only_read(masked):
    assert "[=](int64_t" in masked.source(masked.space.defaults)


def test_sines_and_powers_come_in_vectors():
    one = task(
        "x.abs() ** torch.sin(x) + torch.cos(x)", inputs="torch.randn(670)",
    )  # fmt: skip
    code = wrapper("arg0_1,", """
buf0 = empty_strided_cpu((670, ), (1, ), torch.float32)
cpp_fused_sin_0(arg0_1, buf0)
return (buf0, )
""", cpp_fused_sin_0=WAVES)  # fmt: skip
    family = family_of(one, found(one, code, argument(0, "x", 670)))
    text = family.source(family.space.defaults)
    assert '__attribute__((simd("notinbranch"))) float powf(float, float)' in text
    odd = torch.tensor([float("inf"), -float("inf"), float("nan"), 0.0, 1e30])
    for chosen in family.space.starts:
        same(family, chosen, torch.cat([torch.randn(665) * 100, odd]))


LARGEST = f"""\
extern "C"  void  kernel(const float* in_ptr0, int64_t* out_ptr0)
{{
    {{
        {{
            IndexValue<float> tmp_acc0 = {{0, -std::numeric_limits<float>::infinity()}};
            {loop("x0", 40000)}
            {{
                auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
                tmp_acc0 = argmax_combine(tmp_acc0, tmp0, x0);
            }}
            out_ptr0[static_cast<int64_t>(0L)] = tmp_acc0.index;
        }}
    }}
}}
"""
FEW_LONG_ROWS = f"""\
extern "C"  void  kernel(const float* in_ptr0, float* out_ptr0)
{{
    {{
        float tmp_acc0 = 0;
        {loop("x0", 8)}
        {{
            {loop("x1", 9000)}
            {{
                auto tmp0 = in_ptr0[static_cast<int64_t>(x1 + 9000L*x0)];
                tmp_acc0 = tmp_acc0 + tmp0;
            }}
        }}
        out_ptr0[static_cast<int64_t>(0L)] = tmp_acc0;
    }}
}}
"""
ROWS_OF_ROWS = f"""\
extern "C"  void  kernel(const float* in_ptr0, const float* in_ptr1, float* out_ptr0)
{{
    {loop("x0", 6)}
    {{
        {{
            float tmp_acc0 = 0;
            {loop("x1", 70)}
            {{
                {loop("x2", 9)}
                {{
                    auto tmp0 = in_ptr0[static_cast<int64_t>(x1 + 70L*x2 + 630L*x0)];
                    auto tmp1 = in_ptr1[static_cast<int64_t>(x1)];
                    auto tmp2 = float(tmp0 * tmp1);
                    tmp_acc0 = tmp_acc0 + tmp2;
                }}
            }}
            out_ptr0[static_cast<int64_t>(x0)] = tmp_acc0;
        }}
    }}
}}
"""


@pytest.mark.parametrize(
    ("forward", "inputs", "kernel", "out"),
    [
        ("x.argmax()", [(40000,)], LARGEST, "(), (), torch.int64"),
        ("x.sum()", [(8, 9000)], FEW_LONG_ROWS, "(), (), torch.float32"),
        ("(x * w).sum((1, 2))", [(6, 9, 70), (70,)], ROWS_OF_ROWS, "(6, ), (1, ), torch.float32"),
    ],
)
def test_what_is_gathered_over_several_loops_is_gathered_once(forward, inputs, kernel, out):
    given = ["x", "w"][: len(inputs)]
    drawn = ", ".join(f"torch.randn{shape}" for shape in inputs)
    one = task(forward, given=", ".join(given), inputs=drawn)
    names = [f"arg{number}_1" for number in range(len(inputs))]
    code = wrapper(f"{', '.join(names)},", f"""
buf0 = empty_strided_cpu({out})
cpp_fused_0({', '.join(names)}, buf0)
return (buf0, )
""", cpp_fused_0=kernel)  # fmt: skip
    shapes = enumerate(zip(given, inputs, strict=True))
    arguments = [argument(number, name, *shape) for number, (name, shape) in shapes]
    family = family_of(one, found(one, code, *arguments))
    for chosen in [*family.space.starts, {**family.space.defaults, "threads": "all"}]:
        same(family, chosen, *(torch.rand(shape) for shape in inputs))


SPOILED = {
    "none": lambda x: x,
    "equals": lambda x: torch.round(2 * x),
    "nothing": lambda x: torch.full_like(x, -torch.inf),
    "endless": lambda x: torch.where(torch.arange(len(x)) < 30_000, -torch.inf, x),
    "no number": lambda x: torch.where(torch.arange(len(x)) % 9_999 == 9_998, torch.nan, x),
    "last": lambda x: torch.where(torch.arange(len(x)) == len(x) - 1, 9.0, x),
}  # fmt: skip


@pytest.mark.parametrize("spoiled", SPOILED)
@pytest.mark.parametrize("low", [False, True])
def test_threads_share_a_search_and_the_first_of_equals_is_found(low, spoiled):
    name, kernel = "argmin" if low else "argmax", LARGEST
    if low:
        kernel = kernel.replace("-std::numeric_limits", "std::numeric_limits")
        kernel = kernel.replace("argmax", "argmin")
    one = task(f"x.{name}()", given="x", inputs="torch.randn(40000)")
    code = wrapper("arg0_1,", """
buf0 = empty_strided_cpu((), (), torch.int64)
cpp_fused_0(arg0_1, buf0)
return (buf0, )
""", cpp_fused_0=kernel)  # fmt: skip
    family = family_of(one, found(one, code, argument(0, "x", (40000,))))
    alone = family.space.defaults | {"threads": "1"}
    shared = family.space.defaults | {"threads": "all", "serial_below": "0"}
    assert "_parts[64]" not in family.source(alone)
    source = family.source(shared)
    assert "Place<float> acc0_parts[64];" in source
    assert "#pragma omp parallel for" in source
    for seed in range(3):
        x = SPOILED[spoiled](torch.randn(40000, generator=torch.Generator().manual_seed(seed)))
        for chosen in (alone, shared):
            same(family, chosen, -x if low else x)


PLACED = """
extern "C" int64_t first(const float* x, int64_t n, int64_t low) {
  Place<float> found{low ? highest<float>() : lowest<float>()};
  for (int64_t from = 0; from < n; from += 32) {
    const int many = int(std::min<int64_t>(32, n - from));
    if (low) found.lowest(x + from, many, from);
    else found.highest(x + from, many, from);
  }
  return found.index;
}
"""


@pytest.fixture(scope="module")
def places():
    return cpp(prelude.LIMITS + prelude.PLACE + PLACED)


@pytest.mark.parametrize("spoiled", [(), (77,), (3, 90)])
@pytest.mark.parametrize("low", [False, True])
def test_the_first_of_equals_is_found_block_by_block_and_nan_before_all(places, low, spoiled):
    rng = np.random.default_rng(1)
    for size in (1, 31, 32, 100, 1000):
        x = rng.integers(0, 9, size).astype(np.float32)
        x[[each for each in spoiled if each < size]] = np.nan
        want = (torch.argmin if low else torch.argmax)(torch.from_numpy(x)).item()
        assert places.first(x.ctypes.data, size, int(low)) == want


@pytest.mark.skipif(platform.machine() != "x86_64", reason="what g++ says of x86-64 is known")
@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "tanh", "erf"])
def test_g_plus_plus_puts_every_function_of_ours_into_vectors(name, tmp_path):
    source = tmp_path / "loop.cpp"
    head = "#include <cmath>\n#include <cstdint>\n#include <cstring>\n#include <limits>\n"
    source.write_text(f"""{head}{prelude.functions({name}, polynomial=True)}
void over(const float* __restrict a, float* __restrict b, long n) {{
#pragma omp simd
  for (long i = 0; i < n; ++i) b[i] = fn::{name}(a[i]);
}}
""")
    flags = ["-O3", "-mavx2", "-mfma", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math"]
    done = subprocess.run(
        ["g++", *flags, "-fopt-info-vec", "-c", str(source), "-o", str(tmp_path / "loop.o")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "loop vectorized" in done.stderr, done.stderr
