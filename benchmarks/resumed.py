"""Results that are on disk after every row: a command that was cut short goes on from there."""

import json
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


class Resumed:
    """One file of rows, by key."""

    def __init__(self, path: Path, *, budget_s: float) -> None:
        self.path, self._until = path, time.monotonic() + budget_s
        self.content: dict[str, object] = {"sessions": [], "rows": {}}
        if path.exists():
            self.content = json.loads(path.read_text())
        sessions = self.content["sessions"]
        assert isinstance(sessions, list)
        sessions.append(session())

    @property
    def rows(self) -> dict[str, dict[str, object]]:
        rows = self.content["rows"]
        assert isinstance(rows, dict)
        return rows

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._until

    def add(self, key: str, **row: object) -> None:
        self.rows[key] = row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.content, indent=1) + "\n")
        partial.replace(self.path)


def session() -> dict[str, object]:
    """What a number depends on."""
    head = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(head, capture_output=True, text=True, cwd=Path(__file__).parent)
    smi = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        device = subprocess.run(smi, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        device = "no NVIDIA GPU"
    return {
        "command": " ".join("PATH" if "/" in each else each for each in sys.argv[1:]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": os.environ.get("COMMIT") or done.stdout.strip() or "unknown",
        "device": device,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
    }
