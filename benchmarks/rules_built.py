"""What a candidate launches on a GPU that is not here, built for it: run as a module, JSON out.

The candidate runs on tensors without contents; each kernel that it would launch is compiled with
the very arguments instead. What does not compile, or wants more shared memory than there is, is
found without the device.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton
from triton.runtime.jit import JITFunction

from benchmarks.report import without_paths
from benchmarks.rules_tasks import Chosen
from benchmarks.task_names import made, opened
from kernelsmith.domain.device import Device
from kernelsmith.evaluate.worker.program import execute
from kernelsmith.propose.rules.compiler.facts import facts_of
from kernelsmith.propose.rules.compiler.imagined import Hollow, imagine


class Builder:
    """Stands in for every launch."""

    def __init__(self, shared_bytes: int) -> None:
        self._most = shared_bytes
        self._run: Callable[..., Any] = JITFunction.run
        self.built: dict[str, int] = {}
        """Kernels by name, with the shared memory that they take."""

    def __enter__(self) -> "Builder":
        builder = self

        def run(function: Any, *args: Any, grid: Any, warmup: bool, **keywords: Any) -> Any:
            return builder._build(function, args, grid, keywords)

        JITFunction.run = run
        return self

    def __exit__(self, *_: object) -> None:
        JITFunction.run = self._run

    def _build(self, function: Any, args: Any, grid: Any, keywords: dict[str, Any]) -> Any:
        given = [_typed(each) for each in args]
        named = {name: _typed(each) for name, each in keywords.items()}
        made = self._run(function, *given, grid=grid, warmup=True, **named)
        name, shared = function.fn.__name__, made.metadata.shared
        self.built[name] = max(shared, self.built.get(name, 0))
        if shared > self._most:
            raise RuntimeError(f"{name} takes {shared} bytes of shared memory of {self._most}")
        return made


def _typed(value: Any) -> Any:
    """A tensor as its type and alignment; descriptors of tiles around one."""
    if isinstance(value, torch.Tensor):
        return triton.runtime.jit.MockTensor(value.dtype, list(value.shape))
    if type(value).__name__ == "TensorDescriptor":
        value.base = _typed(value.base)
    return value


def built(source: str, task: Any, hollow: Hollow, shared_bytes: int) -> dict[str, Any]:
    """The kernels of one candidate, or why one of them cannot be had."""
    names = opened(task)
    workload = task.workloads[0]
    builder = Builder(shared_bytes)
    try:
        module = execute(source)
        model = hollow.made(lambda: made(module.ModelNew, names, dict(workload.init)))
        inputs = hollow.made(lambda: names["get_inputs"](**dict(workload.arguments)))
        with torch.no_grad(), hollow.mode, builder:
            model.train(task.training)(*inputs)
    except Exception as error:  # whatever a candidate raises is what we want to know
        text = without_paths(" ".join(str(error).split()))
        return {"kernels": builder.built, "failed": f"{type(error).__name__}: {text[:300]}"}
    return {"kernels": builder.built, "failed": ""}


def main() -> None:
    path, device, sources = sys.argv[1:]
    facts = facts_of(Device(kind="cuda", name=device))
    assert facts is not None  # whoever asks has looked
    imagine(facts)
    hollow = Hollow()
    task = Chosen(key="", path=Path(path)).task(gpu=True)
    with tempfile.TemporaryDirectory() as cache:
        triton.knobs.cache.dir = cache
        found = [
            built(each, task, hollow, facts.shared_bytes)
            for each in json.loads(Path(sources).read_text())
        ]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
