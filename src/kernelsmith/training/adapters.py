"""Adapters of a run on disk: weights and the optimizer's memory in one file, named by its hash."""

import hashlib
import os
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from kernelsmith.errors import UsageError
from kernelsmith.training.recipes.model import Model

FOLDER = "adapters"
"""In a run's folder."""
_WEIGHT = "weight"


class Adapters:
    """The states that an adapter had in one run. The journal says which, by step and hash.

    Args:
        folder: Of the run.
        known: What the journal holds: the hash after each step that changed the weights.
    """

    def __init__(self, folder: Path, known: dict[int, str]) -> None:
        self._folder = folder / FOLDER
        self.known = dict(known)

    def keep(self, number: int, model: Model, optimizer: torch.optim.Optimizer) -> str:
        """Write the state after step ``number``, whole or not at all, and return its hash."""
        data = save(_state(model, optimizer))
        path = self._path(number)
        draft = path.with_name(f".{path.name}")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from error
        self.known[number] = hashlib.sha256(data).hexdigest()[:32]
        return self.known[number]

    def restore(self, number: int, model: Model, optimizer: torch.optim.Optimizer) -> None:
        """Set weights and memory as they were after step ``number``.

        Raises:
            UsageError: The file is not there, or is not the one that the journal names.
        """
        path = self._path(number)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UsageError(
                f"the run's adapter of step {number} is gone: {path}: {error.strerror}"
            ) from error
        if hashlib.sha256(data).hexdigest()[:32] != self.known[number]:
            raise UsageError(f"{path} is not what the journal says that step {number} left")
        try:
            state = load(data)
            with torch.no_grad():
                for name, weight in _trained(model):
                    weight.copy_(state.pop(f"{name}:{_WEIGHT}"))
                    found = {k: state[f"{name}:{k}"] for k in ("step", "exp_avg", "exp_avg_sq")}
                    # A count stays where optimizers keep it: on the processor.
                    optimizer.state[weight] = {
                        key: value if key == "step" else value.to(weight.device)
                        for key, value in found.items()
                    }
        except (SafetensorError, KeyError, RuntimeError) as error:
            raise UsageError(f"{path} does not fit the model: {error}") from error

    def _path(self, number: int) -> Path:
        return self._folder / f"step-{number}.safetensors"


def _trained(model: Model) -> list[tuple[str, torch.nn.Parameter]]:
    return [(name, each) for name, each in model.named_parameters() if each.requires_grad]


def _state(model: Model, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for name, weight in _trained(model):
        found[f"{name}:{_WEIGHT}"] = weight.detach().cpu().contiguous()
        for key, value in optimizer.state[weight].items():
            found[f"{name}:{key}"] = value.detach().cpu().contiguous()
    return found
