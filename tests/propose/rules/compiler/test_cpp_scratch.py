"""Memory between kernels in one allocation: what lies where, and that results stay right."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from cpp_cases import LOOK_UP, argument, loop, task, wrapper
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cpp_family import model, same

from kernelsmith.domain.candidate import Candidate
from kernelsmith.evaluate.guards.static import inspect_source
from kernelsmith.propose.rules.compiler.call import (
    Allocate,
    Argument,
    Call,
    Launch,
    Library,
    Listed,
    Named,
    Viewed,
)
from kernelsmith.propose.rules.compiler.capture import Captured
from kernelsmith.propose.rules.compiler.cpp_entries import entered
from kernelsmith.propose.rules.compiler.cpp_family import family_of
from kernelsmith.propose.rules.compiler.cpp_scratch import LINE, MOST, PAGE, in_scratch, laid_out
from kernelsmith.propose.rules.forms import Form
from kernelsmith.propose.rules.graph import NotRecognised


def elementwise(n: int, value: str, inputs: int, *, in_place: bool = False) -> str:
    """A kernel over ``n`` elements: ``tmp0`` and so on are its inputs."""
    names = [f"in_ptr{k}" for k in range(inputs)]
    out = "out_ptr0"
    if in_place:
        names[0] = out = "in_out_ptr0"
    given = [f"float* {each}" if each == out else f"const float* {each}" for each in names]
    loads = "\n".join(
        f"                    auto tmp{k} = {each}[static_cast<int64_t>(x0)];"
        for k, each in enumerate(names)
    )
    return f"""\
