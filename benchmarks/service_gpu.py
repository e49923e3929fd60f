"""Evaluations per minute through the service beside the local evaluator; see ``service --gpu``.

Both stay open as in a search and judge the same candidates (each side its own copies, so that
nothing is cached), block by block in turns on one device. The service has ``--in-flight`` requests
waiting, as a search has; starting is not counted on either side.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.cases.gpu import CASES, KINDS
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.settings import effort
from kernelsmith.evaluate.tasks import load_task
from kernelsmith.service.remote import RemoteEvaluator

Work = tuple[Task, Candidate, str]
_CPU = Path(__file__).parent / "cases"
_BLOCK = 8


def work(backend: str, count: int, side: str) -> list[Work]:
    """Candidates for one side, in the same order on both; no two texts are the same."""
    found: list[Work] = []
    if backend == "cpu":  # for trying it out without a GPU
        names = ("softmax", "swiglu", "bias_relu")
        pairs = [(_CPU / f"{name}.py", (_CPU / f"{name}_cpu.py").read_text()) for name in names]
        for index in range(count):
            path, text = pairs[index % len(pairs)]
            source = f"{text}\n# {side} {index}\n"
            found.append((load_task(path), Candidate(backend=backend, source=source), "passed"))
        return found
    if backend == "null":  # for trying out this file
        task = Task(name="add", source="x + y", entry="expression")
        return [
            (task, Candidate(backend="null", source=f"x + y  # {side} {index}"), "passed")
            for index in range(count)
        ]
    for index in range(count):
        case, kind = CASES[index // len(KINDS) % len(CASES)], KINDS[index % len(KINDS)]
        source = case.source(kind, index) + f"\n# {side}\n"
        verdict = {"wrong": "wrong", "broken": "build_failed"}.get(kind, "passed")
        found.append((load_task(case.task), Candidate(backend=backend, source=source), verdict))
    return found


def locally(evaluator: LocalEvaluator, block: Sequence[Work]) -> list[str]:
    return [evaluator.judge(task, candidate).verdict.value for task, candidate, _ in block]


async def remotely(evaluator: RemoteEvaluator, block: Sequence[Work]) -> list[str]:
    asked = [evaluator.evaluate(task, candidate) for task, candidate, _ in block]
    return [found.verdict.value for found in await asyncio.gather(*asked)]


def compare(args: argparse.Namespace) -> int:
    """Run both sides in turns and write the figures."""
    busy = report.busy_share()
    count = min(args.count, 48) if args.count == args.counts[0] else args.count
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "kernelsmith.cli.main", "serve", "--port", "0"]
        command += ["--backend", args.backend, "--store", folder]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=report.ROOT)
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[-1]
            body = asyncio.run(_compared(args, url, count))
        finally:
            server.terminate()
            server.wait(60)
    device = body.pop("device")
    report.say(json.dumps(body["summary"], indent=1))
    if args.out is None:
        results = report.ROOT / "benchmarks" / "results"
        trial = Path(tempfile.gettempdir()) / f"service-{args.backend}-trial.json"
        args.out = results / "service-h200.json" if args.backend == "triton" else trial
    report.save("service", args, device, body, busy=busy)
    return 0 if body["summary"]["share"] >= 0.9 else 1


async def _compared(args: argparse.Namespace, url: str, count: int) -> dict[str, Any]:
    settings = effort("usual", args.backend)
    local = LocalEvaluator(args.backend, settings)
    remote = RemoteEvaluator(
        url, backend=args.backend, settings=settings, cache=False, in_flight=args.in_flight
    )
    device = await remote.connect()
    mine, theirs = (work(args.backend, count + 2, side) for side in ("local", "service"))
    report.say("both sides judge two candidates that are not counted")
    locally(local, mine[:2])
    await remotely(remote, theirs[:2])
    spent = {"local": 0.0, "service": 0.0}
    done, wrong, blocks = 0, [], []
    until = time.monotonic() + 60 * args.minutes
    for start in range(2, count + 2, _BLOCK):
        if time.monotonic() > until:
            break
        row: dict[str, Any] = {}
        sides = ["local", "service"] if start // _BLOCK % 2 else ["service", "local"]
        for side in sides:
            block = (mine if side == "local" else theirs)[start : start + _BLOCK]
            begun = time.monotonic()
            if side == "local":
                said = await asyncio.to_thread(locally, local, block)
            else:
                said = await remotely(remote, block)
            row[side] = time.monotonic() - begun
            spent[side] += row[side]
            wrong += [
                f"{side}: {task.name} is {found}, not {expected}"
                for (task, _, expected), found in zip(block, said, strict=True)
                if found != expected
            ]
        done += len(block)
        blocks.append(row | {"evaluations": len(block)})
        report.say(f"{done}/{count}: {row}")
    await remote.close()
    local.close()
    rates = {side: 60 * done / seconds for side, seconds in spent.items()}
    summary = {
        "evaluations_per_side": done,
        "per_minute": {side: round(rate, 2) for side, rate in rates.items()},
        "share": round(rates["service"] / rates["local"], 4),
        "in_flight": args.in_flight, "unexpected": wrong,
    }  # fmt: skip
    return {"device": device, "summary": summary, "blocks": blocks}
