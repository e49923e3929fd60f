"""The curve of gains: whoever looked best on the way is judged once more."""

import pytest
from benchmarks.rules_figure import curve, tables
from benchmarks.rules_growth import LOST, after, grown, judged_again
from benchmarks.rules_numbers import summarise


def a_figure(value, **more):
    return {"said": "passed", "ratio": value, "low": value * 0.99, "high": value * 1.01, **more}


def a_record(steps, again, best):
    return {"task": "some", "steps": steps, "again": again, "best": best, "compile": {}}


def six_steps():
    """The best of the first is the first; of five the third; of all the last."""
    return [a_figure(1.2), {"said": "wrong"}, a_figure(2.0), a_figure(1.1), a_figure(1.9),
            a_figure(3.0)]  # fmt: skip


def test_each_of_the_best_is_judged_once_and_the_confirmed_one_not_again():
    steps = six_steps() + [a_figure(1.0)] * 14
    asked = []

    def judge(at):
        asked.append(at)
        return a_figure(steps[at]["ratio"] * 0.9)

    confirmed = a_figure(2.8, confirmed=True)
    found = judged_again(steps, judge, known={5: confirmed})
    assert asked == [0, 2]
    assert {count: each["ratio"] for count, each in found.items()} == {
        "1": pytest.approx(1.08), "5": pytest.approx(1.8), "10": 2.8, "20": 2.8,
    }  # fmt: skip


def test_where_nothing_passed_yet_nobody_is_judged():
    steps = [{"said": "wrong"}, *six_steps()]
    found = judged_again(steps, lambda at: a_figure(float(at)), known={})
    assert found["1"] == {"said": "none passed"}
    assert after(a_record(steps, found, None), 1) is None


def test_the_end_is_what_the_search_hands_back_also_where_it_ended_early():
    record = a_record(six_steps(), {"1": a_figure(1.1), "5": a_figure(1.8)}, a_figure(2.7))
    assert [after(record, n)["ratio"] for n in (1, 5, 6, 10, 40)] == [1.1, 1.8, 2.7, 2.7, 2.7]
    longer = a_record(six_steps() * 2, record["again"] | {"10": a_figure(2.9)}, a_figure(2.7))
    assert after(longer, 11)["ratio"] == 2.9, "between two counts the smaller one's stands"


def test_who_could_not_be_judged_once_more_is_left_out_instead_of_counted_as_failed():
    whole = a_record(six_steps(), {"1": a_figure(1.1), "5": a_figure(1.8)}, a_figure(2.7))
    torn = whole | {"again": whole["again"] | {"5": {"said": LOST, "message": "gone"}}}
    assert grown(whole)
    assert not grown(torn)
    assert not grown(a_record(six_steps(), {}, a_figure(2.7)))
    found = summarise({"one": whole, "other": torn})["judged once more"]
    assert found["5"]["tasks"]["tasks"] == 1
    assert found["5"]["tasks"]["geomean"] == pytest.approx(1.8)


def test_both_curves_are_shown_beside_each_other(tmp_path):
    whole = a_record(six_steps(), {"1": a_figure(1.1), "5": a_figure(1.8)}, a_figure(2.7))
    summary = summarise({"one": whole})
    assert summary["evaluations"]["5"]["tasks"]["geomean"] == pytest.approx(2.0)
    said = tables(summary)
    assert "by evaluations, as the search timed them" in said
    assert "by evaluations, the best ones judged once more" in said
    curve(summary, tmp_path / "both.svg")
    drawn = (tmp_path / "both.svg").read_text()
    assert "tasks: 1.800 after 5" in drawn
    assert "c0 seen" in drawn
    without = summarise({"one": whole | {"again": {}}})
    assert "judged once more" not in tables(without)
    curve(without, tmp_path / "one.svg")
    assert "c0 seen" not in (tmp_path / "one.svg").read_text()
