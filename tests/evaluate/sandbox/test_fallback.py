"""What remains when the machine refuses some of the protections."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_children import HERE, Spawn, a_zygote, ask, spawner

from kernelsmith.evaluate.sandbox.level import Level
from kernelsmith.evaluate.sandbox.order import Profile


@pytest.fixture(scope="module")
def plain() -> Iterator[Spawn]:
    """Spawn children without any namespace."""
    with a_zygote(without=("namespaces",)) as zygote:
        yield from spawner(zygote)


def test_without_namespaces_the_level_is_reduced_and_says_why(plain: Spawn):
    level = plain().level
    assert level.name == "reduced"
    assert level.namespaces == ()
    assert "namespaces (switched off by the caller)" in level.describe()


def test_landlock_alone_hides_files(plain: Spawn, tmp_path: Path):
    secret = Path("/var/tmp") / f"kernelsmith-secret-{os.getpid()}"
    secret.write_text("the answers")
    try:
        child = plain()
        assert ask(child, f"value = open({str(secret)!r}).read()") == "PermissionError"
        assert ask(child, "import os; value = os.listdir('/tmp')") == "PermissionError"
        assert ask(child, "value = open('/etc/passwd').read()") == "PermissionError"
        assert ask(child, f"value = open('/proc/{os.getpid()}/environ').read()") == (
            "PermissionError"
        )
    finally:
        secret.unlink()


def test_landlock_alone_leaves_only_the_scratch_writable(plain: Spawn):
    child = plain()
    assert ask(child, "open('/tmp/kernelsmith-outside', 'w')") == "PermissionError"
    assert ask(child, "open('inside', 'w').write('x'); value = open('inside').read()") == "x"
    scratch = Path(str(ask(child, "import os; value = os.getcwd()")))
    assert ask(child, "import tempfile; value = tempfile.gettempdir()") == str(scratch)
    assert scratch.is_dir()
    child.kill()
    assert not scratch.exists()


def test_without_namespaces_other_processes_are_out_of_reach(plain: Spawn):
    child = plain()
    assert ask(child, f"import os; os.kill({os.getpid()}, 0)") == "PermissionError"
    assert ask(child, "import os; os.kill(-1, 0)") == "PermissionError"
    assert ask(child, "import os; os.kill(os.getpid(), 0); value = 1") == 1
    limit = f"import resource; resource.prlimit({os.getpid()}, resource.RLIMIT_CORE, (0, 0))"
    assert ask(child, limit) == "PermissionError"


def test_without_namespaces_there_is_still_no_network_and_no_fork(plain: Spawn):
    child = plain()
    assert ask(child, "import socket; socket.socket()") == "PermissionError"
    assert ask(child, "import os; os.fork()") == "PermissionError"


def test_without_namespaces_what_a_builder_started_dies_with_it(plain: Spawn):
    builder = plain(profile=Profile.BUILD)
    code = """
        import subprocess
        value = [subprocess.Popen(["sleep", "87654"], start_new_session=True).pid
                 for _ in range(3)]
    """
    pids = ask(builder, code)
    assert isinstance(pids, list)
    builder.kill()
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize(
    ("without", "name"),
    [
        (("landlock",), "reduced"),
        (("seccomp",), "reduced"),
        (("mount",), "reduced"),
        (("namespaces", "landlock", "seccomp"), "limits-only"),
    ],
)
def test_the_level_is_named_after_what_is_left(without: tuple[str, ...], name: str):
    with a_zygote(without=without) as zygote:
        level = zygote.measure()
        assert level.name == name
        assert {*without} <= {*level.missing}


def test_a_level_survives_its_journey():
    level = Level(
        namespaces=("mount",),
        landlock_abi=None,
        seccomp=True,
        other_uid=False,
        capabilities_dropped=True,
        rlimits=True,
        missing={"landlock": "Function not implemented"},
    )
    assert Level.from_message(level.to_message()) == level
    assert level.name == "reduced"
    assert level.describe() == (
        "reduced: namespaces mount, seccomp, no capabilities, rlimits; "
        "missing landlock (Function not implemented)"
    )


# The interpreter may lie in a home that is closed to others: open it in a mount namespace.
REACHABLE = """
    set -e
    closed=$1; shift
    if ! setpriv --reuid 61234 --clear-groups --regid 61234 test -x "$closed"; then
        mount --bind "$closed" /mnt
        home=/$(echo "$closed" | cut -d/ -f2)
        mount -t tmpfs -o mode=755 tmpfs "$home"
        mkdir -p "$closed"
        mount --bind /mnt "$closed"
    fi
    exec setpriv --reuid 61234 --regid 61234 --clear-groups --bounding-set=-all --inh-caps=-all "$@"
"""
UNPRIVILEGED = """
    import json, sys
    from pathlib import Path
    from kernelsmith.evaluate.sandbox.process import Zygote
    with Zygote(preload=["sandbox_entries"], search_path=[Path(sys.argv[1])]) as zygote:
        child = zygote.spawn(entry="sandbox_entries:interpret")
        def ask(code):
            reply = child.call({"code": code}, timeout_s=10)
            return reply.get("error", reply.get("value"))
        address = ask("import ctypes, builtins;"
                      "builtins.kept = ctypes.create_string_buffer(b'seen');"
                      "value = ctypes.addressof(kept)")
        print(json.dumps({
            "level": child.level.to_message(),
            "pid": ask("import os; value = os.getpid()"),
            "judge": ask("import os; value = os.path.exists('/proc/2')"),
            "hidden": ask(f"import os; value = os.path.exists({sys.argv[1]!r})"),
            "scratch": ask(
                "import os; open('x', 'w'); value = sorted({'x', 'y'} & set(os.listdir('/tmp')))"
            ),
            "outside": ask("open('/usr/x', 'w')"),
            "network": ask("import socket; socket.socket()"),
            "capabilities": ask("value = [line.split()[1] for line in open('/proc/self/status')"
                                " if line.startswith('Cap')]"),
            "memory": child.read(address, 4).decode(),
            "frozen": (child.freeze(), child.frozen)[1],
        }))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="as another user, all the other tests show this")
@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare and setpriv")
def test_without_root_a_user_namespace_gives_full_protection():
    judge = [sys.base_prefix, sys.executable, "-c", textwrap.dedent(UNPRIVILEGED), str(HERE)]
    source = Path(sys.modules["kernelsmith"].__file__ or "").parents[1]
    found = subprocess.run(
        ["unshare", "--mount", "sh", "-c", textwrap.dedent(REACHABLE), "sh", *judge],
        env={**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert found.returncode == 0, found.stderr
    seen = json.loads(found.stdout)
    level = Level.from_message(seen.pop("level"))
    assert level.name == "full", level.describe()
    assert level.namespaces[0] == "user"
    assert not level.other_uid
    assert seen == {
        "pid": 1,
        "judge": False,
        "hidden": False,
        "scratch": ["x"],
        "outside": "OSError",
        "network": "PermissionError",
        "capabilities": ["0" * 16] * 5,
        "memory": "seen",
        "frozen": True,
    }
