"""How long N processes take to open and to leave a CUDA context side by side.

A judge opens some fourteen contexts for a task. If many at once take as long as one after the
other, the driver is what several judges wait for, and fewer processes help where more judges do
not. Each process is forked from one that has torch loaded, as the judge's are; settings of the
driver that may matter are tried as they are and changed.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from benchmarks.report import say
from kernelsmith.errors import BackendUnavailable
from kernelsmith.evaluate.cuda.nvml import Nvml

SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    {"CUDA_DEVICE_MAX_CONNECTIONS": "1", "CUDA_DISABLE_PERF_BOOST": "1"},
)
STAGES = ("open", "memory", "kernel", "library", "leave")
_BYTES = 1 << 29
_LIMIT_S = 60.0


def stages(ready: Any, answers: Any, settings: dict[str, str]) -> None:
    """One process: a context, memory, a first kernel, a first product, and the way out."""
    import torch

    os.environ.update(settings)
    ready.wait()
    times = [time.monotonic()]

    def done() -> None:
        torch.cuda.synchronize()
        times.append(time.monotonic())

    torch.cuda.init()
    torch.empty(1, device="cuda")
    done()
    held = torch.empty(_BYTES // 4, device="cuda")
    done()
    held.fill_(1.0)
    done()
    square = held[: 1 << 20].view(1 << 10, 1 << 10)
    torch.mm(square, square)
    done()
    answers.send(times)


def side_by_side(count: int, settings: dict[str, str]) -> dict[str, float]:
    """Medians over that many processes that begin at once, and until the last one has left."""
    context = multiprocessing.get_context("fork")
    ready = context.Barrier(count + 1)
    ends = []
    for _ in range(count):
        mine, theirs = context.Pipe()
        child = context.Process(target=stages, args=(ready, theirs, settings))
        child.start()
        theirs.close()
        ends.append((child, mine))
    ready.wait(_LIMIT_S)
    begun = time.monotonic()
    left: dict[Any, float] = {}
    there = {child.sentinel for child, _ in ends}
    while there:
        gone = wait(there, _LIMIT_S)
        if not gone:
            raise SystemExit(f"a process has not ended within {_LIMIT_S:.0f} s")
        left |= dict.fromkeys(gone, time.monotonic())
        there -= set(gone)
    spans = []
    for child, mine in ends:
        child.join()
        if child.exitcode:
            raise SystemExit(f"a process failed; its exit status is {child.exitcode}")
        spans.append([b - a for a, b in pairwise([*mine.recv(), left[child.sentinel]])])
    found = {
        name: round(statistics.median(column), 3)
        for name, column in zip(STAGES, zip(*spans, strict=True), strict=True)
    }
    return found | {"all": round(time.monotonic() - begun, 3)}


def measured(counts: Sequence[int], rounds: int) -> Iterator[dict[str, Any]]:
    """Every setting with every number of processes, the settings taking turns."""
    for count in counts:
        for settings in SETTINGS:
            runs = [side_by_side(count, settings) for _ in range(rounds)]
            row: dict[str, Any] = {"processes": count, "settings": settings, "rounds": runs}
            best = min(runs, key=lambda each: each["all"])
            named = " ".join(f"{k}={v}" for k, v in settings.items()) or "as it is"
            shown = ", ".join(f"{name} {value:.2f}" for name, value in best.items())
            say(f"{count:3} processes, {named}: {shown} s; {best['all'] / count:.2f} s each")
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--counts", default="1,4,12", help="processes at a time, with commas")
    parser.add_argument("--rounds", type=int, default=2, metavar="N")
    parser.add_argument("--out", type=Path, metavar="FILE")
    args = parser.parse_args()
    try:
        gpu = Nvml().devices()[0]
    except BackendUnavailable as error:
        raise SystemExit(str(error)) from None
    import torch  # loaded by whoever is forked from here, and not used: contexts are theirs

    about = {"device": gpu.name, "torch": torch.__version__, "cuda": torch.version.cuda}
    found = []
    for row in measured([int(each) for each in args.counts.split(",")], args.rounds):
        found.append(row)
        if args.out:  # whoever is cut short keeps what is there
            args.out.write_text(json.dumps({**about, "rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
