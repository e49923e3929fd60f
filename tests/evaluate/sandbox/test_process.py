"""How the judge keeps the upper hand over its children and its zygote."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from sandbox_children import HERE, INTERPRET, Spawn, a_zygote, ask

from kernelsmith.errors import EvaluationLost, UsageError
from kernelsmith.evaluate.sandbox.child import Child
from kernelsmith.evaluate.sandbox.errors import (
    BadAddress,
    ChildBroken,
    ChildDied,
    ChildTimedOut,
)
from kernelsmith.evaluate.sandbox.process import Zygote


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def gone_soon(*pids: int, within_s: float = 5.0) -> bool:
    deadline = time.monotonic() + within_s
    while any(map(exists, pids)) and time.monotonic() < deadline:
        time.sleep(0.005)
    return not any(map(exists, pids))


def test_an_infinite_loop_times_out_and_is_dead(child: Child):
    with pytest.raises(ChildTimedOut, match=r"within 0\.(2|1\d*) s"):
        ask(child, "while True: pass", timeout_s=0.2)
    assert not exists(child.pid)


def test_a_segfault_is_named_and_leaves_a_traceback(child: Child):
    with pytest.raises(ChildDied, match="SIGSEGV") as caught:
        ask(child, "import ctypes; ctypes.string_at(0)")
    assert caught.value.signal_name == "SIGSEGV"
    assert not caught.value.by_judge
    assert "Fatal Python error: Segmentation fault" in caught.value.output


def test_an_exit_code_is_reported(child: Child):
    with pytest.raises(ChildDied, match="exit code 7") as caught:
        ask(child, "import os; os._exit(7)")
    assert caught.value.exit_code == 7


def test_an_abort_leaves_its_reason_in_the_output(child: Child):
    with pytest.raises(ChildDied) as caught:
        ask(child, "import os; os.abort()")
    assert "Fatal Python error: Aborted" in caught.value.output


def test_an_entry_that_raises_ends_with_its_traceback(zygote: Zygote):
    child = zygote.spawn(entry="sandbox_entries:fail")
    with pytest.raises(ChildDied, match="exit code 1") as caught:
        child.receive(5.0)
    assert "RuntimeError: this entry fails" in caught.value.output


def test_a_child_killed_from_outside_is_reported_as_such(child: Child):
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(ChildDied, match="SIGKILL") as caught:
        ask(child, "value = 1")
    assert not caught.value.by_judge


def test_a_child_that_hangs_up_is_killed(child: Child):
    with pytest.raises(ChildDied, match="hung up") as caught:
        ask(child, "control.close()\nwhile True: pass")
    assert caught.value.by_judge
    assert not exists(child.pid)


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x02[]",
        b"\x00\x00\x00\x02{]",
        b"\x00\x00\x00\x02\xff\xfe",
        b"\x00\x00\x00\x0e" + rb'{"a":"\ud800"}',
        (100_000).to_bytes(4, "big") + b"[" * 100_000,
    ],
)
def test_what_is_no_message_is_the_childs_fault(child: Child, sent: bytes):
    with pytest.raises(ChildBroken):
        ask(child, f"control.sendall({sent!r})")
    assert not exists(child.pid)


def test_a_child_cannot_plant_descriptors_in_the_judge(child: Child):
    before = len(os.listdir("/proc/self/fd"))
    code = """
        import socket
        socket.send_fds(control, [b"\\x00\\x00\\x00\\x0b" + b'{"value":1}'], [0, 1, 2])
    """
    assert ask(child, code) == 1
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_child_that_does_not_listen_cannot_hold_up_the_judge(child: Child):
    child.post({"code": "while True: pass"})
    with pytest.raises(ChildTimedOut):
        child.post({"filler": "x" * (4 << 20)}, timeout_s=0.2)


def test_killing_twice_is_killing_once_and_leaves_no_descriptor(zygote: Zygote):
    before = len(os.listdir("/proc/self/fd"))
    child = zygote.spawn(entry=INTERPRET)
    child.kill()
    child.kill()
    assert not child.alive
    assert len(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ChildDied):
        child.post({})


def test_descriptors_travel_to_the_child(spawn: Spawn, tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("seen through a descriptor")
    with file.open() as opened:
        child = spawn(fds=[opened.fileno()])
        code = "import os; value = os.pread({}[0], 100, 0).decode()"
        assert ask(child, code.format("fds")) == "seen through a descriptor"
        assert ask(child, code.format("passed"), fds=(opened.fileno(),)) == (
            "seen through a descriptor"
        )


def test_memory_is_read_and_written_from_outside(child: Child):
    code = """
        import builtins, ctypes
        builtins.kept = ctypes.create_string_buffer(b"x" * (1 << 20))
        value = ctypes.addressof(builtins.kept)
    """
    address = ask(child, code)
    assert isinstance(address, int)
    child.write(address + 10, b"from outside")
    assert child.read(address, 1 << 20)[:30] == b"x" * 10 + b"from outside" + b"x" * 8
    assert ask(child, "value = kept.raw[10:22].decode()") == "from outside"
    into = bytearray(64)
    child.read_into(address, memoryview(into))
    assert into[10:22] == b"from outside"


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.kill(os.getpid(), 9)",
        "import signal; signal.raise_signal(9)",
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))",
    ],
)
def test_a_child_cannot_make_its_end_look_like_the_machines_fault(child: Child, code: str):
    assert ask(child, code) in {"PermissionError", "OSError", "ValueError"}
    assert ask(child, "import resource; value = resource.getrlimit(resource.RLIMIT_CPU)[0]") == -1


def test_a_child_that_ends_is_noticed_though_its_socket_stays_open(spawn: Spawn):
    child = spawn()
    ours, theirs = socket.socketpair()
    code = "import socket; socket.send_fds(socket.socket(fileno=passed[0]), [b'x'], [3])"
    ask(child, code, fds=(theirs.fileno(),))
    _, kept, _, _ = socket.recv_fds(ours, 1, 1)
    with pytest.raises(ChildDied, match="exit code 3"):
        ask(child, "import os; os._exit(3)")
    for fd in kept:
        os.close(fd)
    ours.close()
    theirs.close()


@pytest.mark.parametrize("address", [0, 8, 1 << 63, (1 << 64) - 1, 1 << 70, -5])
def test_a_bad_address_is_an_error_and_the_child_lives(child: Child, address: int):
    with pytest.raises(BadAddress):
        child.read(address, 4096)
    assert ask(child, "value = 1") == 1


def test_a_range_that_ends_in_nothing_is_a_bad_address(child: Child):
    code = """
        import builtins, mmap, ctypes
        builtins.page = mmap.mmap(-1, 8192)
        start = ctypes.addressof(ctypes.c_char.from_buffer(page))
        assert ctypes.CDLL(None).munmap(ctypes.c_void_p(start + 4096), 4096) == 0
        value = start
    """
    start = ask(child, code)
    assert isinstance(start, int)
    assert child.read(start, 4096) == bytes(4096)
    with pytest.raises(BadAddress, match="4096 bytes into 8192"):
        child.read(start, 8192)


COUNT = """
    import builtins, ctypes, threading
    builtins.counts = (ctypes.c_long * 3)()
    def spin(slot):
        while True:
            counts[slot] += 1
    for slot in range(3):
        threading.Thread(target=spin, args=(slot,), daemon=True).start()
    value = ctypes.addressof(counts)
