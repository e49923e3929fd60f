"""Who comes in and how much they may ask for: tokens, rates, bounds, and no path out."""

from dataclasses import replace

import pytest
from service_parts import TOKEN, a_request

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Label, LabelName
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.settings import effort
from kernelsmith.service.limits import Limits, Pace, TooMuch
from kernelsmith.service.scrub import Scrub
from kernelsmith.service.tokens import read_tokens
from kernelsmith.testing import a_failure, a_pass


def a_file(folder, text, mode=0o600):
    path = folder / "tokens"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_token_names_its_client(tmp_path):
    tokens = read_tokens(a_file(tmp_path, f"# ours\n\nann:{TOKEN}\nbob:{TOKEN}2\n"))
    assert tokens.client(TOKEN) == "ann"
    assert tokens.client(f"{TOKEN}2") == "bob"
    assert tokens.client("") is None
    assert tokens.client(TOKEN[:-1]) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no token"),
        ("ann", "line 1: not of the form"),
        ("ann:short", "at least 16"),
        (f"ann:{TOKEN}\nann:{TOKEN}2", "line 2: 'ann' has a token already"),
        (f"a b:{TOKEN}", "not of the form"),
    ],
)
def test_a_token_file_that_is_wrong_says_where_and_quotes_no_secret(tmp_path, text, said):
    with pytest.raises(UsageError, match=said) as caught:
        read_tokens(a_file(tmp_path, text))
    assert TOKEN not in str(caught.value)


def test_a_token_file_that_everybody_can_read_is_refused(tmp_path):
    with pytest.raises(UsageError, match="chmod 600"):
        read_tokens(a_file(tmp_path, f"ann:{TOKEN}", 0o644))


def test_a_token_file_that_is_not_there_is_one_clear_line(tmp_path):
    with pytest.raises(UsageError, match="cannot read the token file"):
        read_tokens(tmp_path / "none")


def test_a_client_that_is_too_fast_has_to_wait_and_others_do_not():
    now = 0.0
    pace = Pace(2.0, 4.0, lambda: now)
    for _ in range(4):
        pace.take("ann")
    with pytest.raises(TooMuch) as caught:
        pace.take("ann")
    assert caught.value.after_s == pytest.approx(0.5)
    pace.take("bob")
    now = 0.5
    pace.take("ann")
    with pytest.raises(TooMuch):
        pace.take("ann")


@pytest.mark.parametrize("name", ["quick", "usual", "thorough"])
@pytest.mark.parametrize("backend", ["cpu", "triton"])
def test_every_effort_of_ours_is_within_bounds(name, backend):
    Limits().check(a_request(settings=effort(name, backend)))


@pytest.mark.parametrize(
    "changes",
    [{"timeout_s": 1e9}, {"max_launches": 1 << 30}, {"static": False}, {"trials": 1000},
     {"warmups": -1}, {"contention": -0.1}],
)  # fmt: skip
def test_settings_that_would_hold_a_device_or_weaken_the_judge_are_refused(changes):
    settings = replace(effort("usual"), **changes)
    with pytest.raises(UsageError, match=r"settings\."):
        Limits().check(a_request(settings=settings))


def test_a_source_that_is_too_large_is_refused():
    with pytest.raises(UsageError, match=r"candidate\.source holds more"):
        Limits(source_bytes=100).check(a_request("x + y #" + "é" * 60))


def test_a_baseline_for_another_backend_is_refused():
    with pytest.raises(UsageError, match="one backend"):
        Limits().check(a_request(baseline=Candidate(backend="cpu", source="x")))


def test_no_folder_of_the_server_is_in_what_it_says():
    scrub = Scrub([("/srv/ks", "<server>"), ("/srv/ks/venv", "<python>"), ("/home/ks", "<home>")])
    said = (
        'File "/srv/ks/venv/lib/x.py", in /home/ks/.cache and /srv/ks; /home/ksmith, /srv/ksx stay'
    )
    assert scrub.text(said) == (
        'File "<python>/lib/x.py", in <home>/.cache and <server>; /home/ksmith, /srv/ksx stay'
    )


def test_an_evaluation_keeps_all_but_the_folders():
    scrub = Scrub([("/srv/ks", "<server>")])
    _, failed = a_failure("x", message="no /srv/ks/a.h")
    failed = replace(
        failed, output="/srv/ks", labels=(Label(name=LabelName.NOISY, reason="/srv/ks/b"),)
    )
    found = scrub.evaluation(failed)
    assert (found.message, found.output, found.labels[0].reason) == (
        "no <server>/a.h", "<server>", "<server>/b",
    )  # fmt: skip
    _, passed = a_pass("x", 2.0)
    assert scrub.evaluation(passed) == passed
