"""Lines of ours before a file's own: where Python lets them stand."""

import pytest

from kernelsmith.bench.beginning import begun_with

HEAD = "first = 1\n"
FUTURE = "from __future__ import annotations"


def the_names(source):
    names: dict = {}
    exec(compile(begun_with(HEAD, source), "begun.py", "exec"), names)
    return names


@pytest.mark.parametrize(
    "source",
    [
        "second = first\n",
        f"{FUTURE}\nsecond = first\n",
        f"# a comment\n\n{FUTURE}  # another\n\n{FUTURE}\nsecond = first\n",
        f'"""A docstring\nof two lines."""\n\n{FUTURE}\nsecond = first\n',
        f'"""ä€"""; {FUTURE}; second = (\n    first)\n',
        f"{FUTURE}; from __future__ import division\nsecond = first\n",
        "from __future__ import (\n    annotations,\n    division,\n)\n\n\nsecond = first\n",
        f'"""A form feed \f and \u2028."""\n{FUTURE}\n\f\nsecond = first\n',
        f"{FUTURE}\r\nsecond = first\r\n",
    ],
)
def test_ours_run_before_all_of_the_files_own(source):
    assert the_names(source)["second"] == 1


def test_a_docstring_stays_one_and_the_future_holds():
    names = the_names(f'"""What it does."""\n{FUTURE}\n\ndef f(x: nowhere): pass\nsecond = first\n')
    assert names["__doc__"] == "What it does."
    assert names["f"].__annotations__ == {"x": "nowhere"}


@pytest.mark.parametrize("source", [FUTURE, '"""Nothing else."""', ""])
def test_a_file_with_nothing_of_its_own_is_begun_all_the_same(source):
    assert the_names(source)["first"] == 1


def test_a_file_without_either_is_only_put_behind():
    assert begun_with(HEAD, "x = 1\n") == f"{HEAD}x = 1\n"
    assert begun_with("", f"{FUTURE}\n") == f"{FUTURE}\n"
