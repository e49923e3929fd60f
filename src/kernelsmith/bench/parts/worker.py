"""A worker of a bench: takes jobs from its input, one line each, and answers in lines.

It is a process of its own so that a job that kills it (a driver that crashes, memory that runs
out) costs that job and nothing else, and so that each one can have a device to itself.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from kernelsmith.bench.job import Job, Unfinished, Workbench, done
from kernelsmith.bench.ledger import written
from kernelsmith.bench.record import Fault
from kernelsmith.domain.codec import decode
from kernelsmith.errors import BackendUnavailable, EvaluationLost, ProposerUnavailable, SmithError
from kernelsmith.evaluate.sandbox.syscalls import PR_SET_PDEATHSIG, prctl
from kernelsmith.run.progress import Progress

_EVERY_S = 0.5
"""Between two lines of progress."""


class _Told:
    """Says how far a job is, not too often."""

    def __init__(self, answers: TextIO) -> None:
        self._answers, self._last = answers, 0.0

    def __call__(self, progress: Progress) -> None:
        """Pass one more step on."""
        if time.monotonic() - self._last < _EVERY_S and progress.told < progress.of:
            return
        self._last = time.monotonic()
        best = None if progress.best is None else round(progress.best.value, 4)
        _say(
            self._answers,
            {"progress": [progress.told, progress.of], "best": best, "usd": progress.usd},
        )


def _say(answers: TextIO, what: dict[str, object]) -> None:
    answers.write(json.dumps(what) + "\n")
    answers.flush()


async def _serve(answers: TextIO, bench: Workbench) -> None:
    try:
        while line := await asyncio.to_thread(sys.stdin.readline):
            job = decode(json.loads(line), Job)
            assert isinstance(job, Job)
            try:
                record = await done(job, bench, _Told(answers))
            except (BackendUnavailable, ProposerUnavailable) as error:
                _say(answers, {"fatal": str(error)})
            except EvaluationLost as error:
                _say(answers, {"missing": f"not judged, our fault: {error}", "fault": Fault.OURS})
            except SmithError as error:
                _say(answers, {"missing": str(error), "fault": Fault.REQUEST})
            else:
                if record is None:
                    _say(answers, {"stopped": True})
                    return
                if isinstance(record, Unfinished):
                    _say(answers, {"unfinished_usd": record.usd})
                    continue
                _say(answers, {"record": written(record)})
    finally:
        await bench.close()


def main(opened: Callable[[], Workbench] = Workbench) -> None:
    """Serve until the input ends or someone asks for the end.

    Args:
        opened: Makes what jobs are done on, before there is a loop.
    """
    # Whoever started it may be killed; then nobody waits for its answers.
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # What libraries print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        bench = opened()
    except SmithError as error:
        sys.stdin.readline()
        _say(answers, {"fatal": str(error)})
    else:
        with suppress(asyncio.CancelledError):  # asked to end while others judged for it
            asyncio.run(_serve(answers, bench))
    answers.close()
    os._exit(0)  # a thread may still wait for the next line


if __name__ == "__main__":
    main()
