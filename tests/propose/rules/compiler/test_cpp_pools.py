"""Bins that lie side by side, gathered line by line, against torch."""

import pytest
import torch
from cpp_cases import argument, found, loop, task, wrapper
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cpp_family import same

from kernelsmith.propose.rules.compiler.cpp_family import family_of

FOLDS = {
    "sum": ("0", "tmp_acc0 + tmp1"),
    "amax": ("-std::numeric_limits<float>::infinity()", "max_propagate_nan(tmp_acc0, tmp1)"),
    "amin": ("std::numeric_limits<float>::infinity()", "min_propagate_nan(tmp_acc0, tmp1)"),
}


def family(fold: str, high: int, bins: int, lines: int, width: int, *, gap: int = 0):
    """Bins of ``lines`` by ``width``, ``bins`` in a line and ``high`` such lines below each other.

    Between two bins of a line lie ``gap`` elements that belong to none.
    """
    begin, step = FOLDS[fold]
    long = bins * (width + gap)
    kernel = f"""\
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{{
    {{
        {loop("x0", high)}
        {{
            {loop("x1", bins)}
            {{
                {{
                    float tmp_acc0 = {begin};
                    {loop("x2", lines)}
                    {{
                        {loop("x3", width)}
                        {{
                            auto tmp0 = in_ptr0[static_cast<int64_t>(x3 + {width + gap}L*x1 + {long}L*x2 + {long * lines}L*x0)];
                            auto tmp1 = float(tmp0 * tmp0);
                            tmp_acc0 = {step};
                        }}
                    }}
                    out_ptr0[static_cast<int64_t>(x1 + {bins}L*x0)] = tmp_acc0;
                }}
            }}
        }}
    }}
}}
"""  # noqa: E501
    one = task(
        f"(x * x).view({high}, {lines}, {bins}, -1)[..., :{width}].transpose(1, 2).flatten(2)"
        f".{fold}(-1)"
    )
    code = wrapper("arg0_1,", f"""
buf0 = empty_strided_cpu(({high}, {bins}), ({bins}, 1), torch.float32)
cpp_fused_pool_0(arg0_1, buf0)
return (buf0, )
""", cpp_fused_pool_0=kernel)  # fmt: skip
    return family_of(one, found(one, code, argument(0, "x", high * lines, long)))


@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_bins_side_by_side_are_gathered_as_torch_does(data):
    fold = data.draw(st.sampled_from([*FOLDS]), "fold")
    high, bins = data.draw(st.integers(1, 200), "high"), data.draw(st.integers(2, 20), "bins")
    threads = "1" if high < 128 else "all"  # of few lines, threads share the bins too
    lines, width = data.draw(st.integers(2, 20), "lines"), data.draw(st.integers(4, 31), "width")
    torch.manual_seed(data.draw(st.integers(0, 99), "seed"))
    one = family(fold, high, bins, lines, width)
    lanes = data.draw(st.sampled_from(["16", "64"]), "lanes")
    chosen = {**one.space.defaults, "lanes": lanes, "threads": threads}
    assert "acc0_line[at]" in one.source(chosen)
    x = torch.randn(high * lines, bins * width)
    if data.draw(st.booleans(), "limits"):
        x[torch.rand_like(x) < 0.01] = data.draw(st.sampled_from([torch.nan, torch.inf]))
    same(one, chosen, x)


@pytest.mark.parametrize(
    ("lines", "width", "gap"),
    [(5, 5, 1),  # bins apart
     (5, 40, 0),  # bins that fill vectors
     (1000, 5, 0)],  # chains too long for float32
)  # fmt: skip
def test_other_bins_are_gathered_one_by_one(lines, width, gap):
    one = family("sum", 3, 6, lines, width, gap=gap)
    assert "acc0_line" not in one.source(one.space.defaults)
    same(one, one.space.defaults, torch.randn(3 * lines, 6 * (width + gap)))


def test_sums_in_double_are_gathered_one_by_one():
    one = family("sum", 3, 6, 5, 5)
    chosen = {**one.space.defaults, "accumulate": "double"}
    assert "acc0_line" not in one.source(chosen)
    same(one, chosen, torch.randn(15, 30))
