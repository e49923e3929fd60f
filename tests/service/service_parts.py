"""Small parts for tests of the service: requests, a server in a process, workers that fail."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time

import httpx

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import encode
from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.service.fleet import Care, Fleet
from kernelsmith.service.limits import Limits
from kernelsmith.service.metrics import Metrics
from kernelsmith.service.process import Patience, Post, WorkerDied, WorkerProcess
from kernelsmith.service.queue import Queue, Rules
from kernelsmith.service.station import Hello, Report, Station
from kernelsmith.service.wire import Request
from kernelsmith.testing import QUICK, a_pass

TASK = Task(name="add", source="x + y", entry="expression")
OTHER = Task(name="product", source="x * y", entry="expression")
DEVICE = Device(kind="null", name="simulated clock")
NULL = {"null": {DEVICE}, "mortal": {DEVICE}}
POISON = "takes its process along"
"""A real one where ``mortal`` is installed: whoever opens it is killed, as by a bad driver."""
MORTAL = """
import os
import signal

from kernelsmith.evaluate.backends.null import NullBackend, NullLane


class MortalLane(NullLane):
    def load(self, source, entry, setup, *, function):
        expression = source.rpartition("# ")[2]
        if expression == "takes its process along":
            os.kill(os.getpid(), signal.SIGKILL)
        super().load(expression, entry, setup, function=function)


class MortalBackend(NullBackend):
    name = "mortal"

    def lane(self, name, *, timeout_s, oracle=None):
        return MortalLane()
"""
TOKEN = "correct-horse-battery"
HASTY = Patience(start_s=30.0, beat_s=0.2, silence_s=2.0, job_s=20.0)


def a_request(source="x + y", **changes):
    """A request that passes quickly; tests name only what they are about."""
    candidate = Candidate(backend="null", source=source)
    usual = dict(task=TASK, candidate=candidate, settings=QUICK)
    return Request(**{**usual, **changes})


def a_mortal_request(source):
    """For the plug-in, whose expressions stand in the last comment of what a guard lets pass."""
    body = "def expression(x, y):\n    return x\n\n\n# "
    return a_request(candidate=Candidate(backend="mortal", source=body + source))


def a_body(*requests):
    return {"requests": [encode(each) for each in requests or [a_request()]]}


def a_line(source="x + y"):
    """A stored evaluation."""
    return Report(evaluation=a_pass(source, 1.5)[1]).line


def mortal(folder):
    """Install the plug-in ``mortal``, whose candidates can kill; gives the environment for it."""
    plugin = folder / "plugin"
    about = plugin / "mortal-1.dist-info"
    about.mkdir(parents=True)
    (plugin / "mortal.py").write_text(MORTAL)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mortal\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[kernelsmith.backends]\nmortal = mortal:MortalBackend\n"
    )
    return {"PYTHONPATH": str(plugin)}


@contextlib.contextmanager
def served(folder, *options, backend="null", tokens=None, env=None):
    """A server in a process of its own; gives its address, its pid and how to talk to it."""
    command = [sys.executable, "-m", "kernelsmith.cli.main", "serve", "--port", "0"]
    command += ["--backend", backend, "--store", str(folder / "store"), *options]
    if tokens is not None:
        path = folder / "tokens"
        path.write_text(tokens)
        path.chmod(0o600)
        command += ["--token-file", str(path)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}
    )
    try:
        line = process.stdout.readline()
        assert "http://" in line, line
        yield Served(line.split()[-1], process)
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(40)
        process.stdout.close()


class Served:
    def __init__(self, url, process):
        self.url, self.process = url, process

    def client(self, token=None):
        heads = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=heads, timeout=30.0, trust_env=False)

    def up(self, client, patience_s=30.0):
        """Wait until a device is."""
        deadline = time.monotonic() + patience_s
        while client.get("/readyz").status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return self


class Scripted:
    """A worker that does what a script says of each source: answer, die, or come back empty."""

    def __init__(self, script, device=DEVICE, judge=JUDGE):
        self._script, self._device, self._judge = script, device, judge
        self._station = Station("null")

    async def start(self):
        return Hello(device=self._device, judge=self._judge, references=4)

    async def judge(self, job):
        await asyncio.sleep(0)
        what = self._script(job)
        if what == "die":
            raise WorkerDied("a worker died: it hung up")
        if what == "lost":
            return Report(lost="the device does not answer")
        return self._station.judge(job)

    async def stop(self):
        pass


@contextlib.asynccontextmanager
async def a_fleet(
    folder, *, hire=None, posts=1, rules=None, care=None, limits=None, installed=None
):
    """A queue and workers in this process; real worker processes where nothing is said."""
    metrics = Metrics()
    queue = Queue(
        folder / "queue.sqlite", limits=limits or Limits(), rules=rules or Rules(), metrics=metrics
    )
    fleet = Fleet(
        [
            Post(
                backend="null" if installed is None else "mortal", number=number,
                environment=installed or {},
            )
            for number in range(posts)
        ],
        queue=queue, hire=hire or (lambda post: WorkerProcess(post, HASTY)), metrics=metrics,
        care=care or Care(rest_s=0.05, most_rest_s=0.1),
    )  # fmt: skip
    fleet.start()
    try:
        yield queue, fleet, metrics
    finally:
        await fleet.stop(1.0)
        await queue.close()


async def asked(queue, *requests, client="me", wait_s=30.0):
    """Submit, wait for all, and return the tickets."""
    tickets = await queue.submit(client, requests, NULL)
    return [await queue.wait(client, each.id, wait_s) for each in tickets]


def kill(pid, number=signal.SIGKILL):
    os.kill(pid, number)
