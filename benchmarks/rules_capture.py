"""What the compiler says about many tasks, asked ahead of judging, kept in one file.

Asking the compiler takes seconds per task. Done beforehand, nothing of it runs while candidates are
timed; done beside the judge, it takes the judge's lock for whatever it times. What was found is
pickled into a zip file, by task and by the hash of the families' own source: other families are
found anew.
"""

import hashlib
import pickle
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Lock

from benchmarks.report import ROOT, say
from benchmarks.rules_process import Done, bounded
from benchmarks.rules_seed import NOTHING, seeded
from benchmarks.rules_tasks import Chosen, file_name
from kernelsmith.evaluate.failure import lacks_memory
from kernelsmith.evaluate.sandbox.syscalls import PR_SET_PDEATHSIG, prctl
from kernelsmith.propose.rules.compiler import nursery
from kernelsmith.propose.rules.compiler.capture import environment
from kernelsmith.propose.rules.families import Begun, Families, Finder, FindFamilies

_RULES = ROOT / "src" / "kernelsmith" / "propose" / "rules"
_CHOOSING = {
    "choosing.py", "crossover.py", "diagnosis.py", "guidance.py", "mutation.py", "occupancy.py",
    "proposer.py", "statistics.py",
}  # fmt: skip
"""What decides which variant is written, and changes none of them."""
_SHORTEST_S = 5.0
"""With less time than this, nothing is begun."""


