"""The service under load while things break: every acknowledged request ends in one evaluation.

Clients submit candidates whose verdict is known beforehand, through a proxy that cuts connections;
each submission is sent twice under one key. Meanwhile workers are killed and frozen, the server is
killed with -9 and started again, its disk is full for a while, and slow clients hold connections.
At the end every acknowledged request must be done, once, with the right verdict; the store itself
is read for that, past the service.

    python -m benchmarks.service_chaos                   ten minutes
    python -m benchmarks.service_chaos --seconds 20      what CI runs
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.service_monkeys import DEEDS, HOST, Monkeys, Proxy, Victim, rows
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import encode
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task
from kernelsmith.errors import EvaluationLost
from kernelsmith.service.remote import RemoteEvaluator
from kernelsmith.service.wire import Request
from kernelsmith.testing import QUICK

TASKS = [
    Task(name="sum", source="x + y", entry="expression"),
    Task(name="product", source="x * y + z", entry="expression"),
    Task(name="clipped", source="maximum(x - y, 0)", entry="expression"),
]
WRONG = "x - y * 3 + 0.5"
_DRAIN_S = 240.0


@dataclass(slots=True)
class Tally:
    """What clients saw."""

    expected: dict[str, Verdict] = field(default_factory=dict)
    """By key: the verdict of everything that was acknowledged."""
    ids: dict[str, str] = field(default_factory=dict)
    """By key: the id that was acknowledged."""
    answered: int = 0
    lost: int = 0
    unacknowledged: int = 0
    wrong: list[str] = field(default_factory=list)


def case(rng: random.Random) -> tuple[Task, Candidate, Verdict]:
    """A task and a candidate whose verdict is known; no two are the same text."""
    task = rng.choice(TASKS)
    verdict = rng.choice([Verdict.PASSED, Verdict.WRONG, Verdict.BUILD_FAILED])
    source = {
        Verdict.PASSED: task.source,
        Verdict.WRONG: WRONG,
        Verdict.BUILD_FAILED: f"{task.source} +",
    }[verdict]
    text = f"{source}  # {rng.getrandbits(64):016x}"
    return task, Candidate(backend="null", source=text), verdict


async def search(url: str, rng: random.Random, tally: Tally, stop: asyncio.Event) -> None:
    """Ask as a search does: one evaluation after the other, each waited for."""
    async with RemoteEvaluator(url, backend="null", settings=QUICK) as evaluator:
        while not stop.is_set():
            task, candidate, expected = case(rng)
            try:
                found = await evaluator.evaluate(task, candidate)
            except EvaluationLost as error:
                tally.lost += 1
                tally.wrong.append(f"lost: {error}")
                continue
            tally.answered += 1
            if found.verdict is not expected or found.candidate != candidate.id:
                tally.wrong.append(f"{candidate.source}: {found.verdict}, not {expected}")


async def flood(
    url: str, rng: random.Random, tally: Tally, stop: asyncio.Event, *, batch: int
) -> None:
    """Submit batches twice under the same keys, and do not wait for anything."""
    async with httpx.AsyncClient(base_url=url, timeout=20.0, trust_env=False) as client:
        while not stop.is_set():
            cases = [case(rng) for _ in range(batch)]
            keys = [uuid.uuid4().hex for _ in cases]
            body = {
                "requests": [
                    encode(Request(
                        task=t, candidate=c, settings=QUICK, key=k, cache=rng.random() < 0.5
                    ))
                    for (t, c, _), k in zip(cases, keys, strict=True)
                ]
            }  # fmt: skip
            twice = (_acknowledged(client, body), _acknowledged(client, body))
            for ids in await asyncio.gather(*twice):
                if ids is None:
                    tally.unacknowledged += batch
                    continue
                for key, id, (_, _, verdict) in zip(keys, ids, cases, strict=True):
                    if tally.ids.setdefault(key, id) != id:
                        tally.wrong.append(f"key {key} has two requests")
                    tally.expected[key] = verdict
            await asyncio.sleep(rng.uniform(0.5, 1.5) * batch / 12)


async def _acknowledged(client: httpx.AsyncClient, body: dict[str, object]) -> list[str] | None:
    try:
        reply = await client.post("/v1/requests", json=body)
    except httpx.HTTPError:
        return None
    if not reply.is_success:
        return None
    return [each["id"] for each in reply.json()["requests"]]


def verified(store: Path, tally: Tally) -> Counter[str]:
    """Hold what the store says against what was acknowledged; adds to ``tally.wrong``."""
    found = {
        str(key): (str(id), str(state), json.loads(str(line)) if line else {})
        for key, id, state, line in rows(
            store, "SELECT key, id, state, evaluation FROM requests WHERE key IS NOT NULL"
        )
    }
    states: Counter[str] = Counter()
    for key, verdict in tally.expected.items():
        if key not in found:
            states["missing"] += 1
            tally.wrong.append(f"acknowledged and gone: {key}")
            continue
        id, state, evaluation = found[key]
        states[state] += 1
        if id != tally.ids[key]:
            tally.wrong.append(f"acknowledged as {tally.ids[key]}, stored as {id}")
        if state != "done" or evaluation.get("verdict") != verdict.value:
            tally.wrong.append(f"{key}: {state}, {evaluation.get('verdict')}, not {verdict.value}")
    again = rows(store, "SELECT key FROM requests GROUP BY client, key HAVING count(*) > 1")
    tally.wrong += [f"two rows for key {key}" for (key,) in again if key is not None]
    return states


async def _drained(victim: Victim) -> float:
    begun = time.monotonic()
    while time.monotonic() - begun < _DRAIN_S:
        ((left,),) = rows(victim.store, "SELECT count(*) FROM requests WHERE finished IS NULL")
        if not left:
            break
        await asyncio.sleep(0.25)
    return time.monotonic() - begun


async def chaos(
    seconds: float, folder: Path, *, seed: int = 0, judges: int = 2, searches: int = 4,
    batch: int = 6, pace_s: float = 3.0,
) -> dict[str, object]:  # fmt: skip
    """Run it and say what happened; ``wrong`` is empty where all is well."""
    rng = random.Random(seed)
    victim = Victim(folder, judges=judges)
    victim.start()
    await victim.ready()
    proxy = Proxy(victim.port, rng, cut=0.4)
    await proxy.start()
    url, tally = f"http://{HOST}:{proxy.port}", Tally()
    monkeys = Monkeys(victim, rng, pace_s=pace_s)
    breaking = asyncio.create_task(monkeys.run())
    stop = asyncio.Event()
    clients = [search(url, random.Random(seed + i), tally, stop) for i in range(searches)]
    clients.append(flood(url, random.Random(seed + 100), tally, stop, batch=batch))
    working = asyncio.gather(*clients)
    begun = time.monotonic()
    await asyncio.sleep(seconds)
    while len(monkeys.did) < len(set(DEEDS)):  # a slow machine gets to all of them, too
        await asyncio.sleep(0.1)
    took = time.monotonic() - begun
    breaking.cancel()
    await asyncio.gather(breaking, return_exceptions=True)
    if not await _listens(victim):  # it was being started again
        victim.kill()
        victim.start()
        await victim.ready()
    victim.limit_files(-1)
    stop.set()
    await working
    drain_s = await _drained(victim)
    status = await victim.stop()
    await proxy.stop()
    states = verified(victim.store, tally)
    twice = rows(victim.store, "SELECT count(*), sum(attempt > 1), max(attempt) FROM requests")
    return {
        "seconds": round(took, 1), "seed": seed, "broke": dict(monkeys.did), "cuts": proxy.cuts,
        "acknowledged": len(tally.expected), "states": dict(states),
        "waited_for": tally.answered, "lost": tally.lost,
        "not_acknowledged": tally.unacknowledged,
        "in_store": twice[0][0], "tried_again": twice[0][1], "most_attempts": twice[0][2],
        "drain_s": round(drain_s, 1), "exit_status": status, "wrong": tally.wrong,
    }  # fmt: skip


async def _listens(victim: Victim) -> bool:
    try:
        await victim.ready(10.0)
    except (TimeoutError, AssertionError):
        return False
    return True


def serve_here(port: int, store: Path, judges: int) -> None:
    """The server that is broken: impatient, so that ten minutes hold much."""
    from kernelsmith.service.fleet import Care
    from kernelsmith.service.limits import Limits
    from kernelsmith.service.posts import posts_for
    from kernelsmith.service.process import Patience
    from kernelsmith.service.server import ServerConfig, serve

    config = ServerConfig(
        folder=store, posts=posts_for(["null"], judges), port=port,
        limits=Limits(read_s=5.0, rate=1000.0), patience=Patience(beat_s=0.5, silence_s=3.0),
        care=Care(rest_s=1.0, most_rest_s=5.0), grace_s=5.0,
    )  # fmt: skip
    asyncio.run(serve(config, ready=lambda url: print(url, flush=True)))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--judges", type=int, default=2)
    parser.add_argument("--pace", type=float, default=3.0, help="seconds between misfortunes (3)")
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--serve", type=int, metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve is not None:
        serve_here(args.serve, args.store, args.judges)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(
            chaos(args.seconds, Path(folder), seed=args.seed, judges=args.judges, pace_s=args.pace)
        )
        if found["wrong"]:
            print(Path(folder, "server.log").read_text()[-4000:], file=sys.stderr)
    about = {
        "benchmark": "service_chaos",
        "command": f"python -m benchmarks.service_chaos --seconds {args.seconds:g}",
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    text = json.dumps(about | found, indent=1)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
