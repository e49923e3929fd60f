"""Where a candidate lies: bins that never move, and one of its own for what is not known."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Coverage, Kernel, Roofline
from kernelsmith.search.descriptors import DIMENSIONS, cell_of, descriptors
from kernelsmith.search.kernel_text import Family, complexity, family
from kernelsmith.testing import a_failure, a_pass

EVERY = tuple(DIMENSIONS)

TRITON = '''
import torch, triton
import triton.language as tl

@triton.jit
def kernel(
    x_ptr, y_ptr, n,
    BLOCK: tl.constexpr,
):
    """Says: for, if, +, *."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # where + when
    {body}
    tl.store(y_ptr + at, x, mask=at < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(1,)](x, y, x.numel(), BLOCK=1024)
        return y
'''
LOAD = "x = tl.load(x_ptr + at, mask=at < n)"
CPP = '''
from kernelsmith.kernels import cpp
lib = cpp(r"""
extern "C" void f(const float* x, float* y, int64_t n) {{
  // for + for
  {body}
}}
""")
'''


def triton(body):
    return TRITON.format(body=body)


def native(body):
    return CPP.format(body=body)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (triton(LOAD), Family.ELEMENTWISE),
        (triton(LOAD + "; x = x / tl.sum(x, axis=0)"), Family.REDUCTION),
        (triton("for i in range(4): x = tl.max(x, axis=0)"), Family.STREAMED),
        (triton("x = tl.dot(x, x)"), Family.TILED),
        (triton("tl.atomic_add(y_ptr, tl.sum(x))"), Family.SPLIT),
        (triton("for i in range(pid, n, tl.num_programs(0)): x = tl.dot(x, x)"), Family.PERSISTENT),
        (native("for (long i = 0; i < n; ++i) y[i] = x[i] * 2;"), Family.ELEMENTWISE),
        (native("float s = 0; for (long i = 0; i < n; ++i) s += x[i]; y[0] = s;"), "reduction"),
        (native("float m = x[0]; for (;;) m = std::max(m, x[i]);"), Family.REDUCTION),
        (native("for (i = 0; i < n; i += T) for (j = 0; j < n; j += 32) y[j] = 1;"), Family.TILED),
        (native("for (i = t; i < n; i += blockDim.x * gridDim.x) y[i] = x[i];"), "persistent"),
        (native("atomicAdd(y, x[0]);"), Family.SPLIT),
        ("import torch\ndef f(x): return torch.relu(x)", Family.LIBRARY),
        ("x + y", None),
    ],
)
def test_the_schedule_is_recognised_from_the_text(source, expected):
    assert family(source) == expected


def test_complexity_is_of_the_kernel_and_not_of_names_comments_or_the_python_around_it():
    plain = triton(LOAD)
    renamed = plain.replace("x_ptr", "a_much_longer_name").replace("BLOCK", "B")
    commented = plain.replace("# where + when", "# x * y + z if a else b\n    # more * of + it")
    wrapped = plain + "\ndef other(a):\n    return [a[i] + a[i] * 2 for i in range(3) if i]\n"
    assert complexity(plain) > 5
    assert {complexity(each) for each in (renamed, commented, wrapped)} == {complexity(plain)}
    assert complexity(triton(LOAD + "; x = x * x + 1")) > complexity(plain)


def test_a_source_without_a_kernel_counts_as_a_whole():
    assert complexity("x + y * 2  # us: 3 + 4") == 2


@given(st.text(alphabet="for(){};+=*/'\"\\#@\n jit_deftlpiagrn.\t", max_size=400))
def test_no_text_is_too_odd_to_describe(text):
    complexity(text)
    family(text)


def test_what_is_not_known_has_a_bin_of_its_own():
    candidate, evaluation = a_pass("x + y", 1.5)
    found = dict(zip(EVERY, descriptors(candidate, evaluation, dimensions=EVERY), strict=True))
    assert found["complexity"] is not None
    assert found["score"] is not None
    assert [found[name] for name in ("schedule", "launches", "own", "traffic")] == [None] * 4
    assert cell_of((None, 0, 3)) == (0, 1, 4)


def test_even_a_failure_can_be_described():
    assert len(descriptors(*a_failure("x +"), dimensions=EVERY)) == len(EVERY)


def rich(speedup, *, own, launches, share):
    candidate, evaluation = a_pass(triton(LOAD), speedup)
    return candidate, dataclasses.replace(
        evaluation,
        coverage=Coverage(own=own, library=1 - own, samples=100),
        kernels=(Kernel(name="k", own=True, launches=launches),),
        rooflines=(
            Roofline(workload="a", bytes=1, floor_us=1.0, bandwidth_share=share),
            Roofline(workload="b", bytes=1, floor_us=1.0, bandwidth_share=1.0),
        ),
    )


@given(
    st.floats(0.01, 1000), st.floats(0, 1), st.integers(1, 100), st.floats(0, 5)
)  # fmt: skip
def test_every_bin_has_a_label_and_lies_inside_its_dimension(speedup, own, launches, share):
    candidate, evaluation = rich(speedup, own=own, launches=launches, share=share)
    cell = cell_of(descriptors(candidate, evaluation, dimensions=EVERY))
    for name, index in zip(EVERY, cell, strict=True):
        assert 0 < index < DIMENSIONS[name].size
        assert DIMENSIONS[name].label(index) != "not known"
    assert DIMENSIONS["own"].label(0) == "not known"


def test_labels_say_what_a_bin_holds():
    candidate, evaluation = rich(1.3, own=0.6, launches=4, share=0.6)
    cell = cell_of(descriptors(candidate, evaluation, dimensions=EVERY))
    said = {name: DIMENSIONS[name].label(at) for name, at in zip(EVERY, cell, strict=True)}
    assert said == {
        "complexity": "16 to 32",
        "score": "1.25x to 1.5x",
        "schedule": "elementwise",
        "launches": "3 or 4",
        "own": "0.5 to 0.8",
        "traffic": "0.5 to 0.75",
    }


def test_most_of_the_time_in_a_library_is_the_library_family():
    candidate, evaluation = rich(1.3, own=0.1, launches=1, share=0.5)
    (found,) = descriptors(candidate, evaluation, dimensions=("schedule",))
    assert DIMENSIONS["schedule"].label(found + 1) == "library"


def test_bins_do_not_depend_on_what_was_seen_before():
    pairs = [a_pass("+".join("x" * n), 0.1 * n) for n in range(1, 60)]
    once = [descriptors(*pair) for pair in pairs]
    again = [descriptors(*pair) for pair in reversed(pairs)]
    assert once == again[::-1]


def test_a_candidate_of_another_backend_is_described_like_any_other():
    candidate = Candidate(backend="triton", source=triton(LOAD))
    assert descriptors(candidate, a_pass(triton(LOAD), 1.0)[1])[0] is not None
