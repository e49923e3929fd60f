"""What a kernel needs goes on working inside."""

import os
import shutil
import socket
from pathlib import Path

import pytest
from sandbox_children import Spawn, ask

from kernelsmith.evaluate.sandbox.child import Child
from kernelsmith.evaluate.sandbox.order import Profile


def test_torch_computes_with_two_threads(child: Child):
    code = """
        import torch
        torch.set_num_threads(2)
        a, b = torch.randn(512, 512), torch.randn(512, 512)
        error = (a @ b - (a.double() @ b.double())).abs().max().item()
        image = torch.nn.functional.conv2d(torch.randn(1, 3, 64, 64), torch.randn(8, 3, 3, 3))
        x = torch.ones(1 << 22).mul_(2).sum().item()
        value = [error < 1e-2, list(image.shape), x, torch.get_num_threads()]
    """
    assert ask(child, code, timeout_s=30) == [True, [1, 8, 62, 62], float(1 << 23), 2]
    assert len(child.threads()) >= 2


def test_torch_finds_the_same_vector_instructions_as_outside(child: Child):
    flags = Path("/proc/cpuinfo").read_text()
    if "avx2" not in flags:
        pytest.skip("this machine has no AVX2 to find")
    seen = ask(child, "import torch; value = torch.backends.cpu.get_cpu_capability()")
    assert seen == ("AVX512" if "avx512vl" in flags else "AVX2")
    assert "cpuinfo" not in child.output


def test_numpy_computes(child: Child):
    code = "import numpy as np; value = float((np.ones((300, 300)) @ np.ones((300, 300))).sum())"
    assert ask(child, code) == 300.0**3


def test_modules_that_were_not_preloaded_can_be_imported(child: Child):
    code = "import torch._dynamo, sqlite3, getpass; value = getpass.getuser()"
    assert ask(child, code, timeout_s=60) == "sandbox"


SOURCE = r"""
#include <omp.h>
extern "C" long count(long n) {
    long sum = 0;
    #pragma omp parallel for num_threads(2) reduction(+:sum)
    for (long i = 0; i < n; ++i) sum += omp_get_num_threads();
    return sum;
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_library_built_in_one_child_runs_with_openmp_in_another(spawn: Spawn):
    library = os.memfd_create("library")
    try:
        build = f"""
            import os, shutil, subprocess
            open("/tmp/kernel.cpp", "w").write({SOURCE!r})
            done = subprocess.run(
                ["g++", "-O2", "-fopenmp", "-shared", "-fPIC", "-o", "kernel.so", "kernel.cpp"],
                capture_output=True, text=True)
            value = [done.returncode, done.stderr]
            os.write(passed[0], open("/tmp/kernel.so", "rb").read())
        """
        builder = spawn(profile=Profile.BUILD)
        assert ask(builder, build, timeout_s=60, fds=(library,)) == [0, ""]
        run = "import ctypes; value = ctypes.CDLL(f'/proc/self/fd/{passed[0]}').count(1000)"
        assert ask(spawn(), run, fds=(library,)) == 2000
    finally:
        os.close(library)


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.socket()",
        "import os; os.sched_setaffinity(0, [0])",
        "open('/usr/new', 'w')",
        "open('/etc/shadow')",
    ],
)
def test_a_builder_is_confined_too(spawn: Spawn, code: str):
    assert ask(spawn(profile=Profile.BUILD), code) in {
        "PermissionError",
        "FileNotFoundError",
        "OSError",
    }


def test_a_tool_that_watches_talks_to_itself_and_to_nobody_else(spawn: Spawn):
    talk = """
        import socket, subprocess, sys
        with socket.create_server(("127.0.0.1", 0)) as server:
            call = f"socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))"
            say = f"import socket; {call}.send(b'here')"
            started = subprocess.Popen([sys.executable, "-c", say])
            value = server.accept()[0].recv(4).decode()
            started.wait()
    """
    watcher = spawn(profile=Profile.WATCH)
    assert ask(watcher, talk, timeout_s=20) == "here"
    with socket.create_server(("127.0.0.1", 0)) as outside:
        call = f"import socket; socket.create_connection(('127.0.0.1', {outside.getsockname()[1]}))"
        assert ask(watcher, call, timeout_s=20) == "ConnectionRefusedError"
    assert ask(watcher, "import socket; socket.socket(socket.AF_NETLINK)") == "PermissionError"


def test_what_a_watcher_starts_can_name_its_threads(spawn: Spawn):
    code = """
        import subprocess, sys
        name = "open('/proc/self/task/%d/comm' % __import__('os').getpid(), 'w').write('named')"
        done = subprocess.run([sys.executable, "-c", name], capture_output=True, text=True)
        value = [done.returncode, done.stderr]
    """
    assert ask(spawn(profile=Profile.WATCH, devices=[Path("/dev/null")]), code) == [0, ""]


def test_who_would_watch_as_root_does_not_watch(spawn: Spawn):
    if os.getuid() != 0:
        pytest.skip("only root can be root")
    watcher = spawn(profile=Profile.WATCH, devices=[Path("/dev/null")], without={"uid": "a test"})
    code = "import os; os.close(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY))"
    assert ask(watcher, code) == "PermissionError"
    assert (
        ask(watcher, "import socket; socket.create_server(('127.0.0.1', 0))") == "PermissionError"
    )
    assert "watching" in watcher.level.missing


def test_a_builder_makes_no_namespaces(spawn: Spawn):
    code = """
        import subprocess
        value = subprocess.run(["unshare", "-Ur", "true"], capture_output=True, text=True).stderr
    """
    assert "Operation not permitted" in str(ask(spawn(profile=Profile.BUILD), code))


def test_what_a_builder_started_dies_with_it(spawn: Spawn):
    builder = spawn(profile=Profile.BUILD)
    code = """
        import subprocess
        for _ in range(3):
            subprocess.Popen(["sleep", "98765"], start_new_session=True)
    """
    ask(builder, code)
    builder.kill()
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if _mentions(path, "98765")]


def _mentions(path: Path, text: str) -> bool:
    try:
        return text in path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