extern "C"  void  kernel({", ".join([*given, *([] if in_place else [f"float* {out}"])])})
{{
    {{
        #pragma GCC ivdep
        {loop("x0", n)}
        {{
            {{
                {{
{loads}
                    auto tmp8 = float({value});
                    {out}[static_cast<int64_t>(x0)] = tmp8;
                }}
            }}
        }}
    }}
}}
"""


def allocated(name: str, rows: int, columns: int) -> str:
    return f"{name} = empty_strided_cpu(({rows}, {columns}), ({columns}, 1), torch.float32)"


def family(one, *captures: Captured):
    labelled = [(f"size {at}", each) for at, each in enumerate(captures)]
    return family_of(one, [(Form(name="written", source=one.source), labelled)])


CHAIN = task("x * 4 + 2 + 4 * (x * 2 + 1) ** 2 - (x * 2 + 1)")


def chain(rows: int, columns: int) -> Captured:
    """Four kernels; the third writes where the first did."""
    n = rows * columns
    code = wrapper("arg0_1,", f"""
{allocated("buf0", rows, columns)}
cpp_fused_begin_0(arg0_1, buf0)
del arg0_1
{allocated("buf1", rows, columns)}
cpp_fused_square_1(buf0, buf1)
buf2 = buf0; del buf0  # reuse
cpp_fused_add_2(buf2, buf1)
{allocated("buf3", rows, columns)}
cpp_fused_end_3(arg0_1, buf2, buf1, buf3)
return (buf3, )
""", cpp_fused_begin_0=elementwise(n, "tmp0 * 2.0 + 1.0", 1),
        cpp_fused_square_1=elementwise(n, "tmp0 * tmp0", 1),
        cpp_fused_add_2=elementwise(n, "tmp0 + tmp1", 2, in_place=True),
        cpp_fused_end_3=elementwise(n, "tmp1 + tmp2 * 3.0", 3))  # fmt: skip
    return Captured(code=code, arguments=(argument(0, "x", rows, columns),))


@pytest.fixture(scope="module")
def chains():
    return family(CHAIN, chain(5, 67), chain(40, 512))


def poison(count: int = 50) -> None:
    """Leave memory of many sizes behind that is full of NaN."""
    for size in (1 << 10, 1 << 12, 1 << 15, 1 << 18):
        held = [torch.full((size,), 255, dtype=torch.uint8) for _ in range(count)]
        del held


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 5 * PAGE) | st.sampled_from([PAGE, 3 * PAGE, LINE]), max_size=80))
def test_parts_are_apart_and_begin_on_lines(sizes):
    asked = {f"buf{n}": size for n, size in enumerate(sizes)}
    places, size = laid_out(asked)
    assert list(places) == list(asked)
    end = 0
    for name, start in places.items():
        assert start % LINE == 0
        assert start >= end
        end = start + asked[name]
    assert end <= size
    assert len(set(places.values())) == len(sizes)
    assert size <= sum(asked.values()) + len(sizes) * PAGE * 4


@given(st.lists(st.sampled_from([PAGE, 12 * 1024, 7 * PAGE]), min_size=2, max_size=32))
def test_neighbours_are_no_multiple_of_a_page_apart(sizes):
    places, _ = laid_out({f"buf{n}": size for n, size in enumerate(sizes)})
    assert len({each % PAGE for each in places.values()}) == len(sizes)


def test_what_would_be_too_much_for_one_allocation_stays_apart():
    places, size = laid_out({"large": MOST - PAGE, "small": 100, "other": 2 * PAGE})
    assert list(places) == ["small", "other"]
    assert size < 4 * PAGE


OUT = (Named(name="out"),)


def a_call(*steps, results=OUT) -> Call:
    """A call that takes ``x`` and allocates ``one``, ``two``, ``three`` and ``out``."""
    made = tuple(
        Allocate(name=name, shape=(4, 8), stride=(8, 1), dtype="float32")
        for name in ("one", "two", "three", "out")
    )
    return Call(
        arguments=(Argument(name="x", path="x", shape=(4, 8), stride=(8, 1)),), kernels=(),
        steps=(*made, *steps), results=results,
    )  # fmt: skip


def launch(*names: str) -> Launch:
    return Launch(kernel="k", operands=tuple(Named(name=each) for each in names))


def owned(call: Call) -> list[str]:
    """What has an allocation of its own."""
    return [each.name for each in call.steps if isinstance(each, Allocate)]


def test_results_and_what_is_given_stay_as_they_are():
    call = in_scratch(a_call(launch("x", "one", "two"), launch("one", "two", "three", "out")))
    assert owned(call) == ["scratch", "out"]
    first, second = (each for each in call.steps if isinstance(each, Launch))
    assert first.operands[0] == Named(name="x")
    assert second.operands[-1] == Named(name="out")
    assert [each.name for each in second.operands] == ["scratch"] * 3 + ["out"]


@pytest.mark.parametrize("result", [Named(name="two"), Viewed(name="two", shape=(4,), stride=(1,)),
                                    Listed(items=(Named(name="two"),))])  # fmt: skip
def test_any_part_of_a_result_is_kept(result):
    steps = launch("x", "one", "two", "three", "out")
    assert "two" in owned(in_scratch(a_call(steps, results=(result,))))


@pytest.mark.parametrize("step", [
    Library(target="torch.zero_", operands=(Named(name="two"),)),
    Library(target="torch.mm", operands=(Named(name="x"), Named(name="x")), out="two"),
    Library(target="torch.cat", operands=(Listed(items=(Named(name="two"),)),), result="y"),
    Library(target="torch.sum", operands=(Named(name="x"),), result="y",
            keywords=(("out", Viewed(name="two", shape=(4,), stride=(1,))),)),
])  # fmt: skip
def test_what_a_library_call_touches_is_not_in_it(step):
    call = in_scratch(a_call(step, launch("x", "one", "two", "three", "out")))
    assert owned(call) == ["scratch", "two", "out"]
    assert step in call.steps


def test_one_temporary_has_memory_of_its_own():
    call = a_call(launch("x", "one"), launch("one", "out"))
    assert in_scratch(call) == call


def test_a_place_inside_of_a_temporary_is_told_in_bytes():
    two = Viewed(name="two", shape=(4,), stride=(1,), offset=8)
    call = a_call(Launch(kernel="k", operands=(Named(name="one"), Named(name="two"), two)))
    operands = in_scratch(call).steps[-1].operands
    assert [each.name for each in operands] == ["scratch"] * 3
    assert operands[2].offset - operands[1].offset == 32


def test_a_tensor_is_passed_once_for_each_type_of_its_elements():
    places = [Named(name="x"), Viewed(name="x", shape=(), stride=(), offset=3), Named(name="y"),
              Named(name="x")]  # fmt: skip
    pointers = [("a", "float"), ("b", "float"), ("c", "float"), ("d", "int32_t")]
    entry, passed = entered(pointers, places)
    assert passed == (Named(name="x"), Named(name="y"), Named(name="x"))
    assert entry.given == ("a", "c", "d")
    assert entry.places == (("a", 0), ("a", 3), ("c", 0), ("d", 0))


def test_a_kernel_that_takes_each_tensor_as_it_is_needs_no_entry():
    given = (Named(name="x"), Named(name="y"))
    assert entered([("a", "float"), ("b", "float")], given) == (None, given)
    with pytest.raises(NotRecognised, match="passes a number"):
        entered([("a", "float")], [3])


def test_each_workload_has_its_own_and_both_are_right(chains):
    text = chains.source(chains.space.defaults)
    assert len(re.findall(r"scratch = torch\.empty\(\(\d+,\), dtype=torch\.uint8\)", text)) == 2
    assert text.count("torch.empty") == 4
    assert not re.search(r"data_ptr|element_size", text)
    assert "lib.add_2_2(scratch)" in text
    for chosen in chains.space.starts:
        same(chains, chosen, torch.randn(5, 67))
        same(chains, chosen, torch.randn(40, 512))


def test_the_text_is_the_same_every_time_and_lets_the_guards_see_all(chains):
    again = family(CHAIN, chain(5, 67), chain(40, 512))
    text = chains.source(chains.space.defaults)
    assert again.source(again.space.defaults) == text
    assert inspect_source(Candidate(backend="cpu", source=text), CHAIN) is None


def test_nothing_of_an_earlier_call_or_of_old_memory_is_left(chains):
    built = model(chains.source(chains.space.defaults))
    reference = model(CHAIN.source, "Model")
    for _ in range(5):
        for shape in ((5, 67), (40, 512)):
            x = torch.randn(*shape)
            poison()
            torch.testing.assert_close(built(x), reference(x), rtol=2e-6, atol=2e-5)


def test_two_threads_at_once_do_not_meet(chains):
    built = model(chains.source(chains.space.defaults))
    reference = model(CHAIN.source, "Model")

    def work(seed: int) -> bool:
        x = torch.randn(40, 512, generator=torch.Generator().manual_seed(seed))
        want = reference(x)
        return all(torch.allclose(built(x), want, rtol=2e-6, atol=2e-5) for _ in range(300))

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(work, range(2)))


HALVES = task("torch.cat([x * 2 + 1, x * x]).exp().sin(), x * 3", inputs="torch.randn(5, 67)")


def test_kernels_write_and_read_parts_of_one_temporary():
    first, last = "reinterpret_tensor(buf2, (5, 67), (67, 1), {})".format, "cpp_fused_exp_2"
    code = wrapper("arg0_1,", f"""
{allocated("buf2", 10, 67)}
buf0 = {first(0)}  # alias
cpp_fused_one_0(arg0_1, buf0)
buf1 = {first(335)}  # alias
cpp_fused_two_1(arg0_1, buf1)
{allocated("buf3", 10, 67)}
{last}(buf2, buf3)
{allocated("buf4", 10, 67)}
cpp_fused_sin_3(buf3, buf4)
buf5 = empty_strided_cpu((5, 67), (67, 1), torch.float32)
cpp_fused_three_4(arg0_1, buf5)
return (buf4, buf5, )
""", cpp_fused_one_0=elementwise(335, "tmp0 * 2.0 + 1.0", 1),
        cpp_fused_two_1=elementwise(335, "tmp0 * tmp0", 1),
        cpp_fused_exp_2=elementwise(670, "std::exp(tmp0)", 1),
        cpp_fused_sin_3=elementwise(670, "std::sin(tmp0)", 1),
        cpp_fused_three_4=elementwise(335, "tmp0 * 3.0", 1))  # fmt: skip
    made = family(HALVES, Captured(
        code=code, arguments=(argument(0, "x", 5, 67),), tree="({0}, {1})", outputs=2))  # fmt: skip
    text = made.source(made.space.defaults)
    assert "two_1_body(in_ptr0, reinterpret_cast<float*>(scratch + 1340))" in text
    assert text.count("torch.empty") == 3
    same(made, made.space.defaults, torch.rand(5, 67))


def test_half_of_a_result_is_reached_without_arithmetic_in_python():
    one = task("torch.cat([x * 2 + 1, x * x])")
    code = wrapper("arg0_1,", f"""
{allocated("buf2", 10, 67)}
buf0 = reinterpret_tensor(buf2, (5, 67), (67, 1), 0)  # alias
cpp_fused_one_0(arg0_1, buf0)
buf1 = reinterpret_tensor(buf2, (5, 67), (67, 1), 335)  # alias
cpp_fused_two_1(arg0_1, buf1)
return (buf2, )
""", cpp_fused_one_0=elementwise(335, "tmp0 * 2.0 + 1.0", 1),
        cpp_fused_two_1=elementwise(335, "tmp0 * tmp0", 1))  # fmt: skip
    made = family(one, Captured(code=code, arguments=(argument(0, "x", 5, 67),)))
    text = made.source(made.space.defaults)
    assert "two_1_body(in_ptr0, out_ptr0 + 335)" in text
    assert "lib.two_1(x, buf2)" in text
    same(made, made.space.defaults, torch.randn(5, 67))


@pytest.mark.parametrize(("width", "own"), [(64, True), (7, False)])
def test_a_product_between_kernels_takes_part_only_if_it_is_our_own(width, own):
    one = task("torch.relu((x * 2 + 1) @ w) * 3 + 1", given="x, w",
               inputs=f"torch.randn(5, 67), torch.randn(67, {width})")  # fmt: skip
    n = 5 * width
    code = wrapper("arg0_1, arg1_1", f"""
{allocated("buf0", 5, 67)}
cpp_fused_begin_0(arg0_1, buf0)
{allocated("buf1", 5, width)}
extern_kernels.mm(buf0, arg1_1, out=buf1)
{allocated("buf2", 5, width)}
cpp_fused_relu_1(buf1, buf2)
{allocated("buf3", 5, width)}
cpp_fused_triple_2(buf2, buf3)
{allocated("buf4", 5, width)}
cpp_fused_end_3(buf3, buf4)
return (buf4, )
""", cpp_fused_begin_0=elementwise(335, "tmp0 * 2.0 + 1.0", 1),
        cpp_fused_relu_1=elementwise(n, "tmp0 * (tmp0>0)", 1),
        cpp_fused_triple_2=elementwise(n, "tmp0 * 3.0", 1),
        cpp_fused_end_3=elementwise(n, "tmp0 + 1.0", 1))  # fmt: skip
    made = family(one, Captured(
        code=code, arguments=(argument(0, "x", 5, 67), argument(1, "w", 67, width))))  # fmt: skip
    text = made.source(made.space.defaults)
    if own:
        assert "lib.product_1(scratch, w)" in text
        assert text.count("torch.empty") == 2
    else:
        assert "torch.mm(buf0, w, out=buf1)" in text
        assert text.count("torch.empty") == 4
    assert "lib.triple_" in text
    same(made, made.space.defaults, torch.randn(5, 67), torch.randn(67, width))


def test_a_number_out_of_range_is_still_an_index_error():
    one = task("torch.nn.functional.embedding(ids, table) * 2.5 * 3 + 1", given="ids, table",
               inputs="torch.randint(0, 11, (6,)), torch.randn(11, 20)")  # fmt: skip
    code = wrapper("arg0_1, arg1_1", f"""
{allocated("buf0", 6, 20)}
cpp_fused_embedding_mul_0(arg0_1, arg1_1, buf0)
{allocated("buf1", 6, 20)}
cpp_fused_triple_1(buf0, buf1)
{allocated("buf2", 6, 20)}
cpp_fused_end_2(buf1, buf2)
return (buf2, )
""", cpp_fused_embedding_mul_0=LOOK_UP, cpp_fused_triple_1=elementwise(120, "tmp0 * 3.0", 1),
        cpp_fused_end_2=elementwise(120, "tmp0 + 1.0", 1))  # fmt: skip
    ids = argument(0, "ids", 6, dtype="int64")
    made = family(one, Captured(code=code, arguments=(ids, argument(1, "table", 11, 20))))
    text = made.source(made.space.defaults)
    assert "if lib.embedding_mul_0(ids, table, scratch):" in text
    same(made, made.space.defaults, torch.randint(0, 11, (6,)), torch.randn(11, 20))
    with pytest.raises(IndexError, match="out of range"):
        model(text)(torch.full((6,), 11), torch.randn(11, 20))


def test_a_tensor_that_is_called_scratch_keeps_its_memory():
    one = task(CHAIN.source.split("return ")[1].split("\n")[0].replace("x", "scratch"),
               given="scratch")  # fmt: skip
    captured = chain(5, 67)
    given = argument(0, "scratch", 5, 67)
    made = family(one, Captured(code=captured.code, arguments=(given,)))
    assert "def run(scratch_2):" in made.source(made.space.defaults)
    same(made, made.space.defaults, torch.randn(5, 67))