"""


def test_a_frozen_child_stands_still_and_a_thawed_one_goes_on(child: Child):
    address = ask(child, COUNT)
    assert isinstance(address, int)
    assert len(child.threads()) == 4
    child.freeze()
    assert child.frozen
    before = child.read(address, 24)
    time.sleep(0.05)
    assert child.read(address, 24) == before
    child.thaw()
    assert ask(child, "value = 1") == 1
    deadline = time.monotonic() + 10  # on a busy machine its threads may have to wait for a core
    while child.read(address, 24) == before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert child.read(address, 24) != before
    assert not child.frozen


class Wanted:
    """Something shared that others want once, in the middle of a request."""

    def __init__(self, child: Child, address: int, after_s: float) -> None:
        self._child, self._address = child, address
        self._from = time.monotonic() + after_s
        self.stood_still: bool | None = None

    @property
    def is_wanted(self) -> bool:
        return self.stood_still is None and time.monotonic() > self._from

    def step_aside(self) -> None:
        before = self._child.read(self._address, 24)
        time.sleep(2.6)
        self.stood_still = self._child.frozen and self._child.read(self._address, 24) == before


def test_a_child_stands_still_while_others_have_what_its_judge_holds(child: Child):
    address = ask(child, COUNT)
    assert isinstance(address, int)
    way = Wanted(child, address, after_s=0.1)
    child.way = way
    # Its own time is not that of the others: 2.6 s of 2.5 would be gone.
    assert ask(child, "import time; time.sleep(0.3); value = 5", timeout_s=2.5) == 5
    assert way.stood_still
    assert not child.frozen


def test_a_frozen_child_cannot_have_itself_woken(child: Child):
    code = """
        import ctypes, signal, time
        libc = ctypes.CDLL(None, use_errno=True)
        event = (ctypes.c_int * 16)(0, 0, signal.SIGCONT, 0)
        timer = ctypes.c_void_p()
        value = [libc.timer_create(1, event, ctypes.byref(timer)),
                 libc.fcntl(3, 10, signal.SIGCONT),
                 libc.mq_notify(0, event)]
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        signal.signal(signal.SIGALRM, lambda *_: None)
    """
    assert ask(child, code) == [-1, -1, -1]
    child.freeze()
    time.sleep(0.1)
    assert child.frozen


def test_a_frozen_child_can_be_killed(child: Child):
    child.freeze()
    child.kill()
    assert not exists(child.pid)


def test_freezing_a_dead_child_says_that_it_died(child: Child):
    os.kill(child.pid, signal.SIGKILL)
    gone_soon(child.pid, within_s=0.05)
    with pytest.raises(ChildDied, match="SIGKILL"):
        child.freeze()


def test_the_zygote_has_one_thread_and_touched_no_device(zygote: Zygote, child: Child):
    assert len(os.listdir(f"/proc/{zygote.pid}/task")) == 1
    assert len(child.threads()) == 1
    assert ask(child, "import torch; value = torch.cuda.is_initialized()") is False


def test_a_zygote_with_a_second_thread_refuses_to_start(tmp_path: Path):
    (tmp_path / "threading_on_import.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    )
    with pytest.raises(EvaluationLost, match="2 threads"):
        Zygote(preload=["threading_on_import"], search_path=[tmp_path])


def test_a_zygote_that_cannot_load_its_modules_says_why():
    with pytest.raises(EvaluationLost, match="No module named 'no_such_module'"):
        Zygote(preload=["no_such_module"])


@pytest.mark.parametrize(
    "entry", ["sandbox_entries:nothing", "not_loaded:run", "sandbox_entries", "os:environ"]
)
def test_an_entry_that_is_not_there_is_the_callers_mistake(zygote: Zygote, entry: str):
    with pytest.raises(UsageError):
        zygote.spawn(entry=entry)


@pytest.mark.parametrize("path", ["/absent", "relative", "/", "/usr/.."])
def test_a_path_that_cannot_be_shown_is_the_callers_mistake(zygote: Zygote, path: str):
    with pytest.raises(UsageError, match="cannot be shown"):
        zygote.spawn(entry=INTERPRET, readable=[Path(path)])


def test_when_the_zygote_is_killed_the_evaluation_is_lost_and_a_new_one_works():
    with a_zygote() as first:
        child = first.spawn(entry=INTERPRET)
        os.kill(first.pid, signal.SIGKILL)
        assert gone_soon(child.pid)
        with pytest.raises(EvaluationLost):
            ask(child, "value = 1")
        assert not first.alive
        with pytest.raises(EvaluationLost):
            first.spawn(entry=INTERPRET)
    with a_zygote() as second, second.spawn(entry=INTERPRET) as child:
        assert ask(child, "value = 1") == 1


def test_closing_the_zygote_ends_its_children():
    with a_zygote() as zygote:
        child = zygote.spawn(entry=INTERPRET)
        child.post({"code": "while True: pass"})
    assert not exists(zygote.pid)
    assert gone_soon(child.pid)


JUDGE = """
    import sys, time
    from pathlib import Path
    from kernelsmith.evaluate.sandbox.process import Zygote
    zygote = Zygote(preload=["sandbox_entries"], search_path=[Path(sys.argv[1])])
    spinning = zygote.spawn(entry="sandbox_entries:interpret")
    spinning.post({"code": "while True: pass"})
    frozen = zygote.spawn(entry="sandbox_entries:interpret")
    frozen.freeze()
    print([zygote.pid, spinning.pid, frozen.pid], flush=True)
    time.sleep(60)
