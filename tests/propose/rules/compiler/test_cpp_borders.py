"""Where masked loops are cut, what is written then, and that it computes what torch does."""

import pytest
import torch
from cpp_cases import LOOK_UP, argument, found, loop, task, wrapper
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cpp_family import model

from kernelsmith.propose.rules.compiler.cpp_borders import borders, breaks
from kernelsmith.propose.rules.compiler.cpp_family import family_of
from kernelsmith.propose.rules.compiler.cpp_tree import Let, Loop, Masked, Store


def asking(condition: str, *lets: Let, variable: str = "x1", extent: int = 28) -> Loop:
    """A loop that writes what a mask lets through."""
    value = Masked(name="t9", condition=condition, body=(), value=f"in_ptr0[{variable}]",
                   other="0.0f", kind="float")  # fmt: skip
    store = Store(pointer="out_ptr0", index=variable, value="t9")
    return Loop(variable=variable, extent=extent, body=(*lets, value, store))


def a_let(name: str, value: str, kind: str = "bool") -> Let:
    return Let(name=name, value=value, kind=kind)


@pytest.mark.parametrize(
    ("condition", "cuts"),
    [
        ("(((-1) + 2 * x1) >= int64_t(0)) & ((1 + 2 * x1) < int64_t(55))", (1, 27)),
        ("x1 > int64_t(3)", (4,)),
        ("x1 <= int64_t(3)", (4,)),
        ("int64_t(3) < x1", (4,)),
        ("(5 + (-1 * x1)) >= int64_t(0)", (6,)),
        ("(5 + -2 * x1) > 0", (3,)),
        ("x1 == int64_t(0)", (1,)),
        ("x1 != int64_t(7)", (7, 8)),
        ("2 * x1 == 7", ()),
        ("!(x1 < 4) && (x1 < 20 || t3 > 0.5f)", (4, 20)),
        ("(x1 >= 0) & (x1 < 28)", ()),
        ("x0 < int64_t(5)", ()),
        ("x1 < x0", ()),
        ("in_ptr1[x1] < 5", ()),
        ("floor_div(x1, int64_t(2)) < 5", ()),
        ("x1 * x1 < 9", ()),
    ],
)
def test_a_loop_is_cut_where_the_answer_about_its_variable_changes(condition, cuts):
    assert breaks(asking(condition)) == cuts


def test_an_answer_that_is_made_of_others_is_taken_apart():
    lets = (
        a_let("t0", "(-1) + x1", "int64_t"), a_let("t1", "(t0 >= int64_t(0)) & (t0 < 9)"),
        a_let("t2", "t5 & t1"),
    )  # fmt: skip
    assert breaks(asking("t2", *lets)) == (1, 10)
    assert breaks(asking("true", *lets)) == ()


def test_a_selection_counts_as_a_mask_does():
    value = "(x1 < int64_t(9)) ? t1 : ((t3 != t3) ? t2 : ((1 + x1) >= int64_t(13) ? t4 : t5))"
    store = Store(pointer="out_ptr0", index="x1", value=value)
    assert breaks(Loop(variable="x1", extent=28, body=(store,))) == (9, 12)


def test_of_a_window_it_counts_when_all_of_it_is_within():
    """Windows of 3 from ``2 * x1 - 1`` on, over 28 elements."""
    window = asking("(((-1) + x2 + 2 * x1) >= 0) & (((-1) + x2 + 2 * x1) < 28)",
                    variable="x2", extent=3)  # fmt: skip
    assert breaks(Loop(variable="x1", extent=20, body=(window,))) == (1, 14, 15)
    assert breaks(window) == ()


def around(inside: Loop, *variables: str, extent: int = 20) -> Loop:
    for variable in variables:
        inside = Loop(variable=variable, extent=extent, body=(inside,))
    return inside


def test_the_shortest_neighbours_stay_together_where_there_are_many():
    edges = " & ".join(f"(x1 >= {n})" for n in (1, 2, 3, 17, 18, 19))
    nest = asking(edges, extent=20)
    assert breaks(nest) == (1, 2, 3, 17, 18, 19)
    (cuts,) = borders((nest,)).values()
    assert cuts == (3, 17, 19)


