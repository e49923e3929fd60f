"""A process that has torch's compiler loaded, and what it forks; all of it real."""

import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from kernelsmith.propose.rules.compiler import nursery
from kernelsmith.propose.rules.compiler.nursery import ADDRESS, NONE, REPLIED, Gone, ask, run

MODULE = """
import os
import sys
import time


def main():
    what, *more = sys.argv[1:]
    if what == "say":
        import torch
        print(os.getppid(), os.getcwd(), os.environ.get("WORD"), *more, torch.compile is not None)
        print("aside", file=sys.stderr)
    elif what == "echo":
        print(sys.stdin.read())
    elif what == "fail":
        raise ValueError("no such thing")
    elif what == "exit":
        raise SystemExit(int(more[0]))
    elif what == "sleep":
        print(os.getpid(), flush=True)
        time.sleep(60)


if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    (folder / "asked_for.py").write_text(MODULE)
    return folder


@pytest.fixture
def asks(modules, tmp_path):
    """Asks, and says how it ended and what was replied."""

    def asked(*arguments: str, timeout_s: float = 60.0, stop=None, **more: str):
        path = os.pathsep.join([str(modules), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": path} | more
        ended = run("asked_for", arguments, folder=tmp_path, environment=environment, gpu=True,
                    timeout_s=timeout_s, stop=stop)  # fmt: skip
        return ended, (tmp_path / REPLIED).read_text()

    return asked


@pytest.mark.parametrize("where", ["", NONE])
def test_a_module_runs_where_and_with_what_it_is_asked_to(asks, tmp_path, where):
    ended, said = asks("say", "one", "two", WORD="here", **{ADDRESS: where})
    assert (ended.status, ended.said) == (0, "aside\n")
    assert said.split()[1:] == [str(tmp_path), "here", "one", "two", "True"]


def test_one_process_is_the_parent_of_all(asks):
    first, second = (int(asks("say")[1].split()[0]) for _ in range(2))
    assert first == second != os.getpid()


def test_another_way_of_loading_torch_is_another_process(asks):
    plain, limited = (int(asks("say", **more)[1].split()[0]) for more in ({}, {"OMP_DYNAMIC": "1"}))
    assert plain != limited


@pytest.mark.parametrize("where", ["", NONE])
def test_standard_input_is_the_file_that_was_asked(asks, tmp_path, where):
    (tmp_path / nursery.ASKED).write_text("a question")
    assert asks("echo", **{ADDRESS: where})[1] == "a question\n"


@pytest.mark.parametrize("where", ["", NONE])
@pytest.mark.parametrize(("what", "status"), [(("fail",), 1), (("exit", "3"), 3)])
def test_how_it_failed_is_told(asks, where, what, status):
    ended, _ = asks(*what, **{ADDRESS: where})
    assert ended.status == status
    assert ("no such thing" in ended.said) == (what == ("fail",))


@pytest.mark.parametrize("where", ["", NONE])
def test_what_takes_too_long_is_ended(asks, where):
    asks("exit", "0", **{ADDRESS: where})  # it is loaded now
    ended, said = asks("sleep", timeout_s=3.0, **{ADDRESS: where})
    assert ended.status is None
    assert is_gone(int(said))


def test_another_thread_can_end_it(asks, tmp_path):
    stop = threading.Event()

    def begun():
        return (tmp_path / REPLIED).exists() and (tmp_path / REPLIED).read_text().endswith("\n")

    def stopping():
        until(begun, 30)
        stop.set()

    threading.Thread(target=stopping).start()
    ended, said = asks("sleep", stop=stop)
    assert ended.status is None
    assert is_gone(int(said))


def test_a_nursery_that_died_is_replaced(asks):
    first = int(asks("say")[1].split()[0])
    os.kill(first, signal.SIGKILL)
    assert int(asks("say")[1].split()[0]) != first


def test_who_hangs_up_ends_what_it_has_asked_for(asks, modules, tmp_path):
    asks("say")
    path = os.pathsep.join([str(modules), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    other = tmp_path / "other"
    other.mkdir()
    asked = {"module": "asked_for", "arguments": ["sleep"], "folder": str(other),
             "environment": dict(environment)}  # fmt: skip
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(nursery.address(environment, gpu=True))
        line.sendall(json.dumps(asked).encode() + b"\n")
        replied = other / REPLIED
        assert until(lambda: replied.exists() and replied.read_text().endswith("\n"), 30)
    assert is_gone(int(replied.read_text()))


def test_an_address_that_nobody_answers_is_not_waited_for(tmp_path):
    with pytest.raises(Gone):
        ask(str(tmp_path / "socket"), "asked_for", (), folder=tmp_path, environment={},
            timeout_s=5.0)  # fmt: skip


def until(condition, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(condition())


def is_gone(pid: int) -> bool:
    def ended() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    return until(ended)
