"""Live curves of a training, checkpoints at a deadline, and what is left behind for the report."""

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from kernelsmith.training.page import write_page

METRICS = "metrics.jsonl"
_REWRITE_S = 5.0


class Curves(TrainerCallback):  # type: ignore[misc]
    """Appends every logged number to ``metrics.jsonl`` and keeps the page up to date."""

    def __init__(self, folder: Path, title: str) -> None:
        self._folder, self._title = folder, title
        self._written = 0.0
        folder.mkdir(parents=True, exist_ok=True)

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Forget what an interrupted training logged after its last checkpoint."""
        path = self._folder / METRICS
        if path.is_file():
            kept = [
                line for line in path.read_text().splitlines() if _step(line) <= state.global_step
            ]
            path.write_text("".join(f"{line}\n" for line in kept))

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, object] | None = None,
               **more: Any) -> None:  # fmt: skip
        """One line a log."""
        numbers = {k: v for k, v in (logs or {}).items() if isinstance(v, int | float)}
        with (self._folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": state.global_step, **numbers}) + "\n")
        if time.monotonic() - self._written > _REWRITE_S:
            self._written = time.monotonic()
            write_page(self._folder, self._title)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """The last state of the page."""
        write_page(self._folder, self._title)


class Deadline(TrainerCallback):  # type: ignore[misc]
    """Saves and stops after so many seconds, or at a step: the next call goes on from there."""

    def __init__(self, *, seconds: float | None = None, step: int | None = None) -> None:
        self._until = None if seconds is None else time.monotonic() + seconds
        self._step = step
        self.reached = False

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Look at the clock."""
        late = self._until is not None and time.monotonic() > self._until
        if (late or state.global_step == self._step) and state.global_step < state.max_steps:
            self.reached = True
            control.should_save = control.should_training_stop = True


def last_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint; half-written ones have no state."""
    found = [
        each for each in folder.glob("checkpoint-*") if (each / "trainer_state.json").is_file()
    ]
    return max(found, key=lambda each: int(each.name.rpartition("-")[2]), default=None)


def finished(folder: Path, steps: int, final: Path) -> bool:
    """Whether all steps were taken before; the weights are then at ``final``.

    A trainer that is asked to go on from its last step would take another one.
    """
    checkpoint = last_checkpoint(folder)
    if checkpoint is None or int(checkpoint.name.rpartition("-")[2]) < steps:
        return False
    if not any((final / name).is_file() for name in ("config.json", "adapter_config.json")):
        final.mkdir(parents=True, exist_ok=True)  # killed between its last step and its end
        for each in checkpoint.iterdir():
            if each.suffix in (".safetensors", ".json", ".jinja") and "trainer" not in each.name:
                shutil.copy(each, final / each.name)
    return True


def read_metrics(folder: Path) -> list[dict[str, float]]:
    """What was logged so far."""
    path = folder / METRICS
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def _step(line: str) -> int:
    try:
        return int(json.loads(line).get("step", 0))
    except (ValueError, AttributeError):
        return 1 << 60
