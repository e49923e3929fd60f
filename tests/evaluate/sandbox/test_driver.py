"""A child that may use a device: what its driver needs, and nothing beyond that."""

import os
from pathlib import Path

import pytest
from sandbox_children import Spawn, a_zygote, ask, spawner

from kernelsmith.evaluate.sandbox.child import Child
from kernelsmith.evaluate.sandbox.order import Profile
from kernelsmith.evaluate.sandbox.seccomp import denied

HARMLESS = [Path("/dev/null")]
"""Any device file makes a child one with a driver."""
NAME_A_THREAD = """
    import os
    place = f"/proc/self/task/{os.getpid()}/comm"
    with open(place, "w") as file:
        file.write("cuda-EvtHandlr")
    value = open(place).read().strip()
"""
_SYS_RESOURCE = 1 << 24


def _may_set_a_floor() -> bool:
    (line,) = [each for each in Path("/proc/self/status").read_text().splitlines()
               if each.startswith("CapEff")]  # fmt: skip
    return bool(int(line.split()[1], 16) & _SYS_RESOURCE)


@pytest.fixture
def driven(spawn: Spawn) -> Child:
    """A child with a device."""
    return spawn(devices=HARMLESS)


def test_a_device_costs_no_level(driven: Child):
    assert driven.level.name == "full"
    assert dict(driven.level.missing) == {}


def test_a_local_socket_can_be_made_bound_and_listened_on(driven: Child):
    code = """
        import socket
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("/tmp/here")
            made.listen()
            value = made.family == socket.AF_UNIX
    """
    assert ask(driven, code) is True


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK"])
def test_a_socket_of_any_other_family_cannot(driven: Child, family: str):
    code = f"import socket; socket.socket(socket.{family}, socket.SOCK_DGRAM)"
    assert ask(driven, code) == "PermissionError"


def test_nothing_can_be_connected_to(driven: Child):
    code = """
        import socket
        listening, calling = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        listening.bind("/tmp/there")
        listening.listen()
        calling.connect("/tmp/there")
    """
    assert ask(driven, code) == "PermissionError"
    assert ask(driven, code.replace("/tmp/there", "\\0abstract")) == "PermissionError"


def test_nothing_can_be_sent_to_a_name(driven: Child):
    code = """
        import socket
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
            made.sendto(b"hello", "\\0anybody")
    """
    assert ask(driven, code) in {"PermissionError", "ConnectionRefusedError"}


def test_there_is_still_no_network(driven: Child):
    devices = ask(driven, "value = open('/proc/net/dev').read()")
    assert [line.split(":")[0].strip() for line in str(devices).splitlines()[2:]] == ["lo"]


def test_a_driver_may_name_its_threads(driven: Child):
    assert ask(driven, NAME_A_THREAD) == "cuda-EvtHandlr"


def test_a_child_without_a_device_may_not(child: Child):
    assert ask(child, NAME_A_THREAD) in {"OSError", "PermissionError"}


@pytest.mark.parametrize(
    "place",
    ["/proc/self/oom_score_adj", "/proc/self/comm", "/proc/self/timerslack_ns",
     "/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory", "/sys/devices/new"],
)  # fmt: skip
def test_the_rest_of_proc_and_sys_stays_closed(driven: Child, place: str):
    assert ask(driven, f"open({place!r}, 'w').write('1')") in {"OSError", "PermissionError"}


@pytest.mark.skipif(
    not _may_set_a_floor(),
    reason="without CAP_SYS_RESOURCE there is no floor (docs/threat-model.md says so)",
)
def test_its_place_in_the_queue_of_the_oom_killer_cannot_be_taken_back(driven: Child):
    code = """
        import os
        with open(f"/proc/self/task/{os.getpid()}/oom_score_adj", "w") as file:
            file.write("0")
    """
    assert ask(driven, code) == "PermissionError"


def test_the_device_is_there_and_its_neighbours_are_not(spawn: Spawn):
    seen = ask(spawn(devices=[Path("/dev/tty")]), "import os; value = sorted(os.listdir('/dev'))")
    given = {"fd", "full", "null", "random", "shm", "urandom", "zero"}
    assert set(seen) == {*given, "tty"}


def test_without_a_root_of_its_own_the_same_holds():
    with a_zygote(without=("namespaces",)) as zygote:
        spawned = spawner(zygote)
        driven = next(spawned)(devices=HARMLESS)
        assert ask(driven, NAME_A_THREAD) == "cuda-EvtHandlr"
        assert ask(driven, "import socket; socket.socket(socket.AF_UNIX).close(); value = 1") == 1
        assert ask(driven, "import socket; socket.socket()") == "PermissionError"
        other = f"open('/proc/{os.getpid()}/task/{os.getpid()}/comm', 'w')"
        assert ask(driven, other) == "PermissionError"
        next(spawned, None)


@pytest.mark.parametrize("profile", [Profile.RUN, Profile.BUILD])
def test_a_driver_gets_three_calls_more_and_no_other(profile: Profile):
    assert {*denied(profile)} - {*denied(profile, driver=True)} == {"bind", "listen", "socket"}
    assert "connect" in denied(profile, driver=True)


WHY = {"pid": "the driver takes two processes of the same number for one and the same"}


@pytest.fixture
def numbered(spawn: Spawn) -> Child:
    """A child that has the machine's process numbers."""
    return spawn(without=WHY)


def test_a_protection_can_be_left_out_for_one_child_with_the_reason(numbered: Child, child: Child):
    assert "pid" not in numbered.level.namespaces
    assert "mount" in numbered.level.namespaces
    assert dict(numbered.level.missing) == WHY
    assert numbered.level.name == "reduced"
    assert f"missing pid ({WHY['pid']})" in numbered.level.describe()
    assert "pid" in child.level.namespaces, "others keep theirs"


def test_without_a_process_namespace_it_has_the_number_that_the_judge_knows(
    numbered: Child, child: Child
):
    code = "import os; value = os.getpid()"
    assert ask(numbered, code) == numbered.pid
    assert ask(child, code) != child.pid


def test_without_a_process_namespace_other_processes_are_out_of_reach(numbered: Child):
    assert ask(numbered, f"import os; os.kill({os.getpid()}, 0)") == "PermissionError"
    environment = ask(numbered, f"value = open('/proc/{os.getpid()}/environ').read()")
    assert environment in {"PermissionError", "FileNotFoundError"}
