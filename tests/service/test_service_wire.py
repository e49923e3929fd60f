"""Requests and tickets: read strictly, hashed by what they mean."""

import json
from dataclasses import replace

import pytest
from service_parts import DEVICE, OTHER, a_body, a_line, a_request

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import encode
from kernelsmith.errors import UsageError
from kernelsmith.service.wire import State, Ticket, content_of, read_json, read_requests


def test_a_request_survives_the_wire():
    request = a_request(key="k", priority=9, device="d", cache=False)
    assert read_requests(read_json(json.dumps(a_body(request))), 10) == [request]


@pytest.mark.parametrize("change", [{"key": "k"}, {"priority": 0}, {"device": "d"}])
def test_who_asks_and_how_urgently_does_not_change_the_subject(change):
    assert a_request(**change).subject == a_request().subject


def test_the_parent_does_not_change_the_subject():
    child = Candidate(backend="null", source="x + y", parent="abc")
    assert a_request(candidate=child).subject == a_request().subject


def test_whatever_is_judged_changes_the_subject():
    baseline = Candidate(backend="null", source="y + x")
    usual = a_request()
    others = [
        a_request("y + x"), a_request(task=OTHER), a_request(baseline=baseline),
        a_request(settings=replace(usual.settings, trials=6)),
    ]  # fmt: skip
    assert len({each.subject for each in [usual, *others]}) == 5


def test_another_device_or_judge_is_other_content():
    other = replace(DEVICE, versions=(("driver", "2"),))
    found = {
        content_of("s", DEVICE, "1"),
        content_of("s", other, "1"),
        content_of("s", DEVICE, "2"),
    }
    assert len(found) == 3


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b'{"requests": NaN}', "NaN is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "one field"),
        (b'{"requests": []}', "1 to 10"),
        (b'{"requests": [{}], "more": 1}', "one field"),
        (b'{"requests": [1]}', r"requests\[0\]"),
    ],
)
def test_a_body_that_is_no_submission_is_refused(body, said):
    with pytest.raises(UsageError, match=said):
        read_requests(read_json(body), 10)


def test_a_field_that_nobody_knows_is_refused_not_dropped():
    body = a_body()
    body["requests"][0]["task"]["colour"] = "red"
    with pytest.raises(UsageError, match="no field colour"):
        read_requests(body, 10)


def test_what_is_no_text_is_refused():
    body = a_body()
    body["requests"][0]["candidate"]["source"] = "x \ud800"
    with pytest.raises(UsageError, match=r"requests\[0\]"):
        read_requests(body, 10)


@pytest.mark.parametrize(
    "change", [{"priority": 10}, {"priority": -1}, {"key": ""}, {"device": ""}]
)
def test_a_request_out_of_its_bounds_is_refused(change):
    body = a_body()
    body["requests"][0] |= change
    with pytest.raises(UsageError, match=r"requests\[0\]"):
        read_requests(body, 10)


def test_a_ticket_survives_the_wire_with_its_evaluation():
    ticket = Ticket(id="a" * 32, state=State.DONE, attempts=2, line=a_line())
    back = Ticket.from_json(json.loads(ticket.to_text()))
    assert back.evaluation == ticket.evaluation
    assert (back.id, back.state, back.attempts) == (ticket.id, State.DONE, 2)


def test_there_is_no_ticket_that_is_done_without_an_evaluation():
    with pytest.raises(ValueError, match="done only"):
        Ticket(id="a", state=State.DONE)


def test_an_evaluation_of_another_version_is_not_guessed_at():
    text = Ticket(id="a", state=State.DONE, line=a_line()).to_text()
    ticket = Ticket.from_json(json.loads(text.replace("evaluation/1", "evaluation/9")))
    with pytest.raises(ValueError, match="version 9"):
        assert ticket.evaluation


def test_a_submission_has_the_same_subject_on_both_sides():
    request = a_request()
    (back,) = read_requests({"requests": [encode(request)]}, 1)
    assert back.subject == request.subject
