"""The page: whole, self-contained, readable without seeing, and harmless."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from bench_records import a_record, failed, ratio
from bench_synthetic import a_bench

from kernelsmith.bench.numbers.curves import curve
from kernelsmith.bench.numbers.findings import findings
from kernelsmith.bench.numbers.scores import Measure
from kernelsmith.bench.output import figures, page
from kernelsmith.bench.record import Beside, Missing
from kernelsmith.errors import UsageError

VOID = {"meta", "br", "link", "hr"}


class Reader(HTMLParser):
    """Reads a page as a browser would, and complains of what a browser would mend."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.urls, self.tags = [], [], [], [], set()

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in named:
            self.ids.append(named["id"])
        self.links += [named["href"]] if "href" in named else []
        self.urls += [value for key, value in attrs if key in ("src", "srcset", "xlink:href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def found():
    return findings(
        a_bench(per_level=6, steps=12, seeds=2),
        missing=[Missing(entry="kernelbench/level4/1", reason="needs <a> download")],
    )


@pytest.fixture(scope="module")
def text(found):
    return page.page(found)


def pictures(text):
    return [ET.fromstring(each) for each in re.findall(r"<svg.*?</svg>", text, re.S)]


def test_the_page_is_whole_and_needs_nothing_from_elsewhere(text):
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids)
    assert {link.removeprefix("#") for link in reader.links} <= set(reader.ids)
    assert reader.urls == []
    assert "script" not in reader.tags
    assert not re.search(r"url\(|@import|https?://", text)
    assert "default-src 'none'" in text.replace("&#x27;", "'")


def test_every_picture_says_in_words_what_it_shows(text):
    drawn = pictures(text)
    assert len(drawn) >= 5
    for each in drawn:
        assert each.get("role") == "img"
        assert len(each.find("desc").text) > 20
        assert each.find("title").text in each.get("aria-label")
    words = " ".join(each.find("desc").text for each in drawn)
    assert re.search(r"large reaches \d\.\d\dx \[.*\] after 12 steps on 18 tasks", words)


def test_nothing_is_drawn_outside_its_frame(text):
    for each in pictures(text):
        *_, width, height = (float(v) for v in each.get("viewBox").split())
        for path in each.iter("path"):
            places = re.findall(r"(-?[\d.]+) (-?[\d.]+)", path.get("d"))
            assert all(-1 <= float(x) <= width + 1 for x, _ in places)
            assert all(-1 <= float(y) <= height + 1 for _, y in places)
        for shape in each.iter("circle"):
            assert 0 <= float(shape.get("cx")) <= width
            assert 0 <= float(shape.get("cy")) <= height


def test_light_and_dark_have_every_colour_that_is_used(text):
    style = re.search(r"<style>(.*?)</style>", text, re.S)[1]
    assert "prefers-color-scheme:dark" in style
    used = set(re.findall(r"var\((--\w+)\)", style))
    light = style[: style.index("@media")]
    assert used <= set(re.findall(r"(--\w+):", light))


def test_systems_are_told_apart_without_colour():
    dashes = re.findall(r"\.c\d\{stroke:[^}]*?(?:dasharray:([\d ]+))?\}", figures.STYLE)
    assert len(set(dashes)) == figures.COLOURS


def test_all_parts_are_there(text):
    parts = (
        "Results", "Best against step", "What few steps give", "Speed-ups", "By level",
        "By kind of task", "Pairs of systems", "Searches and their cost", "What refining does",
        "Every task", "Without a record", "How it was measured",
    )  # fmt: skip
    for part in parts:
        assert f">{part}</h2>" in text
    assert "needs &lt;a&gt; download" in text
    assert ">Devices</h2>" not in text


def test_a_best_line_per_system_with_its_band(found):
    curves = [search.curve for search in found.searches.values()]
    drawn = ET.fromstring(figures.best_against_step(curves, found.systems))
    styles = [path.get("class") for path in drawn.iter("path")]
    # compile, which does not search, is the first system and keeps its own colour elsewhere
    assert [style for style in styles if style[0] in "bc"] == ["b1", "c1", "b2", "c2"]
    line = next(path for path in drawn.iter("path") if path.get("class") == "c1")
    heights = [float(y) for _, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", line.get("d"))]
    assert heights == sorted(heights, reverse=True)  # up is a smaller y: the best never falls


def test_one_step_and_one_task_can_be_drawn():
    record = a_record(points=a_record().points[1:], best_step=0)
    drawn = figures.best_against_step([curve([record], system="one")], ["one"])
    assert ET.fromstring(drawn) is not None
    assert "1.50x" in page.page(findings([record]))


def test_a_dot_for_every_winner_and_none_for_failures(found):
    drawn = ET.fromstring(figures.distribution(found.records, found.measure, found.systems))
    winners = sum(
        any(record.passed for record in own if record.entry == entry)
        for own in found.records.values()
        for entry in {record.entry for record in own}
    )
    assert len(list(drawn.iter("circle"))) == winners


def test_a_speed_up_of_a_thousand_does_not_break_the_pictures():
    records = [
        a_record(entry=f"s/{i}", points=(), beside=(Beside(baseline="eager", device=ratio(v)),))
        for i, v in enumerate((0.001, 1.0, 5000.0))
    ]
    text = page.page(findings(records))
    assert "5000" in text
    assert "nan" not in text.lower().replace("nano", "")


@pytest.mark.parametrize(
    "records",
    [[], [failed()], [failed(points=()), failed(entry="b", points=())], [a_record()],
     [a_record(beside=(Beside(baseline="eager", trouble="no clock"),))],
     [a_record(), a_record(entrant="b", entry="elsewhere")]],
    ids=["none", "one failed", "no passed", "one", "untimed", "nothing in common"],
)  # fmt: skip
def test_a_page_can_be_made_of_whatever_there_is(records):
    reader = Reader()
    reader.feed(page.page(findings(records)))
    assert reader.open == []


def test_hostile_names_stay_text():
    nasty = "<script>alert(1)</script>\"'&\u202e"
    records = [a_record(entrant=nasty, entry=f"s/{i}", level=nasty, family=f"{i}{nasty}",
                        note=nasty) for i in range(3)]  # fmt: skip
    text = page.page(findings(records))
    assert "<script" not in text
    assert "\u202e" not in text


def test_every_task_says_why_it_has_no_ratio():
    records = [
        failed(entry="s/1", message="off by <3"),
        a_record(entry="s/2"),
        a_record(entry="s/3", beside=(Beside(baseline="eager", trouble="no clock"),)),
    ]
    text = page.page(findings(records))
    assert ">wrong: off by &lt;3</td>" in text
    assert ">right, not timed: no clock</td>" in text


def test_a_page_that_cannot_be_written_is_the_users_to_know(tmp_path):
    with pytest.raises(UsageError, match="cannot write"):
        page.write(findings([]), tmp_path / "no" / "folder" / "report.html")
    page.write(findings([]), tmp_path / "report.html")
    assert "no records" in (tmp_path / "report.html").read_text()


def test_pictures_follow_the_measure(found):
    def drawn(measure):
        return figures.distribution(found.records, measure, found.systems)

    assert drawn(Measure()) != drawn(Measure(baseline="compile"))
    assert drawn(Measure(baseline="graph")) is None