def test_there_are_nine_copies_at_most_and_inner_loops_come_first():
    one = asking(" & ".join(f"(1 <= {x}) & ({x} < 19)" for x in ("x1", "x2", "x3")), extent=20)
    nest = around(one, "x2", "x3")
    cut = {each.variable: cuts for each, cuts in borders((nest,)).items()}
    assert cut == {"x1": (1, 19), "x2": (1, 19)}


def test_what_is_huge_or_unrolled_by_any_compiler_stays_whole():
    lets = [a_let(f"t{n}", f"in_ptr0[x1] + {n}", "float") for n in range(20, 1000)]
    assert borders((asking("x1 < 9", *lets),)) == {}
    assert borders((asking("x1 < 2", extent=4),)) == {}


class Body:
    """The innermost statements of a kernel, as torch's compiler writes them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def let(self, value: str) -> str:
        name = f"tmp{self._count}"
        self._count += 1
        self.lines.append(f"auto {name} = {value};")
        return name

    def within(self, place: str, size: int) -> str:
        """Whether a place is inside."""
        found_at = self.let(f"c10::convert<int64_t>({self.let(place)})")
        zero = self.let("static_cast<int64_t>(0)")
        low = self.let(f"{found_at} >= {zero}")
        end = self.let(f"static_cast<int64_t>({size})")
        high = self.let(f"{found_at} < {end}")
        return self.let(f"{low} & {high}")

    def masked(self, condition: str, load: str, other: str) -> str:
        """A load where a condition holds; nothing is read elsewhere."""
        name, inner = f"tmp{self._count}", f"tmp{self._count + 1}"
        self._count += 2
        self.lines += [f"auto {name} = [&]", "{", f"auto {inner} = {load};", f"return {inner};",
                       "}", ";"]  # fmt: skip
        of = f"decltype({name}())"
        infinite = f"-std::numeric_limits<{of}>::infinity()"
        value = infinite if other == "-inf" else f"static_cast<{of}>({other})"
        return self.let(f"{condition} ? {name}() : {value}")


def kernel(loops: dict[str, int], lines: list[str], *, inputs: int = 1) -> str:
    given_ = "".join(f"const float* in_ptr{number}, " for number in range(inputs))
    opened = [f"{loop(name, extent)}\n{{" for name, extent in loops.items()]
    return "\n".join([f'extern "C"  void  kernel({given_}float* out_ptr0)', "{", *opened, *lines,
                      *("}" for _ in loops), "}"])  # fmt: skip


def at(*terms: tuple[int, str]) -> str:
    """Where an element lies, and how the compiler says it."""
    said = [f"({n}L)" if not x and n < 0 else f"{n}L" if not x else x if n == 1 else f"{n}L*{x}"
            for n, x in terms if n]  # fmt: skip
    return f"static_cast<int64_t>({' + '.join(said) or '0L'})"


def windows(
    shape: tuple[int, int, int], window: int, stride: int, pad: int, *, fold: str = "max"
):  # fmt: skip
    """Pooled windows of images: the largest, or the mean with what lies outside as 0."""
    planes, high, wide = shape
    rows, columns = ((n + 2 * pad - window) // stride + 1 for n in (high, wide))
    body, total = Body(), ""
    for dy in range(window):
        for dx in range(window):
            y = body.within(f"({dy - pad}L) + {stride}L*x1", high)
            x = body.within(f"({dx - pad}L) + {stride}L*x2", wide)
            off = (dy - pad) * wide + dx - pad
            place = at((off, ""), (stride, "x2"), (stride * wide, "x1"), (high * wide, "x0"))
            load = f"in_ptr0[{place}]"
            value = body.masked(body.let(f"{y} & {x}"), load, "-inf" if fold == "max" else "0.0")
            two = f"max_propagate_nan({total}, {value})" if fold == "max" else f"{total} + {value}"
            total = body.let(two) if total else value
    if fold == "mean":
        total = body.let(f"{total} / {body.let(f'static_cast<float>({window**2}.0)')}")
    place = at((1, "x2"), (columns, "x1"), (rows * columns, "x0"))
    body.lines.append(f"out_ptr0[{place}] = {total};")
    text = kernel({"x0": planes, "x1": rows, "x2": columns}, body.lines)
    name = "max_pool2d" if fold == "max" else "avg_pool2d"
    forward = f"torch.nn.functional.{name}(x[None], {window}, {stride}, {pad})[0]"
    return a_family(forward, text, (planes, rows, columns), x=shape)


def a_family(forward: str, text: str, out: tuple[int, ...], **inputs: tuple[int, ...]):
    drawn = ", ".join(f"torch.randn{shape}" for shape in inputs.values())
    one = task(forward, given=", ".join(inputs), inputs=drawn)
    names = ", ".join(f"arg{number}_1" for number in range(len(inputs)))
    dense = [1]
    for size in reversed(out[1:]):
        dense.append(dense[-1] * size)
    code = wrapper(f"{names},", f"""
