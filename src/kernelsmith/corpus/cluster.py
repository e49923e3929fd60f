"""The seventh stage: clusters of like tasks, their centres, and a round of annotation."""

import hashlib
import importlib.util
import json
import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from kernelsmith.corpus.deduplicate import forms
from kernelsmith.corpus.deduplicate.embed import vectors
from kernelsmith.corpus.run.runner import Runner, lent
from kernelsmith.corpus.store import Record, Store
from kernelsmith.errors import UsageError

MANIFEST = "centres.json"
_SMALLEST = 5


def cluster(store: Store, *, embedding: str = "tfidf", smallest: int = _SMALLEST) -> int:
    """Cluster every unique module; returns how many clusters there are.

    A record says its cluster (-1 has none of its like) and whether it is the centre: the member
    nearest to the mean.
    """
    if importlib.util.find_spec("sklearn") is None:
        raise UsageError("clustering needs scikit-learn: pip install 'kernelsmith[corpus]'")
    keys = [record.key for record in store.need("classify").kept()]
    texts = {r.key: r.text("code") for r in store.need("run").kept()}
    stage = store.stage("cluster")
    stage.clear()
    words = [" ".join(forms.tokens(forms.body_of(texts[key]))) for key in keys]
    if len(keys) < 2 * smallest:
        for key in keys:
            stage.add(Record(key=key, data={"cluster": -1, "centre": False}))
        stage.close()
        return 0
    found = vectors(words, embedding)
    algorithms: Any = import_module("sklearn.cluster")
    labels = algorithms.HDBSCAN(min_cluster_size=smallest, copy=True).fit_predict(found)
    members: dict[int, list[int]] = defaultdict(list)
    for index, label in enumerate(labels):
        members[int(label)].append(index)
    centres = set()
    for label, each in members.items():
        if label >= 0:
            mean = found[each].mean(axis=0)
            centres.add(each[int(np.argmax(found[each] @ mean))])
    for index, key in enumerate(keys):
        stage.add(Record(key=key, data={"cluster": int(labels[index]), "centre": index in centres}))
    stage.close()
    return len(centres)


def export_centres(store: Store, folder: Path) -> int:
    """Write every cluster's centre as a file to be edited; returns how many.

    Raises:
        UsageError: The folder holds something already.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{str(folder)!r} is not empty; name a new folder for the centres")
    texts = {r.key: r.text("code") for r in store.need("run").kept()}
    centres = [r for r in store.need("cluster").kept() if r.data.get("centre")]
    folder.mkdir(parents=True, exist_ok=True)
    listed = {}
    for record in centres:
        name = f"{int(record.number('cluster')):04d}_{_word(record.key.rpartition(':')[2])}.py"
        (folder / name).write_text(texts[record.key])
        listed[name] = {"key": record.key, "sha": _sha(texts[record.key])}
    (folder / MANIFEST).write_text(json.dumps(listed, indent=1))
    return len(centres)


def import_centres(
    store: Store, folder: Path, *, by: str, runner: Runner | None = None
) -> tuple[int, int]:
    """Take edited centres back in: checked in the sandbox, with who edited what.

    Returns how many were changed and taken, and how many were rejected; a rejected one leaves the
    original in place, with the reason in the stage's file.

    Raises:
        UsageError: The folder was not exported from here.
    """
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise UsageError(f"{str(folder)!r} has no {MANIFEST}; it was not exported by this command")
    listed = json.loads(manifest.read_text())
    originals = {r.key: r for r in store.need("run").kept()}
    stage = store.stage("run")
    taken = rejected = 0
    with lent(runner) as sandbox:
        for name, said in listed.items():
            path = folder / name
            if not path.is_file() or said["key"] not in originals:
                continue
            text = path.read_text()
            if _sha(text) == said["sha"]:
                continue
            checked = sandbox.check(said["key"], text)
            provenance = {"annotated_by": by, "annotated_from": said["sha"]}
            if checked.kept:
                old = originals[said["key"]]
                stage.add(Record(key=old.key, data={**old.data, **checked.data, **provenance}))
                taken += 1
            else:
                rejected += 1
                stage_of_rejects = store.stage("publish")
                stage_of_rejects.add(Record(key=f"annotation:{said['key']}", reason=checked.reason,
                                            detail=checked.detail))  # fmt: skip
                stage_of_rejects.close()
    stage.close()
    return taken, rejected


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _word(name: str) -> str:
    return re.sub(r"\W+", "_", name)[:60]
