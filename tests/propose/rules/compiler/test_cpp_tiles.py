"""Elements that are read where numbers say, side by side, against torch."""

import pytest
import torch
from cpp_cases import argument, found, loop, task, wrapper
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cpp_family import model, same

from kernelsmith.propose.rules.compiler.cpp_family import family_of


def picked(rows: int, count: int, width: int, *, numbers="x1", read="tmp0") -> str:
    """Columns picked by numbers, times a weight of their own, as the compiler puts it."""
    return f"""\
extern "C"  void  kernel(const int64_t* in_ptr0,
                       const float* in_ptr1,
                       const float* in_ptr2,
                       float* out_ptr0)
{{
    {{
        {loop("x0", rows)}
        {{
            {loop("x1", count)}
            {{
                {{
                    auto tmp0 = in_ptr0[static_cast<int64_t>({numbers})];
                    auto tmp1 = {width}L;
                    auto tmp2 = c10::convert<int64_t>(tmp1);
                    auto tmp3 = int64_t(tmp0 + tmp2);
                    auto tmp4 = tmp0 < 0;
                    auto tmp5 = tmp4 ? tmp3 : tmp0;
                    auto tmp6 = tmp5;
                    auto tmp7 = c10::convert<int64_t>(tmp6);
                    TORCH_CHECK((0 <= tmp7) & (tmp7 < {width}L), "index out of bounds");
                    auto tmp8 = in_ptr1[static_cast<int64_t>({read} + {width}L*x0)];
                    auto tmp9 = in_ptr2[static_cast<int64_t>(2L*x1)];
                    auto tmp10 = in_ptr2[static_cast<int64_t>(1L + 2L*x1)];
                    auto tmp11 = float(tmp9 - tmp10);
                    auto tmp12 = tmp9 > tmp10;
                    auto tmp13 = tmp12 ? tmp11 : tmp10;
                    auto tmp14 = float(tmp8 * tmp13);
                    out_ptr0[static_cast<int64_t>(x1 + {count}L*x0)] = tmp14;
                }}
            }}
        }}
    }}
}}
"""


def family(rows: int, count: int, width: int, *, own: bool = False, read: str = "tmp5"):
    """``own``: every row has numbers of its own."""
    numbers, shape = (f"x1 + {count}L*x0", (rows, count)) if own else ("x1", (count,))
    chosen = "x.gather(1, i % x.shape[1])" if own else "x[:, i]"
    weight = "torch.where(w[:, 0] > w[:, 1], w[:, 0] - w[:, 1], w[:, 1])"
    one = task(f"{chosen} * {weight}", given="i, x, w")
    code = wrapper("arg0_1, arg1_1, arg2_1", f"""
buf0 = empty_strided_cpu(({rows}, {count}), ({count}, 1), torch.float32)
cpp_fused_picked_0(arg0_1, arg1_1, arg2_1, buf0)
return (buf0, )
""", cpp_fused_picked_0=picked(rows, count, width, numbers=numbers, read=read))  # fmt: skip
    arguments = (argument(0, "i", *shape, dtype="int64"), argument(1, "x", rows, width),
                 argument(2, "w", count, 2))  # fmt: skip
    return family_of(one, found(one, code, *arguments))


@pytest.mark.parametrize("own", [False, True])
@given(data=st.data())
@settings(max_examples=6, deadline=None)
def test_what_is_picked_is_what_torch_picks(own, data):
    rows = data.draw(st.integers(5, 9), "rows")
    count = data.draw(st.sampled_from([5, 63, 256, 257, 700]), "count")
    width = data.draw(st.integers(1, 90), "width")
    torch.manual_seed(data.draw(st.integers(0, 99), "seed"))
    one = family(rows, count, width, own=own)
    chosen = {**one.space.defaults, "serial_below": data.draw(st.sampled_from(["0", "65536"]))}
    shape = (rows, count) if own else (count,)
    x = torch.randn(rows, width)
    x[torch.rand_like(x) < 0.1] = data.draw(st.sampled_from([torch.nan, torch.inf, -0.0]))
    same(one, chosen, torch.randint(-width, width, shape), x, torch.randn(count, 2))


