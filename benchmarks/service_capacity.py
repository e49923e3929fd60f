"""How many GPUs make how many evaluations, and how long a request waits: a model and a simulation.

From measured costs only: the seconds of single evaluations on an H200 (``throughput-h200.json``,
all kinds of candidates in equal parts) and the server's processor time per request
(``service-cpu.json``). Requests arrive at random (Poisson) at a share of what the fleet can do; the
order is the service's (first come first served per device type; fairness between clients does not
change the mean). Where one server is not enough, each has a queue and a share of the devices. One
attempt in ``--faults`` is lost with its worker, which takes ``--restart-s`` to come back.
Everything else (network, Ray's scheduling) is not in it: it is milliseconds beside seconds.
"""

import argparse
import heapq
import json
import random
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import report

RESULTS = report.ROOT / "benchmarks" / "results"
FLEETS = (1, 8, 64, 512, 4096, 10_000)
LOADS = (0.5, 0.8, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What was measured."""

    seconds: tuple[float, ...]
    """Of single evaluations by one judge on one device."""
    server_cpu_ms: float
    """The server's processor time for one request from submission to answer."""
    fault_rate: float
    restart_s: float

    @property
    def mean_s(self) -> float:
        """Of one evaluation, attempts that are lost included."""
        plain = statistics.fmean(self.seconds)
        return plain + self.fault_rate * (plain / 2 + self.restart_s)

    @property
    def per_server(self) -> float:
        """Evaluations a second that one server process can hand out, at 70 % of a core."""
        return 0.7 * 1e3 / self.server_cpu_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """How long requests waited for a device, at one load."""

    load: float
    p50_s: float
    p99_s: float
    deepest: int
    """Requests that waited at a time, at most."""


def simulate(costs: Costs, gpus: int, load: float, rng: random.Random, requests: int) -> Wait:
    """Let requests arrive at random and go to whichever device is free first."""
    rate = load * gpus / costs.mean_s
    now, free_at = 0.0, [0.0] * gpus
    starts: list[float] = []
    waits: list[float] = []
    deepest = 0
    for number in range(requests):
        now += rng.expovariate(rate)
        ready = heapq.heappop(free_at)
        start = max(now, ready)
        busy = rng.choice(costs.seconds)
        while rng.random() < costs.fault_rate:
            busy += rng.random() * busy + costs.restart_s
        heapq.heappush(free_at, start + busy)
        heapq.heappush(starts, start)
        while starts and starts[0] <= now:
            heapq.heappop(starts)
        deepest = max(deepest, len(starts))
        if number > requests // 5:  # the fleet starts idle
            waits.append(start - now)
    cuts = statistics.quantiles(waits, n=100)
    return Wait(load=load, p50_s=round(cuts[49], 2), p99_s=round(cuts[98], 2), deepest=deepest)


def measured(args: argparse.Namespace) -> Costs:
    throughput = json.loads((RESULTS / "throughput-h200.json").read_text())
    seconds = tuple(
        record["kernelsmith"]["seconds"]
        for record in throughput["records"].values()
        if "kernelsmith" in record
    )
    service = json.loads(args.service.read_text())
    rows = service["clients"]["judged"]
    cpu = max(row["server_cpu_ms"] for row in rows if row["clients"] > 1)
    return Costs(
        seconds=seconds, server_cpu_ms=cpu, fault_rate=1 / args.faults, restart_s=args.restart_s
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--faults", type=float, default=200.0, help="one attempt in N is lost (200)"
    )
    parser.add_argument("--restart-s", type=float, default=20.0, help="until a worker is back (20)")
    parser.add_argument("--requests", type=int, default=40, help="per GPU, at least 20000 (40)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--service", type=Path, default=RESULTS / "service-cpu.json")
    parser.add_argument("--out", type=Path, default=RESULTS / "service-capacity.json")
    args = parser.parse_args()
    costs = measured(args)
    rows, table = [], []
    for gpus in FLEETS:
        per_s = gpus / costs.mean_s
        count = max(20_000, args.requests * gpus)
        servers = max(1, -(-per_s // costs.per_server))
        each = gpus // int(servers)  # a server has a queue and devices of its own
        waits = [simulate(costs, each, load, random.Random(args.seed), count) for load in LOADS]
        rows.append(
            {
                "gpus": gpus, "evaluations_per_minute": round(60 * per_s, 1),
                "servers": int(servers), "waits": [asdict(wait) for wait in waits],
                "simulated_requests": count,
            }
        )  # fmt: skip
        table.append(
            [gpus, f"{60 * per_s:,.0f}", int(servers),
             *(f"{wait.p50_s:g} / {wait.p99_s:g}" for wait in waits)]
        )  # fmt: skip
        report.say(f"{gpus} GPUs: done")
    head = [
        "GPUs",
        "evaluations a minute",
        "servers",
        *(f"wait p50/p99 s at {x:.0%}" for x in LOADS),
    ]
    report.say(report.table(head, table))
    body = {
        "benchmark": "service_capacity", "command": report.command("service_capacity", args),
        "costs": {
            "evaluations": len(costs.seconds), "mean_s": round(costs.mean_s, 3),
            "server_cpu_ms": costs.server_cpu_ms, "fault_rate": costs.fault_rate,
            "restart_s": costs.restart_s,
            "evaluations_per_s_per_server": round(costs.per_server, 1),
        },
        "fleets": rows,
    }  # fmt: skip
    args.out.write_text(json.dumps(body, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
