"""Random survivors beside their originals, for somebody who did not write this to look at."""

import json
import random
from pathlib import Path

from kernelsmith.corpus.store import Store
from kernelsmith.errors import UsageError

_HOW = """\
# Is it faithful, is it meaningful?

Each folder holds `task.py` (what the corpus made) and `original.py` (the file it was cut from).
For each, write two words into `answers.tsv` behind the folder's name:

- **faithful**: yes, if `Model` computes what the original class computes on the path that runs
  (annotations, logging, registration and code behind missing packages may be gone); else no.
- **meaningful**: yes, if somebody could want a faster kernel for it: it does real work on inputs
  of plausible shape and type; else no.

Then put the figures into `hand_check.json` in the corpus's folder, and publish again:
`{"looked_at": 50, "by": "...", "faithful": 0, "meaningful": 0, "remarks": "..."}`
"""


def write_sample(store: Store, folder: Path, *, count: int, seed: int = 0) -> int:
    """Draw unique modules at random and lay them out; returns how many."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{str(folder)!r} is not empty; name a new folder for the sample")
    unique = sorted(r.key for r in store.need("deduplicate").kept())
    chosen = random.Random(seed).sample(unique, min(count, len(unique)))
    records = {r.key: r for r in store.need("run").kept()}
    lines = ["folder\tkey\tfaithful\tmeaningful\tremark"]
    for number, key in enumerate(chosen, start=1):
        source, path, name = key.split(":", 2)
        inner = folder / f"{number:02d}_{name}"
        inner.mkdir(parents=True)
        record = records[key]
        (inner / "task.py").write_text(record.text("code"))
        original = store.folder / "trees" / source / path
        if original.is_file():
            (inner / "original.py").write_bytes(original.read_bytes())
        told = ("inputs", "outputs", "ops", "notes", "how")
        about = {"key": key, **{name: record.data.get(name) for name in told}}
        (inner / "about.json").write_text(json.dumps(about, indent=1))
        lines.append(f"{inner.name}\t{key}\t\t\t")
    (folder / "README.md").write_text(_HOW)
    (folder / "answers.tsv").write_text("\n".join(lines) + "\n")
    return len(chosen)
