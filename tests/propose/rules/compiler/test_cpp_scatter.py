"""Memory that is written where numbers say, on several threads, against torch."""

import re

import pytest
import torch
from cpp_cases import argument, found, loop, task, wrapper
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cpp_family import model, same

from kernelsmith.propose.rules.compiler.cpp_family import family_of

LIMITS = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 3e38])


def written(place: str, how: str, numbers: str = "x0", *, rows=50, many=7, columns=300) -> str:
    """Rows of an input written to rows (or columns) of memory, as the compiler puts it."""
    return f"""\
extern "C"  void  kernel(const int64_t* in_ptr0,
                       const float* in_ptr1,
                       float* out_ptr0)
{{
    {{
        {loop("x0", many * columns)}
        {{
            auto tmp0 = static_cast<float>(0.0);
            out_ptr0[static_cast<int64_t>(x0)] = tmp0;
        }}
    }}
    {{
        {loop("x0", rows)}
        {{
            {loop("x1", columns)}
            {{
                {{
                    auto tmp0 = in_ptr0[static_cast<int64_t>({numbers})];
                    auto tmp9 = in_ptr1[static_cast<int64_t>(x1 + {columns}L*x0)];
                    auto tmp6 = tmp0;
                    auto tmp7 = c10::convert<int64_t>(tmp6);
                    TORCH_CHECK((0 <= tmp7) & (tmp7 < {many}L), "index out of bounds");
                    out_ptr0[static_cast<int64_t>({place})] {how} tmp9;
                }}
            }}
        }}
    }}
}}
"""


def family(forward: str, kernel: str, index: tuple[int, ...], shape: tuple[int, int]):
    one = task(forward, given="i, x")
    code = wrapper("arg0_1, arg1_1", f"""
buf0 = empty_strided_cpu({shape}, ({shape[1]}, 1), torch.float32)
cpp_fused_added_0(arg0_1, arg1_1, buf0)
return (buf0, )
""", cpp_fused_added_0=kernel)  # fmt: skip
    arguments = argument(0, "i", *index, dtype="int64"), argument(1, "x", 50, 300)
    return family_of(one, found(one, code, *arguments))


@pytest.fixture(scope="module")
def rows():
    kernel = written("x1 + 300L*tmp0", "+=")
    return family("torch.zeros(7, 300).index_add(0, i, x)", kernel, (50,), (7, 300))


def shared(one):
    """The choice in which threads share everything."""
    return {**one.space.defaults, "serial_below": "0"}


def test_threads_own_columns_and_add_in_order(rows):
    text = rows.source(shared(rows))
    assert "const int64_t from = part * 160;" in text
    assert "atomic" not in text.replace("#pragma omp atomic write\n        outside = 1;", "")
    same(rows, shared(rows), torch.randint(0, 7, (50,)), torch.randn(50, 300))


@pytest.fixture(scope="module")
def many():
    kernel = written("x1 + 300L*tmp0", "+=", many=41)
    return family("torch.zeros(41, 300).index_add(0, i, x)", kernel, (50,), (41, 300))


def test_threads_own_ranges_of_many_rows(many):
    text = many.source(shared(many))
    assert "const int64_t from = part * 11;" in text
    assert re.search(r"if \(from <= (t\d+) && \1 < to\)", text)
    for i in (torch.randint(0, 41, (50,)), torch.full((50,), 40), torch.arange(50) % 41):
        same(many, shared(many), i, torch.randn(50, 300))


def test_a_number_out_of_range_belongs_to_nobody(many):
    i = torch.randint(0, 41, (50,))
    i[23] = 41
    with pytest.raises(IndexError):
        model(many.source(shared(many)))(i, torch.randn(50, 300))


def test_rows_that_overlap_are_added_by_one_thread():
    kernel = written("x1 + 299L*tmp0", "+=", many=41)
    one = family("torch.zeros(41, 300).index_add(0, i, x)", kernel, (50,), (41, 300))
    assert "part" not in one.source(shared(one))


def test_sums_are_the_same_on_any_number_of_threads(rows):
    alone = {**rows.space.defaults, "threads": "1"}
    i, x = torch.randint(0, 7, (50,)), torch.randn(50, 300) * 1e3
    assert torch.equal(model(rows.source(shared(rows)))(i, x), model(rows.source(alone))(i, x))


@pytest.mark.parametrize("wrong", [-8, 7, 1 << 40])
def test_a_number_out_of_range_is_an_index_error(rows, wrong):
    i = torch.randint(0, 7, (50,))
    i[23] = wrong
    with pytest.raises(IndexError):
        model(rows.source(shared(rows)))(i, torch.randn(50, 300))


def test_numbers_of_their_own_for_every_element_are_added_column_by_column():
    kernel = written("x1 + 300L*tmp0", "+=", "x1 + 300L*x0")
    one = family("torch.zeros(7, 300).scatter_add(0, i, x)", kernel, (50, 300), (7, 300))
    assert "part * 160" in one.source(shared(one))
    same(one, shared(one), torch.randint(0, 7, (50, 300)), torch.randn(50, 300))


