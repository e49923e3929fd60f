"""A question that finds no memory is asked once more, with nothing kept at hand."""

import pytest
import torch

from kernelsmith.evaluate.worker.cuda.again import asked_again
from kernelsmith.evaluate.worker.cuda.reference import DeviceReference


def asked(name: str, *, fails: int):
    """Ask a verb that finds no memory so many times; say what was kept at each try."""
    kept, tries = ["a set", "an answer"], []

    def verb(message, fds):
        tries.append(list(kept))
        if len(tries) <= fails:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return {"said": "well"}

    verbs = dict.fromkeys(DeviceReference.__new__(DeviceReference)._verbs(), verb)
    try:
        asked_again(verbs, kept.clear)[name]({}, [])
    except torch.OutOfMemoryError:
        return tries, False
    return tries, True


def test_what_was_kept_makes_room_and_the_answer_is_given():
    assert asked("answers", fails=1) == ([["a set", "an answer"], []], True)


def test_nothing_is_let_go_where_there_is_memory():
    assert asked("answers", fails=0) == ([["a set", "an answer"]], True)


def test_who_finds_none_then_either_says_so():
    tries, answered = asked("examine", fails=9)
    assert (len(tries), answered) == (2, False)


@pytest.mark.parametrize("name", ["weights", "renew", "overwrite", "arrange"])
def test_what_changes_something_is_not_done_twice(name):
    tries, answered = asked(name, fails=9)
    assert (len(tries), answered) == (1, False)
