"""How much the ratio of one and the same candidate varies on a GPU, with builds going on beside it.

Four candidates of about 1.5, 4, 35 and over 100 us a launch, each judged in fresh processes (judge,
zygote, programs) with champion settings, in turn, while ``--builds`` neighbours compile C++ in a
loop at nice 10. Then the same without one precaution at a time: warm-up, outlier rule, graphs,
rotation of inputs, interleaving, swept caches; beside them, in turn, as it is.

Reported: (max - min) / median of the device ratio over all evaluations, over those of one session
(another session may get another card) and over the fresh pairs of one evaluation; of the plain-call
ratio; in how many evaluations the interval covers the median of their session; the intervals' mean
width.
"""

import argparse
import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.cases.gpu import NOISE, GpuCase
from benchmarks.gpu_ledger import Job, Ledger, Record, gpu_options
from benchmarks.gpu_remote import RemoteJudge
from benchmarks.report import say, table

SWITCHES: dict[str, dict[str, object]] = {
    "as it is": {},
    "no warm-up": {"warmups": 0},
    "no outlier rule": {"outliers": False},
    "no graph": {"graph": False},
    "no rotation": {"rotate": False},
    "no interleaving": {"interleave": False},
    "no heat": {"heat_us": 0.0},
}
LIMIT_S = 180.0
_SOURCE = """
#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <vector>
std::map<std::string, std::vector<int>> found(const std::string& text) {
  std::map<std::string, std::vector<int>> all;
  std::regex word("[a-z]+(-[0-9]+)*");
  for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it)
    all[it->str()].push_back(it->position());
  for (auto& [key, places] : all) std::sort(places.begin(), places.end());
  return all;
}
"""


@contextmanager
def builds(count: int) -> Iterator[Path]:
    """Keep so many compilers busy at nice 10; yields the folder in which they count their work."""
    with tempfile.TemporaryDirectory(prefix="builds-") as name:
        home = Path(name)
        (home / "build.cpp").write_text(_SOURCE)
        compiler = shutil.which("g++") or shutil.which("c++")
        if count and compiler is None:
            raise SystemExit("no g++ for the neighbours' builds; try --builds 0")
        loop = f"while :; do {compiler} -O2 -c build.cpp -o $0.o && printf . >> $0.done; done"
        processes = [
            subprocess.Popen(
                ["nice", "-n", "10", "sh", "-c", loop, str(index)], cwd=home, process_group=0
            )
            for index in range(count)
        ]
        try:
            yield home
        finally:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def built(home: Path) -> int:
    """How many files the neighbours have compiled."""
    return sum(path.stat().st_size for path in home.glob("*.done"))


def judged(
    case: GpuCase, switch: str, args: argparse.Namespace, ledger: Ledger, limit_s: float
) -> Record:
    """Judge once with everything opened for it."""
    how: dict[str, object] = {"sanitize": False}  # ncu comes after the timing and moves no ratio
    with RemoteJudge(
        effort=args.effort, backend=args.backend, settings=how, gpu=SWITCHES[switch]
    ) as judge:
        record = judge.judge(case.task, case.source("right"), limit_s=limit_s)
        ledger.note(device=judge.device)
    return {"case": case.name, "switch": switch, "builds": args.builds} | record


def jobs(args: argparse.Namespace, ledger: Ledger) -> list[Job]:
    """List what is judged: the candidates turn by turn, then the switches turn by turn."""
    todo: list[Job] = []

    def add(kind: str, case: GpuCase, switch: str, index: int) -> None:
        def job(limit_s: float) -> Record:
            return {"kind": kind} | judged(case, switch, args, ledger, limit_s)

        todo.append((f"{kind}/{case.name}/{switch}/{index}", job))

    cases = [case for case in NOISE if not args.only or case.name in args.only]
    for index in range(args.count):
        for case in cases:
            add("noise", case, "as it is", index)
    for index in range(args.ablation_count):
        for case in (case for case in NOISE if case.name in args.ablation):
            for switch in SWITCHES:
                add("ablation", case, switch, index)
    return todo


