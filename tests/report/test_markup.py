"""Nothing that a candidate wrote becomes part of the page's own markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelsmith.report.markup import Markup, escaped, joined, tag


@given(st.text())
def test_no_text_can_open_or_close_an_element(said):
    inside = tag("p", said, title=said)
    assert inside.count("<") == 2
    assert inside.count(">") == 2
    assert inside.count('"') == 2
    inside.encode()


def test_markup_is_put_in_as_it_is():
    assert tag("p", tag("b", "1 < 2")) == "<p><b>1 &lt; 2</b></p>"


@pytest.mark.parametrize("said", ["\x00", "\x1b[31m", "\u202e", "\ud800", "\x85"])
def test_what_could_hide_or_turn_text_around_is_replaced(said):
    assert "\ufffd" in escaped(said)


def test_lines_and_tabs_stay():
    assert escaped("a\n\tb") == "a\n\tb"


def test_an_absent_attribute_is_left_out_and_numbers_are_short():
    assert tag("rect", x=1.0, y=2.25, class_=None, open=False) == '<rect x="1" y="2.2"></rect>'


def test_joined_is_markup():
    assert isinstance(joined("<", tag("b", "x")), Markup)
    assert joined("<", tag("b", "x")) == "&lt;<b>x</b>"