def version() -> str:
    """A hash of the source of the families."""
    digest = hashlib.sha256()
    for path in sorted(_RULES.rglob("*.py")):
        if path.name in _CHOOSING:
            continue
        digest.update(str(path.relative_to(_RULES)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


class Store:
    """Pickled families by key, in one file that a later session goes on with."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self._version = version()
        path.parent.mkdir(parents=True, exist_ok=True)

    def keys(self) -> set[str]:
        """What is there, as found by these rules."""
        if not self._path.is_file():
            return set()
        with self._lock, zipfile.ZipFile(self._path) as file:
            parts = (name.partition(":") for name in file.namelist())
            return {key for by, _, key in parts if by == self._version}

    def put(self, key: str, content: bytes) -> None:
        """Add one; the file is whole at any time."""
        with self._lock:
            part = self._path.with_suffix(".partial")
            if self._path.is_file():
                shutil.copyfile(self._path, part)
            else:
                part.unlink(missing_ok=True)
            with zipfile.ZipFile(part, "a", zipfile.ZIP_DEFLATED) as file:
                file.writestr(f"{self._version}:{key}", content)
            part.replace(self._path)

    def get(self, key: str) -> bytes:
        """Take one out."""
        with self._lock, zipfile.ZipFile(self._path) as file:
            return file.read(f"{self._version}:{key}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How the compiler is asked about many tasks."""

    backend: str
    options: str
    at_once: int
    limit_s: float
    """What one process may take."""
    until: float
    """By ``time.monotonic``: what is not done by then is left to another session."""
    lock: Path | None = None
    """The judge's lock, for what is timed."""
    beside: bool = True
    """Whether it judges meanwhile."""
    modes: tuple[str, ...] = ()
    """In which ``torch.compile`` makes its files ahead."""
    seeds: Path | None = None
    """The folder for those files, which are for this machine alone."""
    families: bool = True
    """Whether the rules are measured; else ``torch.compile`` is alone."""

    def seed(self, chosen: Chosen, mode: str) -> Path:
        """Where the files of one task go."""
        assert self.seeds is not None
        return self.seeds / f"{file_name(chosen.key)}-{mode}"


def captures(tasks: Sequence[Chosen], store: Store, how: Asking) -> Iterator[Chosen]:
    """Ask about all tasks that are not there; yield each as soon as everything about it is.

    It goes on in the background between two of them, and never far ahead: what the compiler times,
    it times while nobody is judged. Closed, it ends every process.
    """
    there, stop = store.keys(), Event()
    asked = {each.key: _parts(each, store, how, stop, there) for each in tasks}
    coming = deque(each for each in tasks if asked[each.key])
    running: dict[Future[bool], Chosen] = {}
    left, missed, ready = Counter[str](), set[str](), deque[Chosen]()
    with ThreadPoolExecutor(how.at_once) as pool:

        def go_on() -> None:
            while coming and len(left) + len(ready) < 2 * how.at_once:
                chosen = coming.popleft()
                left[chosen.key] = len(asked[chosen.key])
                running.update({pool.submit(part): chosen for part in asked[chosen.key]})

        try:
            go_on()
            yield from (each for each in tasks if not asked[each.key])
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for part in done:
                    chosen = running.pop(part)
                    left[chosen.key] -= 1
                    if not part.result():
                        missed.add(chosen.key)
                    if left[chosen.key]:
                        continue
                    del left[chosen.key]
                    if chosen.key not in missed:
                        ready.append(chosen)
                go_on()
                while ready:
                    yield ready.popleft()
                    go_on()
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _parts(
    chosen: Chosen, store: Store, how: Asking, stop: Event, there: set[str]
) -> list[Callable[[], bool]]:
    """What is to be asked about a task."""
    if chosen.left_out:
        return []
    missing = [mode for mode in how.modes if not how.seed(chosen, mode).is_file()]
    seeds = [partial(_seeds, chosen, mode, how, stop) for mode in missing]
    if chosen.key in there or not how.families:
        return [*seeds]
    return [partial(_families, chosen, store, how, stop), *seeds]


def _families(chosen: Chosen, store: Store, how: Asking, stop: Event) -> bool:
    """Find the families of one task; whether there was time for it."""
    begun = time.monotonic()
    left = min(how.limit_s, how.until - begun)
    if left < _SHORTEST_S:
        return False
    content, done = captured(chosen, how, limit_s=left, stop=stop)
    if done.cut_short and (left < how.limit_s or how.lock is not None or stop.is_set()):
        return False  # the next session has more time, or others will not have the device so long
    if how.at_once > 1 and had_no_memory(done.error, content):
        say(f"{chosen.key}: no memory beside others; ask again with --capture-jobs 1")
        return False
    if content is None:
        reasons = (done.error or "nothing was captured",)
        content = pickle.dumps(Begun(families=Families(reasons=reasons)))
    store.put(chosen.key, content)
    families = pickle.loads(content).families
    names = ", ".join(each.space.template for each in families.members) or "none"
    took = time.monotonic() - begun
    say(f"captured {chosen.key} in {took:.1f} s: {names}; {'; '.join(families.reasons)[:160]}")
    return True


def had_no_memory(error: str, content: bytes | None) -> bool:
    """Whether nothing was captured because the device was full."""
    reasons = "" if content is None else " ".join(pickle.loads(content).families.reasons)
    return lacks_memory(f"{error} {reasons}")


def _seeds(chosen: Chosen, mode: str, how: Asking, stop: Event) -> bool:
    """Have ``torch.compile`` make its files of one task; without them, it does so when judged."""
    begun = time.monotonic()
    left = min(how.limit_s, how.until - begun)
    if left < _SHORTEST_S:
        return True
    files, done = seeded(
        chosen, mode, backend=how.backend, lock=how.lock, limit_s=left, beside=how.beside,
        stop=stop,
    )  # fmt: skip
    if files != NOTHING:
        how.seed(chosen, mode).write_bytes(files)
    took = time.monotonic() - begun
    say(f"compiled {chosen.key} ({mode}) in {took:.1f} s: {len(files)} bytes; {done.error}")
    return True


def captured(
    chosen: Chosen, how: Asking, *, limit_s: float, stop: Event | None = None
) -> tuple[bytes | None, Done]:
    """The pickled families of one task, from a process of its own; or why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "families")
        lock = str(how.lock) if how.lock else ""
        # All of them ask one process that has the compiler loaded.
        address = nursery.address(environment(folder), gpu=how.backend != "cpu")
        done = bounded(
            "benchmarks.rules_capture",
            [str(chosen.path), how.backend, how.options, lock, str(out)],
            limit_s=limit_s, stop=stop, more={nursery.ADDRESS: address},
        )  # fmt: skip
        if done.error or not out.is_file():
            return None, done
        return out.read_bytes(), done


def finder(content: bytes) -> FindFamilies:
    """What a proposer is given so that it finds nothing anew."""
    begun: Begun = pickle.loads(content)
    return begun.joined


def main() -> None:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    path, backend, options, lock, out = sys.argv[1:]
    find = Finder(options=tuple(options.split(",")), lock=Path(lock) if lock else None)
    task = Chosen(key="", path=Path(path)).task(gpu=backend != "cpu")
    content = pickle.dumps(find.begun(task, backend))
    pickle.loads(content)
    Path(out).write_bytes(content)


if __name__ == "__main__":
    main()
