"""Steps per second of the framework itself: no model, no kernel, nothing to wait for.

``search`` is ask and tell alone: every candidate a new Triton-like text of 4 KB, a quarter of them
failing, evaluations ready-made and outside the clock. ``run`` is the whole loop with everything
that a user gets: concurrency 4, replayed proposals of 4 KB, the null backend's simulated judge,
champions measured again, gains measured beside the parent, and the journal, synced to disk. Both
are measured when so many candidates are in the history, over the last 2,000 steps before it (the
last half at 100 and 1,000). Memory is what the process grew by per step from 1,000 steps on.

``--openevolve PYTHON`` runs OpenEvolve beside it, with an interpreter that has it (pip install
openevolve into a virtual environment of its own): zero-latency endpoint on loopback, trivial
evaluator, as many live programs of 4 KB; see ``overhead_openevolve.py``.
"""

import argparse
import asyncio
import importlib.util
import json
import multiprocessing
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.report import busy_share, options, parse, save, say, table
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Brief, Proposal, Step
from kernelsmith.search.archive import Archive
from kernelsmith.search.config import SearchConfig
from kernelsmith.search.search import Search
from kernelsmith.testing import a_failure, a_pass

CODE_BYTES = 4096
WINDOW = 2000
BODIES = (
    "y{i} = x * {n} + {i}",
    "y{i} = x / tl.sum(x + {n}, axis=0)",
    "acc = tl.dot(a, b, acc + {n} * {i})",
    "for k{i} in range(0, n, {n}): s += tl.sum(tl.load(p + k{i}), axis=0)",
)
HAS_RUN = importlib.util.find_spec("kernelsmith.run.start") is not None
OPENEVOLVE_RUNS = ((100, 1), (1000, 1), (1000, 4))


def kernel(number: int) -> str:
    """A text of 4 KB, like a Triton kernel with a wrapper; no two are the same."""
    draw = random.Random(number)
    body = draw.choice(BODIES)
    own = draw.randint(4, 60)
    lines = [f"    {body.format(i=i, n=draw.randint(1, 99))}" for i in range(own)]
    head = f"import torch, triton\n@triton.jit\ndef kernel_{number}(p, a, b, n):\n"
    text = head + "\n".join(lines) + "\n\nclass ModelNew(torch.nn.Module):\n"
    at = 0
    while len(text) < CODE_BYTES:
        text += f"    def helper_{at}(self, x): return x.view({at}, -1)\n"
        at += 1
    return text[:CODE_BYTES]


def judged(number: int) -> tuple[Candidate, Evaluation]:
    draw = random.Random(-number - 1)
    if draw.random() < 0.25:
        message = (
            f"line {draw.randint(1, 99)}: no such name\n" + "and what the compiler said\n" * 20
        )
        return a_failure(kernel(number), Verdict.BUILD_FAILED, message)
    return a_pass(kernel(number), draw.lognormvariate(0.5, 0.8), spread=0.01)


def expression(number: int) -> str:
    """A null candidate of 4 KB: an expression, its simulated time, and a long comment."""
    draw = random.Random(number)
    if draw.random() < 0.1:
        return f"x + # {number}"
    us = draw.uniform(2.0, 9.0)
    text = f"maximum(x + y, 0) * {draw.choice((1, 1, 1, 2))} # us: {us:.4f} number {number}\n"
    return (text + "# what a longer candidate would say, line after line\n" * 100)[:CODE_BYTES]


