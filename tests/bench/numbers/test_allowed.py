"""By which rules records were made: said for each system, and where two differ."""

from bench_records import a_point, a_record

from kernelsmith.bench.numbers.allowed import allowed, apart
from kernelsmith.bench.numbers.compare import compare
from kernelsmith.bench.numbers.findings import as_json, findings
from kernelsmith.bench.output.tables import markdown
from kernelsmith.bench.record import Rules

LONG = Rules(
    steps=40, policy="evolve", concurrency=4, search_effort="usual", tests=100, effort="thorough"
)
SHORT = Rules(steps=5, policy="refine", concurrency=4, search_effort="glance", effort="quick")


def records(rules, count=3, **changes):
    points = (a_point(0),) if rules.steps else ()
    return [a_record(entry=f"s/{n}", rules=rules, points=points, **changes) for n in range(count)]


def test_rules_are_said_in_words():
    assert allowed(records(LONG)) == (
        "40 steps (evolve), 4 in flight, judged at usual; winners judged at thorough, by 100 tests"
    )
    assert allowed(records(Rules(), entrant="eager")) == "no search; winners judged at thorough"


def test_searches_that_were_cut_short_are_counted():
    cut = [*records(SHORT, 2), *records(SHORT, 1, stop="usd")]
    assert allowed(cut).endswith("; 1 of 3 searches ended for want of money")


def test_records_of_several_rules_are_told_apart():
    said = allowed([*records(LONG, 2), *records(SHORT, 1)])
    assert "by 100 tests (2 records)" in said
    assert "winners judged at quick (1 records)" in said


def test_two_systems_differ_in_what_they_were_allowed_and_not_in_policy():
    said = apart(records(LONG), records(SHORT))
    assert "steps 40 against 5" in said
    assert "search effort usual against glance" in said
    assert "tests 100 against 0" in said
    assert "polic" not in said
    assert apart(records(LONG), records(LONG)) == ""


def test_a_search_and_what_needs_none_differ_only_in_how_they_are_judged():
    fixed = Rules(tests=100, effort="thorough")
    assert apart(records(LONG), records(fixed)) == ""
    assert apart(records(LONG), records(Rules())) == "tests 100 against 0"


def test_every_table_says_by_which_rules_and_a_comparison_where_they_differ():
    found = findings(records(SHORT))
    assert "5 steps (refine)" in markdown(found)
    assert "5 steps (refine)" in as_json(found)
    compared = compare(records(LONG), records(SHORT), names=("a", "b"))
    assert "they were not allowed the same: steps 40 against 5" in compared.contrasts[0].said
