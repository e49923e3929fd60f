"""Keep a run among the results: ``python -m benchmarks.keep_run RUN FOLDER``.

Journal, best kernel and settings are copied, and the report is written anew from them, without the
folders of the machine that ran it. A task that is not ours to hand on stays behind: wherever its
source stands there is its hash instead, and candidates that took over its descriptions lose them.
Such a copy can be shown and read but not resumed.
"""

import argparse
import ast
import contextlib
import hashlib
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

KEPT = ("best.py", "config.toml")


def main() -> None:
    """Copy one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    source = (args.run / "task.py").read_text()
    for name in KEPT:
        kept = without((args.run / name).read_text(), source)
        (args.folder / name).write_text(str(kept))
    with (args.run / "journal.jsonl").open() as lines:
        kept = [json.dumps(without(json.loads(line), source)) for line in lines]
    (args.folder / "journal.jsonl").write_text("\n".join(kept) + "\n")
    with contextlib.chdir(args.folder):
        subprocess.run([sys.executable, "-m", "kernelsmith.cli.main", "show", ".", "--report"],
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    print(f"kept {len(kept)} lines of {args.run.name} in {args.folder}")


def without(value: object, source: str) -> object:
    """The same value without the task's source and descriptions."""
    if isinstance(value, str):
        if value == source:
            return f"not kept, sha256 {hashlib.sha256(source.encode()).hexdigest()}"
        for said in descriptions(source):
            value = value.replace(said, "The task's description, not kept.")
        return value
    if isinstance(value, dict):
        return {key: without(each, source) for key, each in value.items()}
    if isinstance(value, list):
        return [without(each, source) for each in value]
    return value


@cache
def descriptions(source: str) -> tuple[str, ...]:
    """Every text of a source that stands alone: what it says of its classes and functions."""
    found = [
        node.value.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    long = {each.strip() for each in found if len(each.strip()) > 20}
    return tuple(sorted(long, key=len, reverse=True))


if __name__ == "__main__":
    main()
