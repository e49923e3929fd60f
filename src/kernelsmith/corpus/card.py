"""The data card: what is in a published corpus, where from, and what is known of its faults."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kernelsmith.corpus.harvest.licence import PERMISSIVE
from kernelsmith.corpus.store import STAGES, Store
from kernelsmith.domain.codec import Json

HAND_CHECK = "hand_check.json"
Row = dict[str, Json]


def card(store: Store, listed: Sequence[Row], *, parquet: bool) -> str:
    """Write the card in Markdown, with the header that a data set hub reads."""
    files = {"data_files": "corpus.parquet" if parquet else "corpus.jsonl"}
    head = f"---\nconfigs:\n- config_name: default\n  data_files: {files['data_files']}\n---\n"
    parts = [
        head, "# PyTorch modules as tasks\n",
        f"{len(listed)} self-contained PyTorch modules in KernelBench's form (`Model`, "
        "`get_init_inputs()`, `get_inputs()`, most with `get_workloads()`), cut out of packages by "
        "static analysis, run and checked in a sandbox, deduplicated and kept clear of benchmarks. "
        "Each row's `code` is one file that imports torch and the standard library only.\n",
        "## From files to tasks\n", _stages(store), "## Why modules fell out\n", _reasons(store),
        "## Families\n", _count(listed, "family"), "## Difficulty\n", _count(listed, "difficulty"),
        "## Licences\n",
        "Per file, from its header, else its package's metadata, else its licence text. A row "
        "inlines helpers of the packages it imports, each under its own licence; permissive here: "
        f"{', '.join(PERMISSIVE)}.\n", _count(listed, "licence"),
        "## Sources\n", _count(listed, "source"),
        "## Marks\n", _marks(listed), "## Checked by hand\n", _hand(store.folder),
        "## Inputs beside the authors' own\n", _agreement(store),
        "## Examples\n", _examples(listed), "## Hashes\n",
        "`sha256` is of the row's `code`. A row's origin is `source` `version`, `path`, "
        "`class_name`.\n",
    ]  # fmt: skip
    return "\n".join(parts)


def _table(head: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    rule = "|".join("---" for _ in head)
    body = "\n".join("| " + " | ".join(str(each) for each in line) + " |" for line in lines)
    return f"| {' | '.join(head)} |\n|{rule}|\n{body}\n"


def _stages(store: Store) -> str:
    lines = []
    for name in STAGES[:5]:
        if name == "extract":
            seen = kept = 0
            for record in store.stage(name):
                if not record.key.endswith("!file"):
                    seen += 1
                    kept += record.kept
            lines.append((name, seen, kept))
        elif name == "harvest":
            files = [r for r in store.stage(name) if r.text("kind") == "file"]
            lines.append(("harvest (files)", len(files), sum(r.kept for r in files)))
        else:
            count = store.count(name)
            lines.append((name, count.seen, count.kept))
    return _table(("stage", "looked at", "kept"), lines)


def _reasons(store: Store) -> str:
    lines: list[Sequence[object]] = []
    for name in STAGES[:5]:
        for reason, count in store.count(name).reasons[:12]:
            lines.append((name, reason, count))
    return _table(("stage", "reason", "count"), lines)


def _count(listed: Sequence[Row], column: str) -> str:
    counted = Counter(str(row[column]) for row in listed)
    return _table((column, "rows"), counted.most_common())


def _marks(listed: Sequence[Row]) -> str:
    marks = (
        ("random", "another output on every call; judged by its statistics or not at all"),
        ("stateful", "changes its buffers while it runs"),
        ("synthetic", "composed of other rows"), ("centre", "centre of a cluster"),
        ("model_written", "a model wrote the inputs"),
    )  # fmt: skip
    lines = [(name, sum(bool(row[name]) for row in listed), what) for name, what in marks]
    degenerate = sum(bool(row["notes"]) for row in listed)
    lines.append(("notes", degenerate, "an operator changes nothing on the inputs that are drawn"))
    return _table(("mark", "rows", "means"), lines)


def _hand(folder: Path) -> str:
    path = folder / HAND_CHECK
    if not path.is_file():
        return "Not yet: no sample of this corpus has been looked at by a person.\n"
    said = json.loads(path.read_text())
    return (
        f"{said['looked_at']} rows drawn at random, looked at by {said['by']}: "
        f"{said['faithful']} faithful to the original, {said['meaningful']} meaningful as a task. "
        f"{said.get('remarks', '')}\n"
    )


def _agreement(store: Store) -> str:
    counted: Counter[str] = Counter()
    for record in store.stage("run").kept():
        said = record.text("agreement")
        if said:
            counted[said] += 1
    total = sum(counted.values())
    if not total:
        return "No module here comes with a call by its authors that runs.\n"
    share = counted["yes"] / total
    rest = ", ".join(f"{n} differ in {why}" for why, n in counted.most_common() if why != "yes")
    return (
        f"Of {total} modules whose authors call them in a test or docstring, the inputs that were "
        f"found agree in number, rank and type for {counted['yes']} ({share:.0%}); {rest}.\n"
    )


def _examples(listed: Sequence[Row]) -> str:
    short = sorted(listed, key=lambda row: len(str(row["code"])))
    chosen = [short[len(short) // 4], short[len(short) // 2]] if short else []
    return "\n".join(
        f"`{row['source']}` {row['class_name']} ({row['family']}):\n\n```python\n"
        f"{str(row['code']).strip()}\n```\n" for row in chosen
    )  # fmt: skip