def summarise(records: dict[str, Record]) -> list[dict[str, Any]]:
    """Reduce the evaluations of each candidate under each switch."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in records.values():
        key = (record["kind"], record["case"], record["switch"])
        groups.setdefault(key, []).append(record)
    found = []
    for (kind, case, switch), runs in groups.items():
        head = {"kind": kind, "case": case, "switch": switch, "evaluations": len(runs)}
        found.append(head | _reduced([run for run in runs if "ratio" in run]))
    return found


def _reduced(good: list[Record]) -> dict[str, Any]:
    if not good:
        return {"passed": 0}
    ratios = [run["ratio"] for run in good]
    calls = [run["call"]["ratio"] for run in good if run["call"]]
    middle = statistics.median(ratios)
    sessions: dict[int, list[Record]] = {}
    for run in good:
        sessions.setdefault(run["session"], []).append(run)
    return {
        "passed": len(good),
        "candidate_us": statistics.median(run["candidate_us"] for run in good),
        "baseline_us": statistics.median(run["baseline_us"] for run in good),
        "median": middle,
        "spread": _spread(ratios),
        "spread_in_session": _largest(
            _spread([run["ratio"] for run in each]) for each in sessions.values()
        ),
        "spread_of_pairs": _largest(_spread(run["pairs"]) for run in good),
        "sd": statistics.stdev(ratios) / middle if len(ratios) > 1 else None,
        "call_median": statistics.median(calls) if calls else None,
        "call_spread": _spread(calls),
        "covers": sum(map(_covering, sessions.values())) / len(good),
        "width": statistics.fmean((run["high"] - run["low"]) / run["ratio"] for run in good),
        "modes": sorted({run["mode"] for run in good}),
        "noisy": sum("noisy" in run["labels"] for run in good),
        "samples": sum(run["samples"] for run in good),
        "dropped": sum(run["dropped"] for run in good),
        "pairs": statistics.median(len(run["pairs"]) for run in good),
        "seconds": statistics.median(run["seconds"] for run in good),
    }


def _spread(values: list[float]) -> float | None:
    if len(values) < 2:
        return None
    return (max(values) - min(values)) / statistics.median(values)


def _covering(runs: list[Record]) -> int:
    """How many of one session's intervals hold its median."""
    middle = statistics.median(run["ratio"] for run in runs)
    return sum(run["low"] <= middle <= run["high"] for run in runs)


def _largest(spreads: Iterable[float | None]) -> float | None:
    return max((each for each in spreads if each is not None), default=None)


def show(found: list[dict[str, Any]]) -> None:
    """Print the tables for people."""
    for kind in ("noise", "ablation"):
        rows = []
        for each in (each for each in found if each["kind"] == kind):
            name = each["case"] if kind == "noise" else f"{each['case']}, {each['switch']}"
            row = [name, f"{each['passed']}/{each['evaluations']}"]
            if each["passed"]:
                row += [f"{each['candidate_us']:.2f}", "/".join(each["modes"])]
                row += [f"{each['median']:.3f}", _percent(each["spread"])]
                row += [_percent(each["spread_of_pairs"])]
                row += [_percent(each["call_spread"]), _percent(each["covers"])]
                row += [_percent(each["width"]), f"{each['pairs']:.0f}", f"{each['seconds']:.1f}"]
            rows.append(row + [""] * (12 - len(row)))
        head = (
            "candidate", "passed", "us", "mode", "ratio", "spread", "pairs' spread",
            "call's spread", "interval covers median", "width", "pairs", "s each",
        )  # fmt: skip
        if rows:
            print(f"\n{kind}\n{table(head, rows)}")
    print("\nspread: (max - min) / median over the evaluations")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}"


def main() -> None:
    parser = gpu_options(__doc__ or "")
    names = [case.name for case in NOISE]
    parser.add_argument("--count", type=int, default=20, metavar="N", help="evaluations each (20)")
    parser.add_argument("--builds", type=int, default=8, metavar="N", help="neighbours (8)")
    parser.add_argument(
        "--ablation-count", type=int, default=6, metavar="N", help="evaluations per switch (6)"
    )
    parser.add_argument(
        "--ablation", nargs="+", choices=names, default=["softmax"], help="of which (softmax)"
    )
    parser.add_argument("--only", nargs="+", choices=names, help="not all four candidates")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N",
        help="judges at once (1); they take turns at timing, the rest overlaps",
    )  # fmt: skip
    parser.add_argument("--effort", default="thorough", help="how thorough (thorough)")
    args = parser.parse_args()
    ledger = Ledger("gpu_noise", args, summarise)
    with tempfile.TemporaryDirectory() as cache, builds(args.builds) as home:
        os.environ["KERNELSMITH_CACHE"] = os.environ["XDG_CACHE_HOME"] = cache
        time.sleep(1.0 if args.builds else 0.0)
        begun = time.monotonic()
        ledger.go_through(jobs(args, ledger), limit_s=LIMIT_S * args.jobs, at_once=args.jobs)
        rate = 60 * built(home) / (time.monotonic() - begun)
    ledger.note_session(neighbours=args.builds, neighbours_files_per_minute=round(rate, 1))
    show(summarise(ledger.records))
    say(f"{args.builds} neighbours compiled {rate:.0f} files a minute; wrote {ledger.path.name}")


if __name__ == "__main__":
    main()
