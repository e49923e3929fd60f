"""The page: whole, self-contained, small, and deaf to what candidates write."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest
from run_factories import a_line, a_step, an_evaluation, recorded

from kernelsmith.domain.evaluation import Label, LabelName, Verdict
from kernelsmith.domain.trajectory import Proposal
from kernelsmith.report.about import about_of
from kernelsmith.report.numbers import numbers_of
from kernelsmith.report.page import page
from kernelsmith.run.recorded import Judged, Stage

HOSTILE = (
    "</pre></style><script src=//evil>alert(1)</script><img src=x onerror=y>\x1b[31m\u202e\"'&"
)
VOID = {"meta", "br", "hr", "link"}


class Read(HTMLParser):
    """Reads a page as a browser would: which elements, which words, and whether it adds up."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.words, self._open = [], "", []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open[-1:] != ["style"]:
            self.words += data

    def count(self, tag):
        return sum(name == tag for name, _ in self.elements)


def made(steps, *, final=None):
    found = recorded(steps, final=final)
    return page(numbers_of(found), about_of(found, folder="runs/add 1"))


def test_every_part_is_there():
    steps = [*a_line(1.2, 1.6, 2.5), a_step(3, verdict=Verdict.WRONG), a_step(4)]
    final = Judged(
        stage=Stage.FINAL,
        candidate=steps[2].candidate,
        evaluation=an_evaluation(steps[2].candidate, speedup=2.4),
    )
    found = Read(made(steps, final=final))
    for part in (
        "Best against step", "Verdicts", "Archive", "Lineage", "Winning kernel", "Timing",
        "Roofline", "Cost", "How it was measured", "How to reproduce it", "All steps",
    ):  # fmt: skip
        assert part in found.words
    assert "2.40x" in found.words
    assert "95 % interval 2.352 to 2.448" in found.words
    assert "confirmed" in found.words
    assert "add on simulated clock (null)" in found.words
    assert "judge's clock" in found.words
    assert "kernelsmith resume 'runs/add 1'" in found.words
    assert f"-{steps[1].candidate.source}" in found.words
    assert f"+{steps[2].candidate.source}" in found.words


def test_nothing_comes_from_elsewhere_and_nothing_runs():
    text = made(a_line(1.2, 1.6))
    found = Read(text)
    for name, attributes in found.elements:
        assert name not in ("script", "link", "iframe", "object", "img", "base", "form")
        assert not any(key.startswith("on") for key in attributes)
        assert attributes.get("href", "#").startswith("#")
        assert "src" not in attributes
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in dict(found.elements[3][1]).get("content", "")


def test_what_a_candidate_writes_stays_text():
    first, last = a_line(1.2, 2.0)
    hostile = replace(
        a_step(1, speedup=2.0, source=HOSTILE, parent=first.candidate.id, is_best=True),
        proposal=Proposal(source=HOSTILE, proposer=HOSTILE, note=HOSTILE, reply=HOSTILE),
    )
    wrong = a_step(2, verdict=Verdict.WRONG, evaluation={"message": HOSTILE})
    labelled = a_step(3, speedup=3.0, is_best=True, evaluation={
        "labels": (Label(name=LabelName.NOISY, reason=HOSTILE),)})  # fmt: skip
    text = made([first, hostile, wrong, labelled])
    found = Read(text)
    plain = Read(made([first, last, wrong, labelled]))
    assert found.count("script") == found.count("img") == 0
    assert {name for name, _ in found.elements} == {name for name, _ in plain.elements}
    assert "<script src=//evil>" in found.words
    assert "\x1b" not in text
    assert "\u202e" not in text
    text.encode()


def test_pictures_have_titles_and_tables_beside_them():
    found = Read(made([*a_line(1.2, 1.6), a_step(2, verdict=Verdict.CRASHED)]))
    pictures = [attributes for name, attributes in found.elements if name == "svg"]
    assert len(pictures) >= 7
    assert all(each["role"] == "img" and each["aria-label"] for each in pictures)
    assert found.count("table") >= 7
    assert any(name == "html" and each.get("lang") == "en" for name, each in found.elements)


def test_light_dark_and_paper_are_thought_of():
    text = made(a_line(1.2))
    assert "prefers-color-scheme:dark" in text
    assert "@media print" in text


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([], "No step was taken yet."),
        ([a_step(0, verdict=Verdict.BUILD_FAILED)], "no kernel passed"),
        ([a_step(0)], "no code in the reply"),
    ],
)
def test_a_run_that_found_nothing_has_a_page_that_says_so(steps, words):
    assert words in Read(made(steps)).words


def test_a_kernel_that_was_never_timed_is_right_and_not_fast():
    untimed = a_step(0, speedup=1.0, is_best=True, evaluation={
        "timing": None, "labels": (Label(name=LabelName.UNTIMED),)})  # fmt: skip
    found = Read(made([untimed]))
    assert "right, not timed" in found.words
    assert "Timing" not in found.words


def test_a_winner_that_failed_at_the_end_is_not_called_confirmed():
    steps = a_line(1.2, 1.9)
    failed = an_evaluation(steps[1].candidate, verdict=Verdict.WRONG)
    final = Judged(stage=Stage.FINAL, candidate=steps[1].candidate, evaluation=failed)
    assert "confirmation failed: wrong" in Read(made(steps, final=final)).words


def test_512_steps_make_a_small_page():
    body = "".join(f"line {number} of a kernel of some length\n" for number in range(110))
    steps, parent = [], None
    for number in range(512):
        speedup = 1.0 + number / 100
        if number % 3:
            source = f"{body}# {number}\n"
            step = a_step(
                number, speedup=speedup, parent=parent, is_best=number % 7 == 0, source=source,
                cell=(number % 7, number % 5, number % 4, number % 3),
            )  # fmt: skip
            parent = step.candidate.id
        else:
            step = a_step(number, verdict=Verdict.WRONG, evaluation={"message": "x" * 500})
        steps.append(step)
    assert len(made(steps).encode()) < 300_000


def test_a_giant_source_is_cut_and_says_where_the_rest_is():
    text = made([a_step(0, speedup=2.0, is_best=True, source="a" * 1_000_000)])
    assert len(text) < 200_000
    assert "see best.py" in text
