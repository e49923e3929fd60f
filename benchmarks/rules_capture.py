"""What the compiler says about many tasks, asked ahead of judging, kept in one file.

Asking the compiler needs the device and seconds per task; done beforehand, nothing of it runs while
candidates are timed. What was found is pickled into a zip file, by task and by the hash of the
families' own source: other families are found anew.
"""

import hashlib
import pickle
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from benchmarks.report import ROOT, say
from benchmarks.rules_process import Done, bounded
from benchmarks.rules_tasks import Chosen
from kernelsmith.propose.rules.families import Begun, Families, Finder, FindFamilies

_RULES = ROOT / "src" / "kernelsmith" / "propose" / "rules"
_CHOOSING = {
    "choosing.py", "crossover.py", "diagnosis.py", "guidance.py", "mutation.py", "occupancy.py",
    "proposer.py", "statistics.py",
}  # fmt: skip
"""What decides which variant is written, and changes none of them."""


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
        with zipfile.ZipFile(self._path) as file:
            parts = (name.partition(":") for name in file.namelist())
            return {key for made, _, key in parts if made == self._version}

    def put(self, key: str, content: bytes) -> None:
        """Add one."""
        with self._lock, zipfile.ZipFile(self._path, "a", zipfile.ZIP_DEFLATED) as file:
            file.writestr(f"{self._version}:{key}", content)

    def get(self, key: str) -> bytes:
        """Take one out."""
        with self._lock, zipfile.ZipFile(self._path) as file:
            return file.read(f"{self._version}:{key}")


def capture(
    tasks: Sequence[Chosen], store: Store, *, backend: str, at_once: int, limit_s: float,
    until: float, options: str,
) -> None:  # fmt: skip
    """Find the families of all tasks that are not there, until the clock says stop."""
    there = store.keys()
    todo = [each for each in tasks if each.key not in there and not each.left_out]

    def one(chosen: Chosen) -> None:
        left = min(limit_s, until - time.monotonic())
        if left < 5:
            return
        begun = time.monotonic()
        content, done = captured(chosen, backend=backend, options=options, limit_s=left)
        if done.cut_short and left < limit_s:
            return  # the next session has more time
        if content is None:
            reasons = (done.error or "nothing was captured",)
            content = pickle.dumps(Begun(families=Families(reasons=reasons)))
        store.put(chosen.key, content)
        families = pickle.loads(content).families
        names = ", ".join(each.space.template for each in families.members) or "none"
        took = time.monotonic() - begun
        say(f"captured {chosen.key} in {took:.1f} s: {names}; {'; '.join(families.reasons)[:160]}")

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(one, todo))


def captured(
    chosen: Chosen, *, backend: str, options: str, limit_s: float
) -> tuple[bytes | None, Done]:
    """The pickled families of one task, from a process of its own; or why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "families")
        done = bounded(
            "benchmarks.rules_capture",
            [str(chosen.path), backend, options, str(out)],
            limit_s=limit_s,
        )
        if done.error or not out.is_file():
            return None, done
        return out.read_bytes(), done


def finder(content: bytes) -> FindFamilies:
    """What a proposer is given so that it finds nothing anew."""
    begun: Begun = pickle.loads(content)
    return begun.joined


def main() -> None:
    path, backend, options, out = sys.argv[1:]
    find = Finder(options=tuple(options.split(",")))
    task = Chosen(key="", path=Path(path)).task(gpu=backend != "cpu")
    content = pickle.dumps(find.begun(task, backend))
    pickle.loads(content)
    Path(out).write_bytes(content)


if __name__ == "__main__":
    main()