def test_where_elements_lie_is_worked_out_once_for_all_rows():
    one = family(6, 700, 50)
    text = one.source(one.space.defaults)
    assert "place0_kept[k] + 50 * x0" in text
    assert text.index("missing[k] =") < text.index("for (int64_t x0")


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("wrong", [-51, 50, 1 << 62, -(1 << 62)])
def test_a_number_out_of_range_is_an_index_error_and_reads_nothing(own, wrong):
    one = family(6, 700, 50, own=own)
    i = torch.randint(0, 50, (6, 700) if own else (700,))
    i[..., 699] = wrong
    with pytest.raises(IndexError):
        model(one.source(one.space.defaults))(i, torch.randn(6, 50), torch.randn(700, 2))


def test_an_index_that_is_not_the_checked_one_stays_behind_its_check():
    one = family(6, 700, 50, read="tmp0")  # what was looked up, before it was mended
    text = one.source(one.space.defaults)
    assert "missing" not in text
    assert "outside = 1" in text


SAMPLED = f"""\
extern "C"  void  kernel(const float* in_ptr0,
                       const float* in_ptr1,
                       float* out_ptr0)
{{
    {{
        {loop("x0", 5)}
        {{
            {loop("x1", 300)}
            {{
                {{
                    auto tmp0 = in_ptr0[static_cast<int64_t>(x1)];
                    auto tmp1 = std::floor(tmp0);
                    auto tmp2 = static_cast<float>(0.0);
                    auto tmp3 = tmp1 >= tmp2;
                    auto tmp4 = static_cast<float>(40.0);
                    auto tmp5 = tmp1 < tmp4;
                    auto tmp6 = tmp3 && tmp5;
                    auto tmp7 = c10::convert<int64_t>(tmp1);
                    auto tmp8 = static_cast<int64_t>(0);
                    auto tmp9 = tmp6 ? tmp7 : tmp8;
                    auto tmp10 = tmp9;
                    auto tmp11 = c10::convert<int64_t>(tmp10);
                    TORCH_CHECK((0 <= tmp11) & (tmp11 < 40L), "index out of bounds");
                    auto tmp12 = in_ptr1[static_cast<int64_t>(tmp9 + 40L*x0)];
                    auto tmp13 = float(tmp0 - tmp1);
                    auto tmp14 = tmp6 ? tmp13 : tmp2;
                    auto tmp15 = float(tmp12 * tmp14);
                    out_ptr0[static_cast<int64_t>(x1 + 300L*x0)] = tmp15;
                }}
            }}
        }}
    }}
}}
"""
INSIDE = "(p.floor() >= 0) & (p.floor() < 40)"
WEIGHTS = "p - p.floor()"


@pytest.mark.parametrize(
    ("name", "forward"),
    [("cpp_fused_grid_sampler_2d_0",
      f"torch.where({INSIDE}, x[:, p.floor().long().clamp(0, 39)] * ({WEIGHTS}), 0.0)"),
     ("cpp_fused_mul_where_0",
      f"x[:, torch.where({INSIDE}, p.floor().long(), 0)] * torch.where({INSIDE}, {WEIGHTS}, 0.0)")],
)  # fmt: skip
def test_a_neighbour_outside_of_a_sampled_image_counts_for_nothing(name, forward):
    one = task(forward, given="p, x")
    code = wrapper("arg0_1, arg1_1", f"""
buf0 = empty_strided_cpu((5, 300), (300, 1), torch.float32)
{name}(arg0_1, arg1_1, buf0)
return (buf0, )
""", **{name: SAMPLED})  # fmt: skip
    family_ = family_of(one, found(one, code, argument(0, "p", 300), argument(1, "x", 5, 40)))
    assert "missing[k]" in family_.source(family_.space.defaults)
    x = torch.randn(5, 40)
    x[0, 0], x[1, 0], x[2, 7] = torch.nan, torch.inf, -torch.inf
    places = 60 * torch.rand(300) - 10
    places[3], places[4], places[5] = torch.nan, torch.inf, 1e30
    same(family_, family_.space.defaults, places, x)
