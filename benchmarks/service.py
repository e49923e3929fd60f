"""The service itself: requests a second and latency with the null backend, and a long queue.

Three parts, each against a server in a process of its own on this machine:

- ``clients``: 1, 32 and 256 clients at a time, each with one request under way. ``submit`` takes a
  new request in and returns when it lasts on disk; ``cached`` is answered from the cache;
  ``judged`` goes through a worker of the null backend and comes back (the null judge's own time,
  measured here without a service, is given beside it).
- ``queue``: 100,000 requests are queued, the server is killed with -9 and started again, and judges
  for ``--drain-s`` seconds or until all are done; none may be missing, whether judged or waiting.
  The server's memory (resident, at its most) is given.
- ``--gpu``: on a GPU, evaluations per minute through the service beside the local evaluator's, same
  candidates, in turns, in one run.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx

from benchmarks import report
from benchmarks.service_monkeys import HOST, Victim, rows
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import encode
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.backends.cpu import CpuBackend
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.timing.sampling import StopRule
from kernelsmith.service.wire import Request

TASK = Task(name="add", source="x + y", entry="expression")
LIGHT = Settings(
    stop=StopRule(target_width=1.0, min_pairs=1, max_pairs=1, min_samples=1),
    sample_us=1.0, max_launches=1, warmups=0, profiled=0, parts=0, robust=False,
)  # fmt: skip
"""The least that a judge does: what is left is mostly the service."""
_BATCH = 1000
_HEAD = (
    "POST /v1/requests?wait={wait} HTTP/1.1\r\nHost: {host}\r\n"
    "Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
)
"""By hand: a client library takes more of the processor than the server does."""


def a_request(source: str, **changes: Any) -> dict[str, Any]:
    candidate = Candidate(backend="null", source=source)
    found = encode(Request(task=TASK, candidate=candidate, settings=LIGHT, **changes))
    assert isinstance(found, dict)
    return found


def broken() -> str:
    """A candidate that does not build: the null judge is done with it soonest."""
    return f"x + # {uuid.uuid4().hex}"


async def measured(
    url: str, clients: int, seconds: float, body: Callable[[], dict[str, Any]], *, wait: int
) -> dict[str, Any]:
    """Have so many clients ask one after the other, and say how often and how long."""
    spans: list[float] = []
    failed = 0
    host, port = url.removeprefix("http://").split(":")
    until = time.monotonic() + seconds

    async def ask() -> None:
        nonlocal failed
        reader, writer = await asyncio.open_connection(host, int(port))
        while time.monotonic() < until:
            content = json.dumps({"requests": [body()]}).encode()
            begun = time.monotonic()
            writer.write(_HEAD.format(wait=wait, host=host, size=len(content)).encode() + content)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            size = int(head.partition(b"content-length:")[2].split(None, 1)[0])
            await reader.readexactly(size)
            spans.append(time.monotonic() - begun)
            status = int(head.split(None, 2)[1])
            failed += status != 200 if wait else status not in (200, 202)
        writer.close()

    begun = time.monotonic()
    await asyncio.gather(*(ask() for _ in range(clients)))
    took = time.monotonic() - begun
    return {
        "clients": clients, "requests": len(spans), "failed": failed,
        "per_second": round(len(spans) / took, 1),
        "p50_ms": round(1e3 * statistics.median(spans), 2),
        "p99_ms": round(1e3 * statistics.quantiles([*spans, max(spans)], n=100)[98], 2),
    }  # fmt: skip


def split(clients: int) -> tuple[int, int]:
    """Processes, and clients in each: one Python client cannot drive a server."""
    processes = 1 if clients == 1 else 2
    return processes, clients // processes


async def by_processes(url: str, clients: int, seconds: float, kind: str) -> dict[str, Any]:
    """The same from several client processes at a time; medians of their percentiles."""
    processes, each = split(clients)
    command = [sys.executable, "-m", "benchmarks.service", "--drive", url, "--kind", kind]
    command += ["--clients", str(each), "--seconds", str(seconds)]
    running = [
        await asyncio.create_subprocess_exec(
            *command, cwd=report.ROOT, stdout=asyncio.subprocess.PIPE
        )
        for _ in range(processes)
    ]
    found = [json.loads((await process.communicate())[0]) for process in running]
    return {
        "clients": clients,
        "requests": sum(each["requests"] for each in found),
        "failed": sum(each["failed"] for each in found),
        "per_second": round(sum(each["per_second"] for each in found), 1),
        "p50_ms": round(statistics.median(each["p50_ms"] for each in found), 2),
        "p99_ms": max(each["p99_ms"] for each in found),
    }


async def drive(url: str, clients: int, seconds: float, kind: str) -> dict[str, Any]:
    """One client process."""
    if kind == "submit":
        return await measured(url, clients, seconds, lambda: a_request(broken()), wait=0)
    if kind == "cached":
        return await measured(url, clients, seconds, lambda: a_request("x + # kept"), wait=60)
    return await measured(url, clients, seconds, lambda: a_request(broken(), cache=False), wait=60)


async def served(work: Callable[[Victim, str], Awaitable[Any]], *, judges: int) -> Any:
    """Do something with a fresh server."""
    with tempfile.TemporaryDirectory() as folder:
        victim = Victim(Path(folder), judges=judges)
        victim.start()
        try:
            await victim.ready()
            url = f"http://{HOST}:{victim.port}"
            async with httpx.AsyncClient(base_url=url, trust_env=False) as far:
                while (await far.get("/readyz")).status_code != 200:
                    await asyncio.sleep(0.1)
            await asyncio.sleep(1.0)  # the other workers
            return await work(victim, url)
        finally:
            victim.kill()


async def part_clients(counts: list[int], seconds: float, judges: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind in ("submit", "cached", "judged"):
        found[kind] = []
        for clients in counts:

            async def work(
                victim: Victim, url: str, kind: str = kind, clients: int = clients
            ) -> Any:
                if kind == "cached":
                    async with httpx.AsyncClient(base_url=url, timeout=60) as far:
                        body = {"requests": [a_request("x + # kept")]}
                        await far.post("/v1/requests?wait=60", json=body)
                before = cpu_s(victim.pid)
                row = await by_processes(url, clients, seconds, kind)
                spent = 1e3 * (cpu_s(victim.pid) - before) / max(row["requests"], 1)
                return row | {"server_cpu_ms": round(spent, 2)}

            found[kind].append(await served(work, judges=judges))
            report.say(f"{kind}: {found[kind][-1]}")
    return found


def cpu_s(pid: int) -> float:
    """Processor time of a process so far: what a busy machine does not change much."""
    after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after[11]) + int(after[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> tuple[float, float]:
    """Resident memory of a process now, and at its most."""
    said = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return tuple(int(said[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]


async def part_queue(count: int, judges: int, drain_s: float) -> dict[str, Any]:
    """Queue many, die, come back, judge."""

    async def work(victim: Victim, url: str) -> dict[str, Any]:
        empty, _ = resident_mb(victim.pid)
        ids: list[str] = []
        begun = time.monotonic()
        async with httpx.AsyncClient(base_url=url, timeout=300, trust_env=False) as far:
            while len(ids) < count:
                size = min(_BATCH, count - len(ids))
                batch = [a_request(broken(), cache=False) for _ in range(size)]
                reply = await far.post("/v1/requests", json={"requests": batch})
                if reply.status_code == 429:
                    await asyncio.sleep(1.0)
                    continue
                ids += [each["id"] for each in reply.json()["requests"]]
        queued_s = time.monotonic() - begun
        full, _ = resident_mb(victim.pid)
        done = rows(victim.store, "SELECT count(*) FROM requests WHERE state = 'done'")
        disk_mb = sum(p.stat().st_size for p in victim.store.parent.iterdir()) / (1 << 20)
        victim.kill()
        begun = time.monotonic()
        victim.start()
        await victim.ready(120)
        restart_s = time.monotonic() - begun
        begun, already = time.monotonic(), int(str(done[0][0]))
        left = "SELECT 1 FROM requests WHERE finished IS NULL LIMIT 1"
        while rows(victim.store, left) and time.monotonic() - begun < drain_s:
            await asyncio.sleep(2.0)
        judged_s = time.monotonic() - begun
        ((over,),) = rows(victim.store, "SELECT count(*) FROM requests WHERE state = 'done'")
        now, most = resident_mb(victim.pid)
        kept = {
            str(id)
            for (id,) in rows(
                victim.store,
                "SELECT id FROM requests WHERE state IN ('queued', 'running')"
                " OR state = 'done' AND evaluation LIKE '%build_failed%'",
            )
        }
        return {
            "queued": len(ids), "missing": len(set(ids) - kept), "twice": len(ids) - len(set(ids)),
            "queued_per_s": round(len(ids) / queued_s), "judged_while_queueing": already,
            "restart_s": round(restart_s, 2),
            "judged": over, "judged_per_s": round((int(str(over)) - already) / judged_s, 1),
            "resident_mb": {"empty": round(empty), "all_queued": round(full),
                            "after": round(now), "most": round(most)},
            "disk_mb": round(disk_mb),
        }  # fmt: skip

    found: dict[str, Any] = await served(work, judges=judges)
    report.say(f"queue: {found}")
    return found


def null_judge_ms(count: int = 200) -> float:
    """What one of these evaluations takes without a service."""
    evaluator = LocalEvaluator("null", LIGHT)
    begun = time.perf_counter()
    for _ in range(count):
        evaluator.judge(TASK, Candidate(backend="null", source=broken()))
    return 1e3 * (time.perf_counter() - begun) / count


def main() -> int:
    parser = report.options(__doc__, count=100_000, quick=5_000, unit="requests queued")
    parser.add_argument("--seconds", type=float, help="for each row (10; quick: 3)")
    parser.add_argument(
        "--drain-s", type=float, default=120.0, help="judge the queue so long (120)"
    )
    parser.add_argument("--judges", type=int, default=2, help="workers (2)")
    parser.add_argument(
        "--gpu", action="store_true", help="evaluations per minute on a GPU instead"
    )
    parser.add_argument("--minutes", type=float, default=6.0, help="with --gpu: at most (6)")
    parser.add_argument(
        "--backend", default="triton", help="with --gpu: triton; cpu or null to try it"
    )
    parser.add_argument("--in-flight", type=int, default=4, help="with --gpu: requests (4)")
    for hidden in ("--drive", "--kind"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--clients", type=int, help=argparse.SUPPRESS)
    args = report.parse(parser)
    if args.drive:
        print(json.dumps(asyncio.run(drive(args.drive, args.clients, args.seconds, args.kind))))
        return 0
    if args.gpu:
        from benchmarks.service_gpu import compare

        return compare(args)
    busy = report.busy_share()
    seconds = args.seconds or (3.0 if args.quick else 10.0)
    body = {
        "notes": {
            "clients": "in one or two processes on the same cores as server and workers",
            "judge": "candidates that do not build, lightest settings",
            "null_judge_ms": round(null_judge_ms(), 2),
            "load_average_before": os.getloadavg()[0],
        },
        "clients": asyncio.run(part_clients([1, 32, 256], seconds, args.judges)),
        "queue": asyncio.run(part_queue(args.count, args.judges, args.drain_s)),
    }
    backend = CpuBackend()
    device = backend.device()
    backend.close()
    for kind in ("submit", "cached", "judged"):
        report.say(kind)
        columns = ["clients", "per_second", "p50_ms", "p99_ms", "server_cpu_ms", "failed"]
        lines = [[row[name] for name in columns] for row in body["clients"][kind]]
        report.say(report.table(columns, lines))
    report.save("service", args, device, body, busy=busy)
    missing = body["queue"]["missing"] + body["queue"]["twice"]
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