"""


def files() -> set[str]:
    return {*os.listdir("/tmp"), *os.listdir("/dev/shm")}


def test_a_killed_judge_leaves_nothing_behind():
    before = files()
    source = Path(sys.modules["kernelsmith"].__file__ or "").parents[1]
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(JUDGE), str(HERE)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(source)},
    ) as judge:
        assert judge.stdout is not None
        pids = json.loads(judge.stdout.readline())
        assert all(map(exists, pids))
        made = files() - before  # by this judge, or by whoever else is at work here
        judge.kill()
    assert gone_soon(*pids)
    until = time.monotonic() + 30
    while made & files() and time.monotonic() < until:
        time.sleep(0.1)
    assert not made & files()


def test_a_library_made_of_memory_is_loaded(child: Child, tmp_path: Path):
    source = tmp_path / "answer.c"
    source.write_text("int answer(void) { return 42; }")
    built = tmp_path / "answer.so"
    subprocess.run(["gcc", "-shared", "-o", built, source], check=True)
    fd = os.memfd_create("answer")
    try:
        os.write(fd, built.read_bytes())
        code = "import ctypes; value = ctypes.CDLL(f'/proc/self/fd/{passed[0]}').answer()"
        assert ask(child, code, fds=(fd,)) == 42
    finally:
        os.close(fd)


def test_the_thread_id_that_libc_keeps_is_the_childs_own(child: Child):
    code = """
        import ctypes, os
        libc = ctypes.CDLL(None)
        libc.pthread_self.restype = ctypes.c_void_p
        mask = ctypes.create_string_buffer(128)
        value = libc.pthread_getaffinity_np(ctypes.c_void_p(libc.pthread_self()), 128, mask)
    """
    assert ask(child, code) == 0


def test_a_message_of_megabytes_passes_both_ways(child: Child):
    reply = child.call({"code": "value = 'x' * (7 << 20)", "pad": "y" * (7 << 20)}, timeout_s=10)
    assert reply == {"value": "x" * (7 << 20)}


def test_packages_that_are_named_can_be_imported_and_not_changed(tmp_path, monkeypatch):
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "elsewhere.py").write_text("ANSWER = 42\n")
    for each in (folder, *folder.parents):
        if each.stat().st_uid == os.getuid() and each != Path("/"):
            each.chmod(each.stat().st_mode | 0o055)
    monkeypatch.setenv("KERNELSMITH_PACKAGES", str(folder))
    with a_zygote() as zygote, zygote.spawn(entry=INTERPRET) as child:
        assert ask(child, "import elsewhere; value = elsewhere.ANSWER") == 42
        changed = f"open({str(folder / 'elsewhere.py')!r}, 'w')"
        assert ask(child, changed) in ("OSError", "PermissionError")


def test_a_folder_of_packages_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELSMITH_PACKAGES", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="nowhere', which is no folder"):
        a_zygote()
