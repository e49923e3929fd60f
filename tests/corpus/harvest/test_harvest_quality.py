"""Which repositories are worth harvesting."""

from kernelsmith.corpus.harvest.harvest import harvest
from kernelsmith.corpus.harvest.quality import quality
from kernelsmith.corpus.harvest.sources import File, Source
from kernelsmith.corpus.store import Store

GOOD = b'"""A layer."""\nfrom torch import nn\n\n\nclass A(nn.Module):\n    """Adds."""\n'
SCRAP = b"from torch import nn\nclass A(nn.Module:\n"


def source(path=None, licence="MIT", version="1.0"):
    return Source(name="pkg", version=version, origin="here", licence=licence, path=path, kind="")


def test_a_kept_package_has_all_six_signs():
    found = quality(source(), [File("pkg/a.py", GOOD), File("tests/test_a.py", GOOD)])
    assert (found.points, found.lacking) == (6, ())


def test_a_scrap_has_hardly_any_and_says_which():
    found = quality(source(licence="unknown", version=""), [File("a.py", SCRAP)])
    assert found.points == 1
    assert found.lacking[:4] == (
        "no licence", "no release or commit", "no tests", "files that do not parse",
    )  # fmt: skip


def test_lines_that_a_program_wrote_are_told_by_their_length():
    generated = GOOD + b"X = [" + b"1, " * 200 + b"]\n"
    assert "lines that nobody wrote by hand" in quality(source(), [File("a.py", generated)]).lacking


def test_a_source_below_what_was_asked_for_is_turned_away_with_its_reason(tmp_path):
    for name, text in (("good", GOOD), ("scrap", SCRAP)):
        (tmp_path / name / "tests").mkdir(parents=True)
        (tmp_path / name / "a.py").write_bytes(text)
    (tmp_path / "good" / "LICENSE").write_text("Permission is hereby granted, free of charge")
    (tmp_path / "good" / "tests" / "test_a.py").write_bytes(GOOD)
    store = Store(tmp_path / "corpus")
    said: list[str] = []
    both = [str(tmp_path / name) for name in ("good", "scrap")]
    harvest(store, both, licences=("any",), say=said.append, least_quality=4)
    records = {record.key: record for record in store.stage("harvest")}
    assert records["source:good"].kept
    assert records["source:scrap"].reason == "below the quality asked for"
    assert "files that do not parse" in records["source:scrap"].detail
    assert not any(key.startswith("scrap:") for key in records), "none of its files is taken"
    assert any("scrap: 1 of 6 signs" in line for line in said)
