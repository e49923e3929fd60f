"""Starts KernelBench's harness on one candidate: a fresh process, limits, a temporary home."""

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.report import without_paths

DRIVER = Path(__file__).with_name("kernelbench_driver.py")
SAID_PLAINLY = (
    "KernelBench's own eval_kernel_against_ref, unmodified, in one fresh process per candidate, on "
    "the CPU: torch.cuda's calls are stubbed, its clock is host_time, missing packages are stubbed"
)
SAID_OF_GPU = (
    "KernelBench's own eval_kernel_against_ref, unmodified, in one fresh process per candidate, "
    "backend='triton', 5 correctness trials, 100 timed calls by cuda_event; packages that it "
    "imports and this machine has not are stubbed"
)
_FOR_GPU = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CC", "CXX")
"""What a process may need to find the driver and a compiler."""
TIMEOUT_S = 180.0
"""As in its own eval_from_generations."""
_OTHER_USER = "61234"
_GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What KernelBench's harness said of one candidate."""

    said: str
    """``correct``, ``wrong``, ``not compiled``, ``raised``, ``died`` or ``timed out``.

    ``unlike`` and ``alike`` answer the modes that ask whether it is one for KernelBench.
    """
    seconds: float
    """From starting the process to its end."""
    reason: str = ""
    excessive: bool = False
    """Flagged as too fast to be true; the candidate still counts as correct."""
    static: tuple[str, ...] = ()
    """Errors of its static checker, less the rules that ask for CUDA text."""
    ratio: float | None = None
    inside_s: float | None = None
    precision: str = "float32"
    replaced: tuple[str, ...] = field(default=())

    @property
    def accepted(self) -> bool:
        """Whether its user would take the candidate for a good one."""
        return self.said == "correct"


def evaluate(
    checkout: Path, task: str, candidate: str, *, precision: str = "float32",
    clear_cache: bool = True, mode: str = "evaluate", timeout_s: float = TIMEOUT_S,
    gpu: bool = False, contain: bool = True,
) -> Outcome:  # fmt: skip
    """Judge one candidate as KernelBench's users do, with cold caches, and clean up after it.

    Modes other than ``evaluate`` ask whether a task or candidate is one for KernelBench at all:
    ``control`` judges the reference by itself, ``weights`` compares what a seed gives both.
    """
    with tempfile.TemporaryDirectory(prefix="kernelbench-") as name:
        home = Path(name)
        home.chmod(0o777)
        (home / "task.py").write_text(task)
        (home / "candidate.py").write_text(candidate)
        command = [*(_contained() if contain else []), sys.executable, "-P", str(DRIVER)]
        command += [str(checkout.resolve())]
        command += [str(home / each) for each in ("task.py", "candidate.py", "result.json")]
        command += ["--precision", precision, "--mode", mode]
        command += [] if clear_cache else ["--no-cache-clearing"]
        command += ["--gpu"] if gpu else []
        begun = time.monotonic()
        ended = _run(command, home, timeout_s, gpu=gpu)
        seconds = time.monotonic() - begun
        result = home / "result.json"
        if ended is None:
            return Outcome(said="timed out", seconds=seconds, reason=f"after {timeout_s:.0f} s")
        if not result.exists():
            reason = f"exit status {ended}: {_tail(home / 'stderr')}"
            return Outcome(said="died", seconds=seconds, reason=reason)
        return _read(json.loads(result.read_text()), seconds)


def contained() -> str:
    """Say what keeps a candidate of KernelBench's side from the rest of this machine."""
    if _contained():
        return "other uid, own network, pid and ipc namespaces, rlimits, temporary home"
    return "rlimits, temporary home"


def checkout_commit(checkout: Path) -> str:
    """Name the commit of the checkout; its folder is nobody's business."""
    if shutil.which("git") is None:
        return "unknown (no git here)"
    done = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True
    )
    inside = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "--show-toplevel"], capture_output=True, text=True
    )
    if done.returncode or Path(inside.stdout.strip()) != checkout.resolve():
        return "unknown (not a git checkout)"
    return done.stdout.strip()


def _contained() -> list[str]:
    if os.geteuid() or not shutil.which("unshare") or not shutil.which("setpriv"):
        return []
    keep = "=-all,+dac_read_search"  # the interpreter may lie in root's home
    return [
        "unshare", "--net", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc",
        "setpriv", "--reuid", _OTHER_USER, "--regid", _OTHER_USER, "--clear-groups",
        f"--inh-caps{keep}", f"--ambient-caps{keep}", f"--bounding-set{keep}", "--no-new-privs",
    ]  # fmt: skip


def _limits() -> None:
    _limits_for_gpu()
    resource.setrlimit(resource.RLIMIT_AS, (16 * _GIB, 16 * _GIB))


def _limits_for_gpu() -> None:
    # CUDA reserves address space for the whole device, so that is not limited.
    for kind, most in (
        (resource.RLIMIT_FSIZE, _GIB),
        (resource.RLIMIT_NPROC, 512),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def _run(command: list[str], home: Path, timeout_s: float, *, gpu: bool) -> int | None:
    """Return the exit status, or nothing when the time was up."""
    path = os.environ.get("PATH", os.defpath)
    places = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME"), str(home))
    environment = {"PATH": path, "USER": "nobody", "LOGNAME": "nobody", **places}
    if gpu:
        environment |= {name: os.environ[name] for name in _FOR_GPU if name in os.environ}
    with (home / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            command, cwd=home, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
            preexec_fn=_limits_for_gpu if gpu else _limits,
        )  # fmt: skip
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _read(said: dict[str, Any], seconds: float) -> Outcome:
    common: dict[str, Any] = {
        "seconds": seconds,
        "static": tuple(said.get("static", ())),
        "replaced": tuple(said.get("replaced", ())),
        "precision": said.get("precision", "float32"),
        "inside_s": said.get("inside_s"),
    }
    if "unlike" in said:
        like = "unlike" if said["unlike"] else "alike"
        return Outcome(said=like, reason=said["unlike"], **common)
    if "raised" in said:
        return Outcome(said="raised", reason=without_paths(said["raised"]), **common)
    if "compiled" not in said:
        return Outcome(said="raised", reason="returned None: evaluate again", **common)
    metadata = said["metadata"]
    reason = ""
    for key in ("compilation_error", "runtime_error", "correctness_issue"):
        reason = reason or without_paths(str(metadata.get(key, "")))
    if not said["compiled"]:
        return Outcome(said="not compiled", reason=reason, **common)
    if not said["correctness"]:
        return Outcome(said="wrong", reason=reason, **common)
    late = without_paths(str(metadata.get("error_during_performance", "")))
    timed = said["runtime_ms"] > 0 and said["reference_ms"] > 0
    return Outcome(
        said="correct", reason=late, excessive=said["excessive"],
        ratio=said["reference_ms"] / said["runtime_ms"] if timed else None, **common,
    )  # fmt: skip


def _tail(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines()
    return without_paths(lines[-1]) if lines else "no output"