buf0 = empty_strided_cpu({out}, {tuple(reversed(dense))}, torch.float32)
cpp_fused_0({names}, buf0)
return (buf0, )
""", cpp_fused_0=text)  # fmt: skip
    given_ = [argument(n, name, *shape) for n, (name, shape) in enumerate(inputs.items())]
    return family_of(one, found(one, code, *given_))


def equal(family, chosen, *inputs):
    """A candidate gives what the reference gives, to the last bit."""
    want = model(family.task.source, "Model")(*inputs)
    got = model(family.source(chosen))(*inputs)
    torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)


def spoiled(draw, x: torch.Tensor) -> torch.Tensor:
    """With a few elements that are no numbers."""
    odd = draw(st.sampled_from([None, torch.nan, torch.inf, -torch.inf]), "odd")
    return x if odd is None else x.masked_fill(torch.rand_like(x) < 0.1, odd)


def choices(draw, family) -> dict[str, str]:
    found_ = {"lanes": ["16", "32", "64"], "threads": ["1", "all"], "stores": ["plain", "stream"]}
    drawn = {name: draw(st.sampled_from(few), name) for name, few in found_.items()}
    return {**family.space.defaults, **drawn, "serial_below": "0"}


def test_an_image_is_gone_through_by_corners_edges_and_inside():
    family = windows((4, 40, 56), 3, 1, 1)
    text = family.source({**family.space.defaults, "threads": "all", "serial_below": "0"})
    assert "const auto line = [&](int64_t x1) ALWAYS {" in text
    for line in ("if (x1 < 1) line(0);", "else if (x1 < 39) line(x1);", "else line(39);",
                 "cover<1>(0, 1, each);", "cover<32>(1, 55, each);", "cover<1>(55, 56, each);",
                 "collapse(2)"):  # fmt: skip
        assert line in text
    assert text.count("in_ptr0[") == 9  # written once


def test_lines_that_are_read_with_gaps_are_gone_through_in_one_go():
    family = windows((4, 56, 56), 3, 2, 1)
    text = family.source(family.space.defaults)
    assert "along(0, 1, each);" in text
    assert "along(1, 28, each);" in text


def test_a_loop_without_masks_is_written_as_ever():
    family = windows((4, 56, 56), 2, 2, 0)
    text = family.source(family.space.defaults)
    assert "sweep<16>(0, 28, [=](int64_t x2, int) {" in text
    assert not any(word in text for word in (") ALWAYS {", "cover", "along"))


@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_pooled_images_are_those_of_torch(data):
    window = data.draw(st.integers(1, 4), "window")
    pad = data.draw(st.integers(0, window // 2), "pad")
    stride = data.draw(st.integers(1, 3), "stride")
    least = max(1, window - 2 * pad)  # a window may be larger than the image
    high, wide = (data.draw(st.integers(least, 40), name) for name in ("high", "wide"))
    family = windows((3, high, wide), window, stride, pad)
    torch.manual_seed(data.draw(st.integers(0, 99), "seed"))
    equal(family, choices(data.draw, family), spoiled(data.draw, torch.randn(3, high, wide)))


@pytest.mark.parametrize("size", [1, 2, 3, 19])
def test_means_count_what_lies_outside_as_nothing(size):
    family = windows((2, size, size + 1), 3, 1, 1, fold="mean")
    x = torch.randn(2, size, size + 1)
    want = model(family.task.source, "Model")(x)
    torch.testing.assert_close(model(family.source(family.space.defaults))(x), want)


def padded(before: int, wide: int, after: int, lines: int = 7):
    body = Body()
    mask = body.within(f"({-before}L) + x1", wide)
    load = f"in_ptr0[{at((-before, ''), (1, 'x1'), (wide, 'x0'))}]"
    value = body.masked(mask, load, "1.5")
    long = before + wide + after
    body.lines.append(f"out_ptr0[{at((1, 'x1'), (long, 'x0'))}] = {value};")
    forward = f"torch.nn.functional.pad(x, ({before}, {after}), value=1.5)"
    text = kernel({"x0": lines, "x1": long}, body.lines)
    return a_family(forward, text, (lines, long), x=(lines, wide))


@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_padded_lines_are_those_of_torch(data):
    before, after = (data.draw(st.integers(0, 9), name) for name in ("before", "after"))
    wide = data.draw(st.sampled_from([1, 2, 3, 17, 64, 300]), "wide")
    family = padded(before, wide, after)
    torch.manual_seed(data.draw(st.integers(0, 99), "seed"))
    equal(family, choices(data.draw, family), spoiled(data.draw, torch.randn(7, wide)))


def test_streams_are_cut_too():
    family = padded(3, 300, 4)
    text = family.source({**family.space.defaults, "stores": "stream"})
    for part in ("0, 3, each);", "3, 303, each);", "303, 307, each);"):
        assert f"stream<64>(out_ptr0 + 307 * x0, {part}" in text


@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_what_lies_side_by_side_is_that_of_torch(data):
    left, right = (data.draw(st.integers(1, 70), name) for name in ("left", "right"))
    body = Body()
    place = body.let("c10::convert<int64_t>(x1)")
    first = body.let(f"{place} < {body.let(f'static_cast<int64_t>({left})')}")
    loads = [at((1, "x1"), (left, "x0")), at((-left, ""), (1, "x1"), (right, "x0"))]
    one = body.masked(first, f"in_ptr0[{loads[0]}]", "0.0")
    second = body.let(f"{place} >= {body.let(f'static_cast<int64_t>({left})')}")
    other = body.masked(second, f"in_ptr1[{loads[1]}]", "0.0")
    value = body.let(f"{first} ? {one} : {other}")
    body.lines.append(f"out_ptr0[{at((1, 'x1'), (left + right, 'x0'))}] = {value};")
    text = kernel({"x0": 5, "x1": left + right}, body.lines, inputs=2)
    family = a_family("torch.cat([x, y], -1)", text, (5, left + right), x=(5, left), y=(5, right))
    x = spoiled(data.draw, torch.randn(5, left))
    equal(family, choices(data.draw, family), x, torch.randn(5, right))


@pytest.mark.parametrize("wide", [1, 3, 61, 1016])
def test_sums_over_masked_lines_are_right_and_the_same_each_time(wide):
    body = Body()
    mask = body.within("(-4L) + x1", wide)
    load = f"in_ptr0[{at((-4, ''), (1, 'x1'), (wide, 'x0'))}]"
    value = body.masked(mask, load, "0.5")
    lines = [*body.lines, f"tmp_acc0 = tmp_acc0 + {value};"]
    inner = f"float tmp_acc0 = 0;\n{loop('x1', wide + 8)}\n{{"
    text = kernel({"x0": 9}, [inner, *lines, "}", f"out_ptr0[{at((1, 'x0'))}] = tmp_acc0;"])
    forward = "torch.nn.functional.pad(x, (4, 4), value=0.5).double().sum(-1).float()"
    family = a_family(forward, text, (9,), x=(9, wide))
    assert f"(4, {wide + 4}, each);" in family.source(family.space.defaults) or wide < 3
    x = torch.randn(9, wide)
    want = model(family.task.source, "Model")(x)
    for chosen in family.space.starts:
        made = model(family.source(chosen))
        torch.testing.assert_close(made(x), want, rtol=2e-6, atol=2e-6 * wide**0.5)
        assert torch.equal(made(x), made(x))


def test_nothing_is_done_twice_to_memory_that_is_read_too():
    """In place: a step that is done again would double again."""
    text = f"""\
