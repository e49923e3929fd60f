"""The rule about library time: what it convicts, what it labels and what it lets pass."""

import pytest

from kernelsmith.domain.evaluation import Coverage
from kernelsmith.domain.task import Library
from kernelsmith.evaluate.guards.policy import GLUE_US, Trivial, Violation, judge_coverage


def shares(own: float, samples: int = 2000) -> Coverage:
    return Coverage(own=own, library=1 - own, samples=samples)


def test_any_library_means_any():
    assert judge_coverage(shares(0.0), Library.ANY) is None


def test_no_own_time_at_all_is_a_fallback():
    found = judge_coverage(shares(0.0), Library.SOME)
    assert isinstance(found, Violation)
    assert found.message.startswith("torch fallback: none of the time ran in code that")


def test_a_kernel_on_one_element_beside_torch_is_a_decoy():
    found = judge_coverage(shares(0.008), Library.SOME)
    assert isinstance(found, Violation)
    assert found.message.startswith("decoy: only 0.80%")


def test_few_samples_never_convict():
    assert isinstance(judge_coverage(shares(0.0, samples=100), Library.SOME), Trivial)
    assert isinstance(judge_coverage(shares(0.0, samples=1000), Library.SOME), Violation)


def test_a_lazy_optimisation_is_labelled_trivial():
    found = judge_coverage(shares(0.1), Library.SOME)
    assert isinstance(found, Trivial)
    assert "10.0%" in found.reason


def test_a_fifth_of_the_time_is_enough_where_some_library_is_allowed():
    assert judge_coverage(shares(0.2), Library.SOME) is None


@pytest.mark.parametrize(
    ("own", "guilty"), [(0.5, True), (0.85, True), (0.92, False), (1.0, False)]
)
def test_a_task_without_library_allows_a_tenth(own: float, guilty: bool):
    found = judge_coverage(shares(own), Library.NONE)
    assert isinstance(found, Violation) is guilty


def test_a_tenth_is_not_exceeded_until_the_samples_leave_no_doubt():
    assert judge_coverage(shares(0.85, samples=30), Library.NONE) is None


@pytest.mark.parametrize("library", [Library.SOME, Library.NONE])
def test_allocating_the_output_of_a_tiny_kernel_is_not_held_against_it(library: Library):
    assert judge_coverage(shares(0.11), library, library_us=0.25) is None


@pytest.mark.parametrize("library", [Library.SOME, Library.NONE])
def test_a_tiny_kernel_that_is_not_there_is_still_a_fallback(library: Library):
    assert isinstance(judge_coverage(shares(0.0), library, library_us=0.25), Violation)


def test_a_tiny_kernel_that_hardly_shows_is_trivial_and_no_cheat():
    assert isinstance(judge_coverage(shares(0.01), Library.SOME, library_us=0.25), Trivial)


def test_the_allowance_ends_where_glue_cannot_explain_the_time():
    assert isinstance(
        judge_coverage(shares(0.01), Library.SOME, library_us=GLUE_US * 1.01), Violation
    )


def test_shares_that_were_measured_need_no_samples_to_convict():
    assert isinstance(judge_coverage(shares(0.0, samples=1), Library.SOME), Trivial)
    found = judge_coverage(shares(0.0, samples=1), Library.SOME, certain=True)
    assert isinstance(found, Violation)
    assert found.rule == "fallback"


@pytest.mark.parametrize(
    ("own", "kind"),
    [(0.019, Violation), (0.021, Trivial), (0.19, Trivial), (0.21, type(None))],
)
def test_measured_shares_are_judged_at_the_limit_itself(own: float, kind: type):
    assert isinstance(judge_coverage(shares(own, samples=2), Library.SOME, certain=True), kind)


def test_two_kernels_suffice_to_show_that_a_library_did_too_much():
    assert judge_coverage(shares(0.85, samples=2), Library.NONE) is None
    found = judge_coverage(shares(0.85, samples=2), Library.NONE, certain=True)
    assert isinstance(found, Violation)
    assert found.rule == "library"
    assert judge_coverage(shares(0.91, samples=2), Library.NONE, certain=True) is None


@pytest.mark.parametrize("library", [Library.SOME, Library.NONE])
def test_a_short_fill_beside_a_short_kernel_is_glue_for_measured_shares_too(library: Library):
    assert judge_coverage(shares(0.3, samples=2), library, library_us=1.0, certain=True) is None
    nothing = judge_coverage(shares(0.0, samples=1), library, library_us=1.0, certain=True)
    assert isinstance(nothing, Violation)


def test_any_library_means_any_for_measured_shares_too():
    assert judge_coverage(shares(0.0, samples=1), Library.ANY, certain=True) is None
