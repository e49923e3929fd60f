import pytest

from kernelsmith.corpus.store import Record, Store
from kernelsmith.errors import UsageError


def test_the_last_record_of_a_key_counts(tmp_path):
    stage = Store(tmp_path).stage("run")
    stage.add(Record(key="a", reason="too large"))
    stage.add(Record(key="a"))
    stage.close()
    assert [record.kept for record in stage] == [True]


def test_a_line_that_a_kill_cut_off_is_passed_and_written_again(tmp_path):
    store = Store(tmp_path)
    stage = store.stage("run")
    stage.add(Record(key="a"))
    stage.close()
    with stage.path.open("a") as file:
        file.write('{"key": "b", "reas')
    again = store.stage("run")
    assert again.done() == {"a"}
    again.add(Record(key="b"))
    again.close()
    assert again.done() == {"a", "b"}


def test_reasons_are_counted_the_commonest_first(tmp_path):
    store = Store(tmp_path)
    stage = store.stage("extract")
    for key, reason in (("a", ""), ("b", "x"), ("c", "y"), ("d", "y")):
        stage.add(Record(key=key, reason=reason))
    stage.close()
    count = store.count("extract")
    assert (count.seen, count.kept, count.reasons) == (4, 1, (("y", 2), ("x", 1)))


def test_a_stage_that_has_not_run_is_named(tmp_path):
    with pytest.raises(UsageError, match="run 'kernelsmith corpus extract' first"):
        Store(tmp_path).need("extract")


def test_text_that_is_no_unicode_is_stored_all_the_same(tmp_path):
    stage = Store(tmp_path).stage("run")
    stage.add(Record(key="a", detail="\udcff"))
    stage.close()
    assert stage.done() == {"a"}
