"""What a confined child cannot see, reach or use up."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sandbox_children import Spawn, ask

from kernelsmith.evaluate.sandbox.child import Child
from kernelsmith.evaluate.sandbox.errors import ChildDied
from kernelsmith.evaluate.sandbox.limits import Limits
from kernelsmith.evaluate.sandbox.process import Zygote

MIB = 1 << 20
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root gets another uid")


def test_this_machine_gives_full_protection_and_says_so(child: Child):
    assert child.level.name == "full"
    assert child.level.describe().startswith("full: namespaces ")
    assert dict(child.level.missing) == {}


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"])
def test_there_is_no_network(child: Child, family: str):
    assert ask(child, f"import socket; socket.socket(socket.{family})") == "PermissionError"


def test_the_network_namespace_holds_nothing_but_loopback(child: Child):
    devices = ask(child, "value = open('/proc/net/dev').read()")
    assert [line.split(":")[0].strip() for line in str(devices).splitlines()[2:]] == ["lo"]


def test_the_judges_files_do_not_exist(child: Child, tmp_path: Path):
    secret = tmp_path / "reference.py"
    secret.write_text("the answers")
    os.chmod(tmp_path, 0o755)
    code = "import os; value = [os.path.exists(p) for p in {!r}]"
    hidden = [str(secret), __file__, "/etc/shadow", "/etc/hostname", "/home", "/var", "/run"]
    assert ask(child, code.format(hidden)) == [False] * len(hidden)


def shown_in_tmp() -> list[str]:
    """What a child's own /tmp holds from the start: only ways to a checkout that lies there."""
    package = Path(sys.modules["kernelsmith"].__file__ or "").parent
    paths = [Path(sys.prefix), Path(sys.base_prefix), package]
    return sorted({path.parts[2] for path in paths if path.parts[1] == "tmp"})


def test_only_the_system_the_interpreter_and_the_package_are_there(child: Child):
    seen = ask(child, "import os; value = sorted(os.listdir('/'))")
    given = {"bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "tmp", "usr"}
    package = Path(sys.modules["kernelsmith"].__file__ or "").parent
    paths = [Path(sys.prefix), Path(sys.base_prefix), package]
    assert set(seen) <= given | {path.parts[1] for path in paths}
    assert ask(child, "import os; value = os.listdir('/tmp')") == shown_in_tmp()


def test_a_readable_path_is_visible_and_cannot_be_written(spawn: Spawn, tmp_path: Path):
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "file").write_text("hello")
    child = spawn(readable=[shown])
    assert ask(child, f"value = open('{shown}/file').read()") == "hello"
    assert ask(child, f"open('{shown}/file', 'a')") in {"OSError", "PermissionError"}
    assert ask(child, f"import os; value = os.listdir('{tmp_path}')") == ["shown"]


@pytest.mark.parametrize("place", ["/", "/usr", "/etc", "/dev", sys.prefix, "/proc/self", "/root"])
def test_nothing_outside_the_scratch_can_be_written(child: Child, place: str):
    assert ask(child, f"open('{place}/new', 'w')") in {
        "OSError",
        "PermissionError",
        "FileNotFoundError",
    }


def test_a_full_scratch_is_an_error_and_disappears_with_the_child(spawn: Spawn):
    child = spawn(limits=Limits(scratch_bytes=8 * MIB))
    fill = """
        for name in range(4):
            with open(f"/tmp/kernelsmith-fill-{name}", "wb", buffering=0) as file:
                for _ in range(4):
                    file.write(bytes(1 << 20))
    """
    assert ask(child, fill) == "OSError"
    assert "No space left" in child.output
    assert ask(spawn(), "import os; value = os.listdir('/tmp')") == shown_in_tmp()
    assert not list(Path("/tmp").glob("kernelsmith-fill-*"))


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.fork()",
        "import os; os.execv('/bin/true', ['true'])",
        "import os; os.posix_spawn('/bin/true', ['true'], {})",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true') == 0 or os.fork()",
    ],
)
def test_no_process_and_no_program_can_be_started(child: Child, code: str):
    assert ask(child, code) == "PermissionError"


def test_a_fork_bomb_makes_no_second_process(child: Child):
    bomb = """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        value = [libc.fork() for _ in range(100)] + [libc.syscall(57) for _ in range(100)]
    """
    assert ask(child, bomb) == [-1] * 200


def test_threads_are_limited(spawn: Spawn):
    child = spawn(limits=Limits(threads=16))
    code = """
        import threading, time
        for value in range(64):
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    """
    assert ask(child, code) == "RuntimeError"
    assert len(child.threads()) <= 16


def test_a_memory_bomb_is_an_error_inside(spawn: Spawn):
    child = spawn(limits=Limits(memory_bytes=256 * MIB))
    assert ask(child, "value = len(bytes(1 << 30))") == "MemoryError"
    assert ask(child, "value = len(bytes(64 << 20))") == 64 * MIB