def test_elements_of_a_row_that_meet_belong_to_one_thread():
    kernel = written("tmp0 + 7L*x0", "+=", "x1 + 300L*x0")
    kernel = kernel.replace(f"{7 * 300}L", f"{50 * 7}L")
    one = family("torch.zeros(50, 7).scatter_add(1, i, x)", kernel, (50, 300), (50, 7))
    text = one.source(shared(one))
    assert "x0 = from; x0 < to" in text  # a number below 7 stays within its row of 7
    same(one, shared(one), torch.randint(0, 7, (50, 300)), torch.randn(50, 300))


def test_rows_that_may_meet_anywhere_are_added_by_one_thread():
    kernel = written("x1 + 299L*tmp0", "+=")  # rows overlap by one element
    one = family("torch.zeros(7, 300).index_add(0, i, x)", kernel, (50,), (7, 300))
    assert "part" not in one.source(shared(one))


def test_the_last_of_several_that_write_an_element_wins():
    kernel = written("tmp0 + 7L*x1", "=")
    one = family("torch.zeros(300, 7).index_copy(1, i, x.t())", kernel, (50,), (300, 7))
    assert "part * 150" in one.source(shared(one))
    same(one, shared(one), torch.arange(50) % 7, torch.randn(50, 300))


def reduced(fold: str, itself: bool, rows: int, many: int, inside: tuple[int, ...], *, gap: int):
    """A candidate for ``scatter_reduce`` as the compiler leaves it to torch."""
    shape, wide = (rows, *inside), max(1, torch.Size(inside).numel())
    keyword = f"reduce='{fold}', include_self={itself}"
    number = f"i.view(-1, {', '.join('1' for _ in inside)}).expand(x.shape)"
    one = task(f"y.scatter_reduce_(0, {number}, x, {keyword})", given="i, x, y")
    steps = tuple(torch.empty(shape).stride())
    expanded = (1, *(0 for _ in inside))
    code = wrapper("arg0_1, arg1_1, arg2_1", f"""
buf0 = empty_strided_cpu((1, ), (1, ), torch.float32)
cpp_fused_nothing_0(buf0)
buf1 = reinterpret_tensor(arg0_1, {shape}, {expanded}, 0)
aten.scatter_reduce_.two(arg2_1, 0, buf1, arg1_1, {keyword})
return (arg2_1, )
""", cpp_fused_nothing_0=f"""\
extern "C"  void  kernel(float* out_ptr0)
{{
    {{
        {loop("x0", 1)}
        {{
            auto tmp0 = static_cast<float>(0.0);
            out_ptr0[static_cast<int64_t>(x0)] = tmp0;
        }}
    }}
}}
""")  # fmt: skip
    held = argument(2, "y", many, *inside)
    held = type(held)(name=held.name, path="y", shape=held.shape,
                      stride=(wide + gap, *steps[1:]), dtype="float32")  # fmt: skip
    arguments = argument(0, "i", rows, dtype="int64"), argument(1, "x", *shape), held
    return family_of(one, found(one, code, *arguments))


def memory(many: int, inside: tuple[int, ...], gap: int) -> torch.Tensor:
    wide = torch.Size(inside).numel()
    return torch.randn(many, wide + gap)[:, :wide].unflatten(1, inside)


@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_a_reduction_by_numbers_is_torchs(data):
    fold = data.draw(st.sampled_from(["sum", "mean", "prod", "amax", "amin"]), "fold")
    itself = data.draw(st.booleans(), "include_self")
    rows, many = data.draw(st.integers(1, 40), "rows"), data.draw(st.integers(1, 20), "many")
    inside = data.draw(st.sampled_from([(1,), (3,), (33,), (100,), (5, 13), (300,)]), "inside")
    gap = data.draw(st.sampled_from([0, 5]), "gap")
    torch.manual_seed(data.draw(st.integers(0, 99), "seed"))
    one = reduced(fold, itself, rows, many, inside, gap=gap)
    text = one.source(shared(one) if "serial_below" in one.space.defaults else one.space.defaults)
    assert "lib.scatter" in text
    x, i = torch.randn(rows, *inside), torch.randint(0, many, (rows,))
    if data.draw(st.booleans(), "limits"):
        x = torch.where(torch.rand_like(x) < 0.2, LIMITS[torch.randint(0, 6, x.shape)], x)
    mine = memory(many, inside, gap)
    theirs = mine.clone()
    with torch.no_grad():
        got = model(text)(i, x, mine)
        want = model(one.task.source, "Model")(i, x, theirs)
    torch.testing.assert_close(got, want, rtol=2e-6, atol=2e-6, equal_nan=True)


@pytest.mark.parametrize("wrong", [-1, 5])
def test_a_reduction_by_a_number_out_of_range_is_an_index_error(wrong):
    one = reduced("amax", False, 6, 5, (40,), gap=0)
    i = torch.tensor([0, 1, 2, wrong, 4, 0])
    with pytest.raises(IndexError):
        model(one.source(one.space.defaults))(i, torch.randn(6, 40), memory(5, (40,), 0))


def test_other_layouts_of_a_reduction_go_through_the_reference():
    one = reduced("amax", False, 6, 5, (40,), gap=0)
    same(one, one.space.defaults, torch.tensor([0, 1, 2, 3, 4, 0]), torch.randn(40, 6).t(),
         torch.randn(5, 40))  # fmt: skip
