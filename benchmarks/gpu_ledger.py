"""Results of a GPU benchmark that are on disk after each step, for sessions cut short."""

import argparse
import json
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.report import ROOT, busy_share, command, commit, say

Record = dict[str, Any]
Job = tuple[str, Callable[[float], Record]]
"""A key, and what makes its record within so many seconds."""

NO_VERDICT = ("lost", "usage", "died", "no answer")
"""What ``benchmarks.gpu_remote`` says when there is no verdict; ``--retry`` judges these again."""
NOT_NOW = "not now"
"""Said by a job that leaves no record, for another session to do."""
_SMALLEST_S = 10.0
_DEATHS = 3
"""In a row; judges side by side may all have died of one event, which counts once."""
_SMI = "name,driver_version,memory.total,clocks.max.sm,clocks.sm,power.limit,temperature.gpu"


def gpu_options(doc: str) -> argparse.ArgumentParser:
    """Return the parser of a GPU benchmark, with the options that all of them have."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--budget-s", type=float, metavar="S", default=540.0,
        help="seconds after which nothing more is begun (540); run again to go on",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the JSON; if it is there, it is continued"
    )
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", nargs="+", default=None,
        help="go on from these instead (parts made elsewhere; FILE may be missing)",
    )  # fmt: skip
    parser.add_argument("--fresh", action="store_true", help="forget what --out holds")
    parser.add_argument("--retry", action="store_true", help="judge again what got no verdict")
    parser.add_argument("--commit", help="what is measured, where there is no git to ask")
    parser.add_argument("--backend", default="triton", help="for trying the benchmark itself out")
    return parser


def add_checkout(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add the option of the benchmarks that need a checkout of KernelBench."""
    parser.add_argument(
        "--kernelbench", type=Path, metavar="PATH", required=required,
        help="a checkout of KernelBench",
    )  # fmt: skip


