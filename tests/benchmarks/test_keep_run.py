"""A run among the results: all but what is not ours to hand on."""

from benchmarks.keep_run import without

SOURCE = 'class Model:\n    """\n    What it is for, in a line.\n    """\n'


def test_the_source_is_replaced_wherever_it_stands_alone_and_nothing_else_is():
    kept = {"task": {"source": SOURCE}, "steps": [1, None, "# another file"]}
    found = without(kept, SOURCE)
    assert isinstance(found, dict)
    assert found["task"]["source"].startswith("not kept, sha256 ")
    assert found["steps"] == kept["steps"]


def test_what_a_candidate_took_over_of_the_tasks_words_is_not_kept():
    taken = 'class ModelNew:\n    """\n    What it is for, in a line.\n    """\n    fast = True\n'
    found = str(without(taken, SOURCE))
    assert "What it is for" not in found
    assert found.endswith("fast = True\n")
