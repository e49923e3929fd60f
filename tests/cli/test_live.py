"""What is shown while a run goes on."""

from dataclasses import replace

import pytest

from kernelsmith.cli.live import Plain, clock_of, line, sparkline
from kernelsmith.domain.timing import Ratio
from kernelsmith.domain.trajectory import Outcome
from kernelsmith.run.progress import Progress


def ratio(value):
    return Ratio(value=value, low=value * 0.9, high=value * 1.1)


SOME = Progress(
    told=3, asked=5, of=10, outcome=Outcome.NEW, best=ratio(2.0), best_id="c0ffee", best_step=2,
    curve=((0, ratio(1.0)), (2, ratio(2.0))), cells=2, coverage=0.1,
    verdicts=(("passed", 2), ("timed_out", 1)), tokens=0, usd=None, elapsed_s=30.0, eta_s=70.0,
)  # fmt: skip


def test_a_line_says_best_interval_ends_and_what_is_left():
    assert line(SOME) == (
        "step 3/10  best 2.00x [1.80, 2.20] at step 2  (2 passed, 1 timed out; 1:10 left)"
    )
    nothing = replace(SOME, best=None, best_step=None, verdicts=(("wrong", 3),), eta_s=None)
    assert line(nothing) == "step 3/10  no best  (3 wrong)"


def test_lines_come_every_few_seconds_or_with_a_new_best_or_at_the_end():
    said, now = [], [0.0]
    watch = Plain(said.append, lambda: now[0])
    for told, second, best in ((1, 0.0, 0), (2, 0.5, 0), (3, 1.0, 2), (4, 1.5, 2), (5, 3.1, 2)):
        now[0] = second
        watch(replace(SOME, told=told, best_step=best))
    now[0] = 3.2
    watch(replace(SOME, told=10, best_step=2))
    assert [text.split()[1] for text in said] == ["1/10", "3/10", "5/10", "10/10"]


def test_the_sparkline_climbs_from_what_was_first_to_the_best():
    assert sparkline(((0, ratio(1.0)), (2, ratio(2.0))), 4) == "▁▁██"
    assert sparkline(((1, ratio(1.5)),), 3) == " ██"
    assert sparkline((), 3) == ""


@pytest.mark.parametrize("told", [1, 47, 48, 49, 512, 5000])
def test_the_sparkline_fits_its_line(told):
    curve = tuple((step, ratio(1 + step / 100)) for step in range(0, told, 7))
    assert len(sparkline(curve, told)) == min(told, 48)


def test_time_is_minutes_and_seconds():
    assert [clock_of(each) for each in (0.4, 61, 3671)] == ["0:00", "1:01", "1:01:11"]