extern "C"  void  kernel(float* in_out_ptr0)
{{
    {loop("x0", 5)}
    {{
        {loop("x1", 61)}
        {{
            auto tmp0 = in_out_ptr0[static_cast<int64_t>(x1 + 61L*x0)];
            auto tmp1 = x1;
            auto tmp2 = c10::convert<int64_t>(tmp1);
            auto tmp3 = static_cast<int64_t>(20);
            auto tmp4 = tmp2 < tmp3;
            auto tmp5 = static_cast<float>(2.0);
            auto tmp6 = static_cast<float>(3.0);
            auto tmp7 = tmp4 ? tmp5 : tmp6;
            auto tmp8 = float(tmp0 * tmp7);
            in_out_ptr0[static_cast<int64_t>(x1 + 61L*x0)] = tmp8;
        }}
    }}
}}
"""
    one = task("x.mul_(torch.where(torch.arange(61) < 20, 2.0, 3.0))", inputs="torch.randn(5, 61)")
    code = wrapper("arg0_1,", """
cpp_fused_0(arg0_1)
return (arg0_1, )
""", cpp_fused_0=text)  # fmt: skip
    family = family_of(one, found(one, code, argument(0, "x", 5, 61)))
    source = family.source(family.space.defaults)
    assert "sweep<32>(20, 61, each);" in source or "sweep<16>(20, 61, each);" in source
    assert "cover<" not in source.partition("extern")[2]
    x = torch.randn(5, 61)
    equal(family, family.space.defaults, x.clone())
    mine, theirs = x.clone(), x.clone()
    model(source)(mine)
    model(one.source, "Model")(theirs)
    assert torch.equal(mine, theirs)


def test_rows_that_are_looked_up_may_have_borders_too():
    text = LOOK_UP.replace(
        "auto tmp5 = static_cast<float>(2.5);",
        "auto tmp7 = c10::convert<int64_t>(x1);\nauto tmp8 = tmp7 < static_cast<int64_t>(6);\n"
        "auto tmp9 = c10::convert<int64_t>(x0);\nauto tmp10 = tmp9 >= static_cast<int64_t>(1);\n"
        "auto tmp11 = tmp8 & tmp10;\nauto tmp12 = static_cast<float>(2.5);\n"
        "auto tmp13 = static_cast<float>(0.5);\nauto tmp5 = tmp11 ? tmp12 : tmp13;",
    )
    forward = (
        "w[i] * torch.where((torch.arange(20) < 6) & (torch.arange(6)[:, None] >= 1), 2.5, 0.5)"
    )
    one = task(forward, given="i, w", inputs="torch.randint(11, (6,)), torch.randn(11, 20)")
    code = wrapper("arg0_1, arg1_1", """
buf0 = empty_strided_cpu((6, 20), (20, 1), torch.float32)
cpp_fused_0(arg0_1, arg1_1, buf0)
return (buf0, )
""", cpp_fused_0=text)  # fmt: skip
    given_ = argument(0, "i", 6, dtype="int64"), argument(1, "w", 11, 20)
    family = family_of(one, found(one, code, *given_))
    source = family.source(family.space.defaults)
    assert "if (x0 < 1) line(0);" in source
    assert "(6, 20, each);" in source
    equal(family, family.space.defaults, torch.randint(11, (6,)), torch.randn(11, 20))
    with pytest.raises(IndexError):
        model(source)(torch.tensor([0, 1, 2, 3, 4, 11]), torch.randn(11, 20))