def test_the_child_is_the_first_to_go_when_memory_runs_out(child: Child):
    assert Path(f"/proc/{child.pid}/oom_score_adj").read_text() == "1000\n"
    assert ask(child, "open('/proc/self/oom_score_adj', 'w')") in {"OSError", "PermissionError"}


def test_a_gigabyte_of_output_ends_the_child_and_keeps_a_tail(spawn: Spawn):
    child = spawn(limits=Limits(output_bytes=4 * MIB))
    code = "import os\nfor _ in range(1024): os.write(1, b'spam' * (1 << 18))"
    with pytest.raises(ChildDied, match="more than 4194304 bytes of output") as caught:
        ask(child, code)
    assert caught.value.by_judge
    assert len(caught.value.output) == 16 << 10
    assert child.output_count < 5 * MIB


def test_the_environment_is_scrubbed(monkeypatch: pytest.MonkeyPatch, child: Child):
    seen = ask(child, "import os; value = dict(os.environ)")
    assert isinstance(seen, dict)
    assert seen["HOME"] == seen["TMPDIR"] == "/tmp"
    assert not {name for name in seen if name.startswith(("PYTEST", "PYTHON", "USER", "SSH"))}


def test_the_descriptors_are_the_standard_ones_and_the_control_socket(child: Child):
    code = """
        import os
        value = {}
        for name in os.listdir("/proc/self/fd"):
            try:
                value[name] = os.readlink(f"/proc/self/fd/{name}").split(":")[0]
            except FileNotFoundError:
                pass
    """
    assert ask(child, code) == {"0": "/dev/null", "1": "pipe", "2": "pipe", "3": "socket"}


def test_a_child_sees_no_process_but_itself(spawn: Spawn):
    first, second = spawn(), spawn()
    code = "import os; value = [name for name in os.listdir('/proc') if name.isdigit()]"
    assert ask(first, code) == ask(second, code) == ["1"]
    assert ask(first, f"import os; os.kill({second.pid}, 9)") == "PermissionError"
    assert ask(second, "value = 1") == 1


@needs_root
def test_the_child_is_another_user_without_any_capability(child: Child, zygote: Zygote):
    status = Path(f"/proc/{child.pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert "0" not in fields["Uid"].split()
    assert fields["Groups"].strip() == ""
    assert {fields[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert fields["NoNewPrivs"] == "1"
    assert fields["Seccomp"] == "2"


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("ptrace", "0, 0, 0, 0"),
        ("mount", "b'none', b'/tmp', b'tmpfs', 0, 0"),
        ("unshare", "0x10000000"),
        ("prctl", "1, 0"),
        ("prctl", "4, 0"),
        ("sched_setaffinity", "0, 8, b'\\xff' * 8"),
        ("setpriority", "0, 0, 0"),
        ("socketpair", "1, 1, 0, b'12345678'"),
        ("timer_create", "0, 0, b'12345678'"),
        ("fcntl", "0, 10, 18"),
        ("memfd_create", "b'x', 0"),
        ("process_vm_readv", "1, 0, 0, 0, 0, 0"),
    ],
)
def test_a_dangerous_call_answers_that_it_is_not_permitted(child: Child, call: str, arguments: str):
    code = f"""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        value = [libc.{call}({arguments}), ctypes.get_errno()]
    """
    assert ask(child, code) == [-1, 1]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the other entry is x86's")
@pytest.mark.parametrize("number", [0x40000000 + 57, 425, 9999])
def test_other_call_tables_and_unknown_calls_lead_nowhere(child: Child, number: int):
    code = f"""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        value = [libc.syscall({number}, 0, 0), ctypes.get_errno()]
    """
    answer = ask(child, code)
    assert answer in ([-1, 1], [-1, 38])


def test_the_host_name_is_not_the_machines(child: Child):
    assert ask(child, "import os; value = os.uname().nodename") == "sandbox"
    assert os.uname().nodename != "sandbox"


def test_two_children_do_not_share_their_random_numbers(spawn: Spawn):
    code = "import random; value = random.random()"
    assert ask(spawn(), code) != ask(spawn(), code)


def test_a_child_runs_on_the_cores_it_was_given(spawn: Spawn):
    core = max(os.sched_getaffinity(0))
    assert ask(spawn(cores=[core]), "import os; value = list(os.sched_getaffinity(0))") == [core]


def test_mounts_stay_inside(child: Child):
    own = Path("/proc/self/mountinfo").read_text()
    seen = ask(child, "value = open('/proc/self/mountinfo').read()")
    assert "/dev/shm" in str(seen)
    assert "size=262144k" in str(seen)
    assert "nr_inodes=16384" not in own


def test_the_judge_needs_no_torch_to_use_the_sandbox():
    code = "import sys, kernelsmith.evaluate.sandbox.process; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
