"""Records from and to the files that data sets come in: JSON lines, JSON, parquet."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelsmith.errors import UsageError

try:
    import pyarrow as arrow
    from pyarrow import parquet
except ImportError as error:
    raise UsageError(
        "data sets need pyarrow, which is not installed; try: pip install 'kernelsmith[train]'"
    ) from error

Record = Mapping[str, object]


def read_records(path: Path) -> list[Record]:
    """Read a file of records.

    Raises:
        UsageError: It cannot be read, or holds something else.
    """
    try:
        if path.suffix == ".parquet":
            found: object = parquet.read_table(path).to_pylist()
        elif path.suffix in (".jsonl", ".json"):
            text = path.read_text(encoding="utf-8")
            whole = path.suffix == ".json" and text.lstrip().startswith("[")
            found = json.loads(text) if whole else [
                json.loads(line) for line in text.splitlines() if line.strip()
            ]  # fmt: skip
        else:
            raise UsageError(f"{path.name!r} is no .jsonl, .json or .parquet file")
    except (OSError, ValueError, arrow.ArrowException) as error:
        raise UsageError(f"cannot read {path}: {str(error).splitlines()[0]}") from error
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise UsageError(f"{path} holds no list of records")
    return found


def write_records(records: Sequence[Record], path: Path) -> None:
    """Write parquet or JSON lines, by the name's ending."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            parquet.write_table(arrow.Table.from_pylist([dict(each) for each in records]), path)
        else:
            lines = (json.dumps(each, ensure_ascii=False) for each in records)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
