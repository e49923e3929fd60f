"""What a candidate may do to the device, and whether the judge and the GPU come through it.

Each fault with a judge of its own: a right candidate first, then the fault, then the right one
again by the same judge. Expected: the verdict named below, the right candidate passed both times,
no process left on the device, and after closing as much memory in use as before.

The ``killed`` ones are right candidates; a thread looks among the processes below the judge for the
one that holds the candidate's mark in its memory, and ends it with SIGKILL in the middle of timing
(by the clock of a run that nobody disturbs). Killed once is an accident and is judged again; killed
twice is the candidate's own doing.
"""

import argparse
import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cases.gpu import HERE, MEDIUM
from benchmarks.gpu_ledger import Job, Ledger, Record, gpu_options, smi, smi_rows
from benchmarks.gpu_remote import RemoteJudge
from benchmarks.report import say, table

MARK = b"kernelsmith-benchmark-candidate-7f3a90c2"
LIMIT_S = 240.0
FREED_MIB, FREED_S = 32.0, 20.0
"""Memory above what was in use before that counts as given back, and how long it may take."""
_LARGEST_MAP = 256 << 20
_OLD_S = 2.0
"""By then a candidate's process has its source; one without the mark is somebody else's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One file, and what the judge may say of it."""

    name: str
    expected: tuple[str, ...]
    kills: int = 0
    """How often its process is killed."""
    static: bool = True

    @property
    def source(self) -> str:
        file = "marked" if self.kills else self.name
        return (HERE / "faults" / f"{file}.py").read_text()


FAULTS = (
    Fault(name="illegal_address", expected=("crashed",)),
    Fault(name="endless_kernel", expected=("timed_out",)),
    Fault(name="out_of_memory", expected=("crashed",)),
    Fault(name="memory_hoarder", expected=("crashed", "cheated", "timed_out"), static=False),
    Fault(name="left_spinning", expected=("timed_out", "cheated", "crashed"), static=False),
    Fault(name="left_spinning_late", expected=("timed_out", "cheated", "crashed"), static=False),
    Fault(name="killed_once", expected=("passed",), kills=1),
    Fault(name="killed_twice", expected=("crashed",), kills=2),
)


def below(pid: int) -> Iterator[int]:
    """All processes below one."""
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(word) for word in listed.read_text().split()]
        except OSError:
            continue
        for child in children:
            yield child
            yield from below(child)


def holds(pid: int, mark: bytes) -> bool:
    """Whether a process has the mark in writable memory of its own."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            return any(mark in _read(memory, *place) for place in _places(maps))
    except OSError:
        return False


def _places(maps: list[str]) -> Iterator[tuple[int, int]]:
    for line in maps:
        words = line.split()
        start, end = (int(word, 16) for word in words[0].split("-"))
        own = len(words) < 6 or words[5] == "[heap]" or words[5].startswith("[anon")
        if own and words[1].startswith("rw") and end - start <= _LARGEST_MAP:
            yield start, end


def _read(memory: Any, start: int, end: int) -> bytes:
    try:
        memory.seek(start)
        return bytes(memory.read(end - start) or b"")
    except (OSError, ValueError, OverflowError):
        return b""


class Killer(threading.Thread):
    """Kills the candidate's process a while after it begins, as often as asked."""

    def __init__(self, judge: RemoteJudge, *, after_s: float, kills: int) -> None:
        super().__init__(daemon=True)
        self._judge, self._after_s, self._left = judge, after_s, kills
        self._over = threading.Event()
        self._seen: dict[int, float] = {}
        self._others: set[int] = set()
        self.killed: list[dict[str, float | int]] = []

    def run(self) -> None:
        begun = time.monotonic()
        due = begun + self._after_s
        while self._left and not self._over.wait(0.02):
            # Reading memory takes long: look before it is time, and then know whom to kill.
            marked = self._marked()
            while marked and _runs(marked) and time.monotonic() < due:
                self._over.wait(0.005)
            if marked is None or self._over.is_set():
                continue
            with contextlib.suppress(ProcessLookupError):
                os.kill(marked, signal.SIGKILL)
                now = time.monotonic()
                self.killed.append({"pid": marked, "after_s": round(now - begun, 3)})
                self._left, due = self._left - 1, now + self._after_s

    def _marked(self) -> int | None:
        """Find the candidate's process, newest first; one without the mark is soon given up."""
        if self._judge.pid is None:
            return None
        for pid in sorted(below(self._judge.pid), reverse=True):
            seen = self._seen.setdefault(pid, time.monotonic())
            if pid in self._others:
                continue
            if holds(pid, MARK):
                return pid
            if time.monotonic() - seen > _OLD_S:
                self._others.add(pid)
        return None

    def end(self) -> None:
        """Stop looking."""
        self._over.set()
        self.join()


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def middle_of_timing(record: Record) -> float:
    """Seconds from asking to the middle of timing, from the stages of an undisturbed run."""
    spent = record["spent"]
    return float(record["seconds"] - spent.get("time", 0.0) / 2)


def used_mib() -> float | None:
    """Memory in use on the GPU."""
    found = smi("memory.used")
    return float(found["memory.used"]) if found else None