class Ledger:
    """Records by key, written to one file after each; a later session goes on from there."""

    def __init__(
        self, name: str, args: argparse.Namespace, summarise: Callable[[dict[str, Record]], Any]
    ) -> None:
        self.path: Path = args.out or ROOT / "benchmarks" / "results" / f"{name[4:]}-h200.json"
        self.records: dict[str, Record] = {}
        self._anew: set[str] = set()
        self._summarise = summarise
        self._lock = threading.Lock()
        self._begun, self._budget_s = time.monotonic(), args.budget_s
        self._head: dict[str, Any] = {"benchmark": name, "device": None, "gpu": None}
        self._sessions: list[dict[str, Any]] = []
        self._extra: dict[str, Any] = {}
        for file in args.resume or ([] if args.fresh else [self.path]):
            if file.is_file():
                self._take(json.loads(file.read_text()))
        if args.retry:
            kept = {k: r for k, r in self.records.items() if r.get("said") not in NO_VERDICT}
            say(f"judging {len(self.records) - len(kept)} again")
            self.records = kept
        if self.records:
            say(f"going on from {len(self.records)} records")
        self._session: dict[str, Any] = {
            "command": command(name, args),
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "commit": args.commit or commit(),
            "root": os.geteuid() == 0,
            "busy_before": round(busy_share(1.0), 3),
        }
        self._sessions.append(self._session)
        self._head["gpu"] = smi(_SMI) or self._head["gpu"]

    def __contains__(self, key: str) -> bool:
        return key in self.records and key not in self._anew

    def anew(self, keys: Iterable[str]) -> None:
        """These are done once more; what is known of them stays until they are."""
        self._anew |= {*keys}

    @property
    def left_s(self) -> float:
        """Seconds of this session's budget that are left."""
        return float(self._budget_s - (time.monotonic() - self._begun))

    def note(self, **more: object) -> None:
        """Keep something about the whole benchmark; ``device`` goes to the head."""
        if device := more.pop("device", None):
            self._head["device"] = device
        self._extra |= more
        self._save()

    def note_session(self, **more: object) -> None:
        """Keep something about this session alone."""
        self._session |= more
        self._save()

    def add(self, key: str, record: Record) -> None:
        """Keep one record, on disk at once."""
        with self._lock:
            self.records[key] = record | {"session": len(self._sessions) - 1}
            self._anew.discard(key)
        self._save()

    def go_through(
        self, jobs: Iterable[Job], *, limit_s: float, at_once: int = 1, keys: Sequence[str] = (),
        least_s: float | None = None,
    ) -> bool:  # fmt: skip
        """Do what has no record yet while the budget lasts; return whether everything has one.

        The last jobs get what is left of the budget. If that was too little they leave no record,
        so that the next session does them with the full limit. Jobs may come one by one: the next
        is asked for when somebody is free to do it.

        Args:
            jobs: What to do, in this order.
            limit_s: What one may take.
            at_once: How many are done at a time.
            keys: What everything is, where not all of it comes as a job.
            least_s: What must be left to begin one; as long as they usually take if not given.

        Raises:
            SystemExit: The judge does not even start.
        """
        if not keys:
            jobs = list(jobs)
            keys = [key for key, _ in jobs]
        todo = (job for job in jobs if job[0] not in self)
        took: list[float] = []
        died: list[str] = []
        many = _DEATHS + at_once - 1
        turn, stopped = threading.Lock(), threading.Event()

        def do(job: Job) -> None:
            key, make = job
            usual = least_s or (statistics.median(took) if took else _SMALLEST_S)
            if self.left_s < max(_SMALLEST_S, usual) or len(died) >= many:
                stopped.set()  # time only shrinks, and others wait for what this one was given
                return
            allowed = min(limit_s, self.left_s)
            begun = time.monotonic()
            record = make(allowed)
            took.append(time.monotonic() - begun)
            if record.get("said") == "died":
                died.append(record["message"])
            else:
                died.clear()
            if allowed < limit_s and record.get("said") == "no answer":
                say(f"{key}: not done within the budget")
                return
            if record.get("said") == NOT_NOW:
                say(f"{key}: {record['message']}")
                return
            self.add(key, record)
            said = f"{record.get('said', '')} {record.get('ratio') or record.get('message', '')}"
            done = sum(other in self for other in keys)
            say(f"{done}/{len(keys)} {key}: {said[:150]}")

        def one_after_the_other() -> None:
            while len(died) < many and not stopped.is_set():
                with turn:
                    job = next(todo, None)
                if job is None:
                    return
                do(job)

        if at_once == 1:
            one_after_the_other()
        else:
            with ThreadPoolExecutor(at_once) as pool:
                try:
                    for each in [pool.submit(one_after_the_other) for _ in range(at_once)]:
                        each.result()
                finally:
                    stopped.set()  # interrupted, what is under way is done before it ends
        if len(died) >= many:
            raise SystemExit(f"the judge died {many} times in a row: {died[-1]}")
        left = sum(key not in self for key in keys)
        if left:
            say(f"budget spent: {left} of {len(keys)} are left; run again to go on")
        self._save()
        return not left

    def _take(self, earlier: dict[str, Any]) -> None:
        offset = len(self._sessions)
        self._sessions += earlier["sessions"]
        for key in ("device", "gpu"):
            self._head[key] = self._head[key] or earlier.get(key)
        self._extra |= earlier.get("notes", {})
        for key, record in earlier["records"].items():
            self.records[key] = record | {"session": record["session"] + offset}

    def _save(self) -> None:
        with self._lock:
            self._write()

    def _write(self) -> None:
        self._session["seconds"] = round(time.monotonic() - self._begun, 1)
        body = self._head | {
            "sessions": self._sessions,
            "notes": self._extra,
            "summary": self._summarise(self.records),
            "records": self.records,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".tmp")
        beside.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n")
        os.replace(beside, self.path)


def smi(fields: str, what: str = "gpu") -> dict[str, str] | None:
    """Ask nvidia-smi for some fields of the first GPU; nothing where there is none."""
    rows = smi_rows(fields, what)
    return rows[0] if rows else None


def smi_rows(fields: str, what: str = "gpu") -> list[dict[str, str]]:
    """Ask nvidia-smi for some fields of every GPU, or of every process (``compute-apps``)."""
    asked = ["nvidia-smi", f"--query-{what}={fields}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    if done.returncode:
        return []
    names = fields.split(",")
    lines = [line.split(", ") for line in done.stdout.strip().splitlines()]
    return [dict(zip(names, line, strict=False)) for line in lines]