def resident_kib() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def rates(times_s: list[float], marks: list[int]) -> list[dict[str, Any]]:
    """Steps per second up to each mark, from the seconds that each step took."""
    found = []
    for mark in marks:
        window = times_s[max(mark // 2, mark - WINDOW) : mark]
        found.append({"told": mark, "per_second": len(window) / sum(window), "steps": len(window)})
    return found


def search_side(marks: list[int]) -> dict[str, Any]:
    """Ask and tell, one after the other."""
    search = Search(
        Task(name="overhead", source="x"), backend="triton", config=SearchConfig(), seed=0
    )
    times, memory = [], {}
    for number in range(marks[-1]):
        pair = judged(number)
        begun = time.perf_counter()
        search.tell(search.ask(), *pair)
        times.append(time.perf_counter() - begun)
        if number + 1 in marks:
            memory[number + 1] = resident_kib()
    return {
        "side": "search",
        "rates": rates(times, marks),
        "kib_per_step": _growth(memory),
        "elites": sum(len(archive) for archive in search.islands),
        "best_effort_us": min(times) * 1e6,
    }


class Replayed:
    """Answers each ask with the candidate of its number."""

    name = "replay"

    async def propose(self, brief: Brief) -> Proposal:
        return Proposal(source=expression(brief.number), proposer=self.name)

    def learn(self, step: Step) -> None:
        pass

    async def close(self) -> None:
        pass


def run_side(marks: list[int]) -> dict[str, Any]:
    """The whole loop, journal included."""
    from kernelsmith.run.config import Budget, RunConfig
    from kernelsmith.run.progress import Progress
    from kernelsmith.run.start import start

    begun, at, memory = time.perf_counter(), [], {}

    def watch(progress: Progress) -> None:
        at.append(time.perf_counter())
        if progress.told in marks:
            memory[progress.told] = resident_kib()

    task = Task(name="overhead", source="maximum(x + y, 0) * 1 # us: 10")
    config = RunConfig(backend="null", budget=Budget(steps=marks[-1]))
    device = Device(kind="null", name="simulated clock")

    async def go(folder: Path) -> None:
        run = start(task, folder, config, proposer=Replayed(), device=device, watch=watch)
        await run.go()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(go(Path(folder)))
        size = (Path(folder) / "journal.jsonl").stat().st_size
    times = [now - before for before, now in zip([begun, *at], at, strict=False)]
    return {
        "side": "run",
        "rates": rates(times, marks),
        "kib_per_step": _growth(memory),
        "journal_kib_per_step": size / 1024 / len(times),
        "concurrency": config.concurrency,
    }


def archive_side(count: int = 20_000) -> dict[str, Any]:
    """Adds per second of one archive: with the description of 4 KB, and of ready elites alone."""
    pairs = [judged(number) for number in range(count)]
    archive = Archive()
    begun = time.perf_counter()
    for pair in pairs:
        archive.add(*pair)
    whole = time.perf_counter() - begun
    elites, grid = list(archive), Archive()
    begun = time.perf_counter()
    for index in range(count):
        grid.copy_in(elites[index % len(elites)])
    return {
        "adds_per_second": count / whole,
        "grid_alone_per_second": count / (time.perf_counter() - begun),
    }


def _growth(memory: dict[int, int]) -> float | None:
    (first, before), (last, after) = min(memory.items()), max(memory.items())
    if 1000 in memory and last > 1000:
        first, before = 1000, memory[1000]
    return (after - before) / (last - first) if last > first else None


def apart(work: Callable[..., dict[str, Any]], *arguments: object) -> dict[str, Any]:
    """Do it in a fresh process, so that memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def openevolve(python: Path, live: int, workers: int, steps: int) -> dict[str, Any]:
    driver = Path(__file__).with_name("overhead_openevolve.py")
    with tempfile.TemporaryDirectory() as folder:
        numbers = map(str, (live, steps, workers, CODE_BYTES))
        done = subprocess.run(
            [python, driver, folder, *numbers], capture_output=True, text=True, timeout=600
        )
    if done.returncode:
        sys.exit(f"OpenEvolve did not run: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def show(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], archive: dict[str, Any]) -> None:
    rows = [
        [f"kernelsmith, {side['side']}", f"{each['told']:,}", f"{each['per_second']:,.0f}",
         f"{side['kib_per_step']:.1f}" if side["kib_per_step"] is not None else ""]
        for side in ours for each in side["rates"]
    ]  # fmt: skip
    rows += [
        [f"openevolve {each['version']}, {each['workers']} workers",
         f"{each['live']:,} live", f"{each['per_second']:,.1f}", ""]
        for each in theirs
    ]  # fmt: skip
    print(table(["side", "candidates", "steps per second", "KiB per step"], rows))
    print(f"\none archive: {archive['adds_per_second']:,.0f} adds of 4 KB a second, "
          f"{archive['grid_alone_per_second']:,.0f} without describing them")  # fmt: skip
    at = {
        (side["side"], each["told"]): each["per_second"] for side in ours for each in side["rates"]
    }
    for each in theirs:
        for name in ("run", "search"):
            if ratio := at.get((name, each["live"]), 0.0) / each["per_second"]:
                print(
                    f"{name} at {each['live']:,}: {ratio:,.0f} times openevolve with "
                    f"{each['workers']} workers"
                )


def main() -> None:
    parser = options(__doc__ or "", count=100_000, quick=2000, unit="candidates at most")
    parser.add_argument(
        "--openevolve", type=Path, metavar="PYTHON", help="an interpreter that has OpenEvolve"
    )
    args: argparse.Namespace = parse(parser)
    marks = [mark for mark in (100, 1000, 10_000, 100_000) if mark <= args.count] or [args.count]
    busy = busy_share()
    ours, theirs = [apart(search_side, marks)], []
    say("search: done")
    if HAS_RUN:
        ours.append(apart(run_side, marks))
        say("run: done")
    else:
        say("no kernelsmith.run here yet: search alone is measured")
    if args.openevolve:
        for live, workers in OPENEVOLVE_RUNS:
            steps = 30 if args.quick else 200
            theirs.append(openevolve(args.openevolve, live, workers, steps))
            say(f"openevolve, {live} live, {workers} workers: done")
    archive = apart(archive_side)
    show(ours, theirs, archive)
    if not theirs:
        print("\nno OpenEvolve rows: pip install it elsewhere and pass --openevolve PYTHON")
    cores = os.cpu_count()
    versions = (("python", platform.python_version()), ("kernel", platform.release()))
    device = Device(kind="cpu", name=_processor(), cores=cores, versions=versions)
    body = {
        "code_bytes": CODE_BYTES, "window": WINDOW, "kernelsmith": ours, "openevolve": theirs,
        "archive": archive, "nice": os.nice(0),
    }  # fmt: skip
    save("overhead", args, device, body, busy=busy)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if "model name" in line), "unknown")


if __name__ == "__main__":
    main()
