"""Pictures hold what they are said to hold, and stay drawable at the edges."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from run_factories import a_line, a_step, a_timing, an_evaluation, recorded

from kernelsmith.domain.evaluation import Roofline, Verdict
from kernelsmith.report import pictures
from kernelsmith.report.heat import Axis, drawn_axes, heat_map, unnamed
from kernelsmith.report.numbers import numbers_of
from kernelsmith.report.svg import HEIGHT, WIDTH, Scale, ratio_scale

SVG = "{http://www.w3.org/2000/svg}"


def counted(steps):
    return numbers_of(recorded(steps))


def read(drawn):
    """Parse a picture as strictly as XML is parsed."""
    return ElementTree.fromstring(drawn)


def classes(drawn, name):
    return [each for each in read(drawn).iter() if name in each.get("class", "").split()]


def test_a_scale_ends_where_it_should_and_clips():
    scale = Scale(low=1, high=100, start=0, end=200, log=True)
    assert [scale(value) for value in (0.1, 1, 10, 100, 1000)] == [0, 0, 100, 200, 200]
    assert scale.ticks == [1, 2, 5, 10, 20, 50, 100]


@pytest.mark.parametrize(("low", "high"), [(0.5, 1.6), (0, 7), (0, 511), (0.001, 0.002)])
def test_a_linear_scale_has_a_handful_of_round_ticks(low, high):
    ticks = Scale(low=low, high=high, start=0, end=1).ticks
    assert 3 <= len(ticks) <= 7
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)


def test_speedups_that_span_much_are_drawn_in_logarithms():
    assert ratio_scale([0.9, 1.4], start=0, end=1).log is False
    assert ratio_scale([0.9, 14.0], start=0, end=1).log is True


def test_the_curve_shows_bests_others_and_failures():
    steps = [*a_line(1.2, 1.9), a_step(2, speedup=1.1), a_step(3, verdict=Verdict.WRONG), a_step(4)]
    drawn = pictures.curve(counted(steps).points)
    assert len(classes(drawn, "best")) == 2
    assert len(classes(drawn, "other")) == 1
    assert len(classes(drawn, "s-wrong")) == 1
    assert len(classes(drawn, "s-rejected")) == 1
    assert len(classes(drawn, "band")) == 1
    assert "5 steps, 2 times a new best; ends at 1.900x [1.862, 1.938]" in drawn


@pytest.mark.parametrize("speedups", [(1.0,), (1e-6, 1e6), (1e-6,), (1.0, 1.0, 1.0)])
def test_nothing_is_drawn_outside_the_picture(speedups):
    points = counted(a_line(*speedups)).points
    for drawn in (pictures.curve(points), pictures.lineage(points, range(len(points)))):
        for each in read(drawn).iter("circle"):
            assert 0 <= float(each.get("cx")) <= WIDTH
            assert 0 <= float(each.get("cy")) <= HEIGHT


def test_a_run_in_which_nothing_passed_has_a_curve_all_the_same():
    drawn = pictures.curve(counted([a_step(0, verdict=Verdict.CRASHED)]).points)
    assert "nothing passed" in drawn


def test_a_long_run_is_thinned_but_keeps_its_bests():
    steps = [a_step(number, speedup=1.0 + number / 1e5) for number in range(5000)]
    steps[4999] = a_step(4999, speedup=3.0, is_best=True)
    drawn = pictures.curve(counted(steps).points)
    assert len(classes(drawn, "best")) == 1
    assert len(classes(drawn, "other")) <= 600


def test_the_lineage_draws_the_winners_line_thick():
    steps = [*a_line(1.2, 1.5, 1.9)]
    steps.append(a_step(3, speedup=1.1, parent=steps[0].candidate.id))
    drawn = pictures.lineage(counted(steps).points, [0, 1, 2])
    (kin,) = classes(drawn, "kin")
    assert kin.get("d").count("M") == 3
    assert len(classes(drawn, "line")) == 1
    assert len(classes(drawn, "best")) == 3


def test_the_heat_map_has_a_panel_an_island_and_frames_the_winner():
    steps = [
        a_step(0, speedup=1.0, cell=(0, 1, 0)),
        a_step(1, speedup=1.5, cell=(2, 1, 0)),
        a_step(2, speedup=2.0, cell=(1, 3, 0), is_best=True),
    ]
    cells = counted(steps).cells
    drawn = heat_map(cells, unnamed(3), (0, 1, 3, 0))
    assert len(classes(drawn, "empty")) == 2
    assert len(classes(drawn, "cell")) == 3
    (winner,) = classes(drawn, "winner")
    assert float(winner.get("fill-opacity")) == 1.0


def test_the_heat_map_prefers_axes_that_say_more_than_the_shade():
    axes = (Axis(name="complexity"), Axis(name="score"), Axis(name="schedule"))
    steps = [a_step(n, speedup=1.0 + n, cell=(n % 2, n, n % 3)) for n in range(6)]
    assert drawn_axes(counted(steps).cells, axes) == (0, 2)
    flat = [a_step(n, speedup=1.0 + n, cell=(n % 2, n, 0)) for n in range(6)]
    assert drawn_axes(counted(flat).cells, axes) == (0, 1)


def test_an_archive_of_one_dimension_is_drawn_as_one_row():
    cells = counted([a_step(0, speedup=1.0, cell=(4,))]).cells
    assert len(classes(heat_map(cells, unnamed(1), None), "cell")) == 1


def test_bins_are_named_where_names_are_known():
    axis = Axis(name="schedule", labels=("not known", "tiled"))
    assert [axis.label(index) for index in (0, 1, 7)] == ["not known", "tiled", "7"]


def test_shares_fill_the_bar():
    drawn = pictures.shares([("passed", 3.0), ("wrong", 1.0)], title="Verdicts")
    first, second = read(drawn).iter("rect")
    assert float(first.get("width")) == pytest.approx(0.75 * WIDTH - 1)
    assert float(second.get("x")) == pytest.approx(0.75 * WIDTH)
    assert "passed 75%, wrong 25%" in drawn


def test_the_floor_is_drawn_where_it_is_known():
    timed = a_timing(2.0).workloads[0]
    floor = Roofline(workload="default", bytes=10, floor_us=4.0, bandwidth_share=0.4)
    assert len(list(read(pictures.times(timed, None, "eager")).iter("rect"))) == 2
    assert len(list(read(pictures.times(timed, floor, "eager")).iter("rect"))) == 3


def test_the_classic_roofline_needs_operations():
    evaluation = an_evaluation(a_step(0, speedup=2.0).candidate)
    (known,) = evaluation.rooflines
    medians = {"default": 10.25}
    assert pictures.roof([replace(known, flops=None, compute_share=None)], medians) is None
    drawn = pictures.roof([known], medians)
    assert len(classes(drawn, "best")) == 1
    # 4 MB in 10.25 us at 40 % of the bandwidth, 2 MFLOP at 1 % of the peak
    assert "the roof is 976 GB/s and 19,512 GFLOP/s" in drawn
