"""What Triton compiled in this process, as files that travel to the next one of the same source."""

import base64
import os
from collections.abc import Mapping
from pathlib import Path

from kernelsmith.evaluate.sandbox.channel import FILES_BYTES


def folder() -> Path:
    """Where Triton compiles to: in this process's own scratch, wherever that is."""
    return Path(os.environ.get("TMPDIR", "/tmp")) / "triton"


def take(files: Mapping[str, str]) -> None:
    """Begin with files of an earlier process."""
    for relative, text in files.items():
        path = folder() / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(text))


def compiled() -> dict[str, str]:
    """All that a later process needs, in base64, as far as a message carries it."""
    found, size = {}, 0
    for path in sorted(folder().rglob("*")):
        if not path.is_file() or path.suffix in (".ttir", ".ttgir", ".llir"):
            continue
        size += path.stat().st_size
        if size > FILES_BYTES:
            break
        found[str(path.relative_to(folder()))] = base64.b64encode(path.read_bytes()).decode()
    return found
