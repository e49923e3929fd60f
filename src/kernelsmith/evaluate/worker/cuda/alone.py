"""A candidate by itself, once, on drawn inputs: for tools that watch a whole process."""

import json
import types
from pathlib import Path

import torch


def main() -> None:
    """Run ``candidate.py`` on the inputs of ``task.py`` in this folder."""
    about = json.loads(Path("about.json").read_text())
    task, candidate = _module("task"), _module("candidate")
    torch.manual_seed(0)
    init = (
        task.get_init_inputs(**_tuples(about["init"])) if hasattr(task, "get_init_inputs") else []
    )
    model = candidate.ModelNew(*init).cuda().eval()
    inputs = [
        each.cuda() if isinstance(each, torch.Tensor) else each
        for each in task.get_inputs(**_tuples(about["inputs"]))
    ]
    with torch.no_grad():
        model(*inputs)
    torch.cuda.synchronize()


def _module(name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    exec(compile(Path(f"{name}.py").read_text(), f"{name}.py", "exec"), module.__dict__)
    return module


def _tuples(values: dict[str, object]) -> dict[str, object]:
    return {key: tuple(each) if isinstance(each, list) else each for key, each in values.items()}
