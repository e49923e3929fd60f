"""The last stage: tables in KernelBench's form, with a data card, and a folder of task files."""

import hashlib
import importlib.util
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from kernelsmith.corpus.card import card
from kernelsmith.corpus.classify import sample
from kernelsmith.corpus.compose import compose
from kernelsmith.corpus.store import Record, Store
from kernelsmith.domain.codec import Json
from kernelsmith.errors import UsageError

COLUMNS = (
    "problem_id", "name", "code", "level", "category", "family", "difficulty", "licence", "source",
    "version", "path", "class_name", "sha256", "parameters", "op_count", "inputs", "outputs",
    "random", "stateful", "exact", "workloads", "how", "cluster", "centre", "copies", "synthetic",
    "annotated_by", "model_written", "notes",
)  # fmt: skip


def rows(store: Store) -> Iterator[dict[str, Json]]:
    """Every unique, classified module as a row, in the order of keys."""
    joined = _joined(store)
    licences = {r.key: r.text("licence") for r in store.need("extract").kept()
                if not r.key.endswith("!file")}  # fmt: skip
    versions = {r.text("name"): r.text("version") for r in store.need("harvest")
                if r.text("kind") == "source"}  # fmt: skip
    for number, record in enumerate(sorted(joined, key=lambda each: each.key), start=1):
        yield _row(number, record, licences.get(record.key, ""), versions)


def _joined(store: Store) -> list[Record]:
    """Run, deduplicate, classify and cluster put together."""
    others: dict[str, dict[str, Json]] = {}
    for name in ("deduplicate", "classify", "cluster"):
        for record in store.stage(name).kept():
            others.setdefault(record.key, {}).update(record.data)
    kept = {record.key for record in store.need("classify").kept()}
    return [Record(key=r.key, data={**r.data, **others.get(r.key, {})})
            for r in store.need("run").kept() if r.key in kept]  # fmt: skip


def _row(number: int, record: Record, licence: str, versions: dict[str, str]) -> dict[str, Json]:
    source, path, name = [*record.key.split(":", 2), "", ""][:3]
    synthetic = bool(record.data.get("synthetic"))
    code = record.text("code")
    found: dict[str, Json] = {
        "problem_id": number,
        "name": f"{number}_{re.sub(r'[^A-Za-z0-9]+', '_', name or path)[:80]}",
        "code": code, "level": int(record.number("difficulty") or 1),
        "category": record.text("family"), "family": record.text("family"),
        "difficulty": int(record.number("difficulty") or 1), "licence": licence,
        "source": source, "version": versions.get(source, ""), "path": path, "class_name": name,
        "sha256": hashlib.sha256(code.encode("utf-8", "replace")).hexdigest(),
        "parameters": int(record.number("parameters")), "op_count": int(record.number("op_count")),
        "inputs": cast(Json, list(record.texts("inputs"))),
        "outputs": cast(Json, list(record.texts("outputs"))),
        "random": bool(record.data.get("random")), "stateful": bool(record.data.get("stateful")),
        "exact": bool(record.data.get("exact")), "workloads": int(record.number("workloads")),
        "how": record.text("how"), "cluster": int(record.number("cluster")),
        "centre": bool(record.data.get("centre")), "copies": int(record.number("copy_count")),
        "synthetic": synthetic, "annotated_by": record.text("annotated_by"),
        "model_written": bool(record.data.get("model_written")),
        "notes": cast(Json, list(record.texts("notes"))),
    }  # fmt: skip
    return found


def publish(
    store: Store, folder: Path, *, count: int | None = None, seed: int = 0, synthetic: int = 0,
    random_too: bool = True,
) -> int:  # fmt: skip
    """Write tables, task files and the card; returns the number of rows.

    Raises:
        UsageError: Nothing is left to publish.
    """
    joined = [r for r in _joined(store) if random_too or not r.data.get("random")]
    if count is not None:
        joined = sample(joined, count, seed)
    if not joined:
        raise UsageError("nothing to publish: no module passed every stage")
    keys = {record.key for record in joined}
    listed = [row for row in rows(store)
              if f"{row['source']}:{row['path']}:{row['class_name']}" in keys]  # fmt: skip
    made = compose(joined, synthetic, seed=seed) if synthetic else []
    listed += [_composed(len(listed) + n, each, listed) for n, each in enumerate(made, start=1)]
    if (folder / "corpus.jsonl").is_file():
        # Published before: its task files had other numbers.
        shutil.rmtree(folder / "tasks", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for row in listed:
            file.write(json.dumps(row, ensure_ascii=True) + "\n")
    wrote_parquet = _parquet(listed, folder / "corpus.parquet")
    tasks = folder / "tasks"
    for row in listed:
        family = str(row["family"]).replace(" ", "_")
        path = tasks / family / f"{row['name']}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f"FAMILY = {row['family']!r}\nDIFFICULTY = {row['difficulty']}\n"
        origin = f"ORIGIN = {str(row['source']) + ' ' + str(row['version'])!r}\n"
        path.write_text(str(row["code"]).rstrip() + f"\n\n\n{head}{origin}")
    (folder / "README.md").write_text(card(store, listed, parquet=wrote_parquet))
    return len(listed)


def _composed(number: int, record: Record, listed: Sequence[dict[str, Json]]) -> dict[str, Json]:
    parts = record.texts("parts")
    by_key = {f"{row['source']}:{row['path']}:{row['class_name']}": row for row in listed}
    known = [by_key[part] for part in parts if part in by_key]
    licences = sorted({str(row["licence"]) for row in known})
    row = _row(number, record, " AND ".join(licences), {})
    first = known[0] if known else {}
    row |= {"family": first.get("family", "other"), "category": first.get("family", "other"),
            "difficulty": 3, "level": 3, "source": "synthetic", "path": " + ".join(parts),
            "class_name": record.key.partition(":")[2]}  # fmt: skip
    row["name"] = f"{number}_{re.sub(r'[^A-Za-z0-9]+', '_', str(row['class_name']))[:80]}"
    return row


def _parquet(listed: Sequence[dict[str, Json]], path: Path) -> bool:
    if importlib.util.find_spec("pyarrow") is None:
        return False
    arrow: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    table = arrow.table({name: [row[name] for row in listed] for name in COLUMNS})
    parquet.write_table(table, path)
    return True