def freed(before: float | None) -> tuple[float | None, float]:
    """Wait until memory is back where it was; return what is in use then, and the seconds."""
    begun = time.monotonic()
    while True:
        now, waited = used_mib(), time.monotonic() - begun
        if now is None or before is None or now <= before + FREED_MIB or waited > FREED_S:
            return now, round(waited, 2)
        time.sleep(0.25)


def tried(fault: Fault, args: argparse.Namespace, ledger: Ledger, limit_s: float) -> Record:
    """Right, fault, right again; and what became of the device."""
    before = used_mib()
    settings: dict[str, object] = {"timeout_s": args.timeout_s, "static": fault.static}
    judge = RemoteJudge(effort=args.effort, backend=args.backend, settings=settings)
    killed: list[dict[str, float | int]] = []

    def judged(source: str) -> Record:
        return judge.judge(MEDIUM.task, source, limit_s=limit_s / 4)

    with judge:
        first = judged(MEDIUM.source("right"))
        processes = len(smi_rows("pid", "compute-apps"))
        memory = used_mib()
        if fault.kills:
            judged(fault.source)  # builds it, so that the next run is like the one disturbed
            calm = judged(fault.source)
            after_s = middle_of_timing(calm) if calm["said"] == "passed" else 1.0
            killer = Killer(judge, after_s=after_s, kills=fault.kills)
            killer.start()
            found = judged(fault.source)
            killer.end()
            killed = killer.killed
        else:
            found = judged(fault.source)
        waited, waited_s = freed(memory)
        processes_then = len(smi_rows("pid", "compute-apps"))
        again = judged(MEDIUM.source("right"))
        ledger.note(device=judge.device)
    closed, closed_s = freed(before)
    record = {
        "said": found["said"], "expected": fault.expected, "message": found["message"],
        "seconds": found["seconds"], "killed": killed,
        "right_before": first["said"], "right_after": again["said"],
        "ratio_before": first.get("ratio"), "ratio_after": again.get("ratio"),
        "message_after": again["message"],
        "memory_mib": {"before": before, "open": memory, "after_fault": waited, "closed": closed},
        "freed_s": waited_s, "closed_s": closed_s,
        "processes": processes, "processes_after": processes_then,
    }  # fmt: skip
    return record | {"wrong": wrong(record, fault, before)}


def wrong(record: Record, fault: Fault, before: float | None) -> list[str]:
    """List what is not as it should be."""
    found = []
    if record["said"] not in fault.expected:
        found.append(f"the verdict is {record['said']}, not {' or '.join(fault.expected)}")
    if len(record["killed"]) != fault.kills:
        found.append(f"its process was killed {len(record['killed'])} times, not {fault.kills}")
    for when in ("before", "after"):
        if record[f"right_{when}"] != "passed":
            found.append(f"the right candidate {when} it: {record[f'right_{when}']}")
    memory = record["memory_mib"]
    if before is None or memory["closed"] is None:
        found.append("nvidia-smi says nothing of memory")
    elif memory["closed"] > before + FREED_MIB:
        found.append(f"{memory['closed'] - before:.0f} MiB more in use than before")
    if record["processes_after"] > record["processes"]:
        found.append("more processes on the device after it than before it")
    return found


def jobs(args: argparse.Namespace, ledger: Ledger) -> list[Job]:
    def job_of(fault: Fault) -> Job:
        return fault.name, lambda limit_s: tried(fault, args, ledger, limit_s)

    return [job_of(fault) for fault in FAULTS if not args.only or fault.name in args.only]


def summarise(records: dict[str, Record]) -> dict[str, Any]:
    """Count the faults that the judge and the device came through."""
    good = sum(not record["wrong"] for record in records.values())
    return {"faults": len(records), "as_expected": good}


def show(records: dict[str, Record]) -> None:
    """Print the table for people."""
    rows = []
    for name, record in records.items():
        memory = record["memory_mib"]
        rows.append(
            [name, record["said"], record["right_after"], memory["before"], memory["open"],
             memory["after_fault"], memory["closed"], f"{record['freed_s']:.1f}",
             "no" if record["wrong"] else "yes"]
        )  # fmt: skip
    head = (
        "fault", "verdict", "right one after it", "MiB before", "judge open", "after it", "closed",
        "freed, s", "as it should be",
    )  # fmt: skip
    print(table(head, rows))
    for name, record in records.items():
        for each in record["wrong"]:
            print(f"{name}: {each}: {record['message']}")


def main() -> None:
    parser = gpu_options(__doc__ or "")
    names = [fault.name for fault in FAULTS]
    parser.add_argument("--only", nargs="+", choices=names, help="these faults")
    parser.add_argument(
        "--timeout-s", type=float, default=10.0, metavar="S", help="the judge's, per request (10)"
    )
    parser.add_argument("--effort", default="usual", help="how thorough (usual)")
    args = parser.parse_args()
    ledger = Ledger("gpu_faults", args, summarise)
    ledger.go_through(jobs(args, ledger), limit_s=LIMIT_S)
    show(ledger.records)
    say(f"wrote {ledger.path.name}")


if __name__ == "__main__":
    main()
