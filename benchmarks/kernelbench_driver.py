"""KernelBench's own harness on one candidate, in this fresh process, on the CPU or a GPU.

Runs ``kernelbench.eval.eval_kernel_against_ref`` as it is in the checkout. It insists on CUDA, so
without ``--gpu`` ``torch.cuda``'s calls are replaced by stand-ins that do nothing, the device is
the CPU and the clock its own ``host_time``. With it, nothing of CUDA is touched, the backend is
``triton`` and the clock its usual ``cuda_event``. Packages that it imports for other purposes (API
clients and such) are replaced where they are missing, which makes its start faster than its users
see it.

Its cache clearing writes 256 MB before each timed call: well under a millisecond on a GPU, about a
tenth of a second here. ``--no-cache-clearing`` leaves that out, and is the fairer figure for speed.

Not imported by anyone: ``kernelbench_runner`` starts it as a script.
"""

import argparse
import contextlib
import copy
import importlib
import importlib.machinery
import json
import sys
import time
import types
from pathlib import Path
from typing import Any

import torch

PRECISIONS = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
TRIALS, TIMED = 5, 100


class BaseModel:
    """As much of pydantic's as KernelBench's result needs."""

    def __init__(self, **given: Any) -> None:
        for kind in reversed(type(self).__mro__):
            for name in getattr(kind, "__annotations__", {}):
                setattr(self, name, copy.deepcopy(getattr(kind, name, None)))
        for name, value in given.items():
            setattr(self, name, value)


def nothing(*_: object, **__: object) -> None:
    pass


MISSING: dict[str, dict[str, object]] = {
    "dotenv": {"load_dotenv": nothing},
    "tqdm": {"tqdm": lambda items, **_: items},
    "openai": {"OpenAI": nothing},
    "litellm": {"completion": nothing},
    "requests": {},
    "pydantic": {"BaseModel": BaseModel},
}


def stand_in_for_cuda() -> None:
    torch.cuda.is_available = lambda: True
    torch.cuda.current_device = lambda: 0
    torch.cuda.device_count = lambda: 1
    torch.cuda.get_device_name = lambda device=None: "CPU, CUDA calls stubbed"
    torch.cuda.device = lambda device=None: contextlib.nullcontext()
    for name in (
        "set_device", "synchronize", "empty_cache", "reset_peak_memory_stats", "manual_seed",
        "manual_seed_all",
    ):  # fmt: skip
        # Torch's compiler keeps a table by function and takes none twice.
        setattr(torch.cuda, name, lambda *_, **__: None)


def stand_in_for_missing() -> list[str]:
    replaced = []
    for name, attributes in MISSING.items():
        try:
            importlib.import_module(name)
        except ImportError:
            module = types.ModuleType(name)
            vars(module).update(attributes)
            module.__spec__ = importlib.machinery.ModuleSpec(name, None)  # torch asks for one
            sys.modules[name] = module
            replaced.append(name)
    return replaced


def unlike_kernelbench(task: str) -> tuple[str, str]:
    """Return the inputs' one dtype, or why the task is not one for KernelBench."""
    space: dict[str, Any] = {}
    exec(compile(task, "task", "exec"), space)
    if "Model" not in space or "get_init_inputs" not in space:
        return "", "no Model or no get_init_inputs"
    inputs = space["get_inputs"]()
    if not isinstance(inputs, list | tuple):
        return "", "inputs by name"
    dtypes = {str(x.dtype).removeprefix("torch.") for x in inputs if torch.is_tensor(x)}
    if not dtypes:
        return "", "no plain list of tensors as inputs"
    if len(dtypes) != 1 or not dtypes <= set(PRECISIONS):
        return "", f"inputs of {' and '.join(sorted(dtypes))}; it casts all to one of its own"
    return dtypes.pop(), ""


def unlike_weights(task: str, candidate: str) -> str:
    """Return why matching weights by seed, as KernelBench does, cannot work for the candidate."""
    states = []
    for source, entry in ((task, "Model"), (candidate, "ModelNew")):
        space: dict[str, Any] = {}
        exec(compile(task, "task", "exec"), space)
        torch.manual_seed(42)
        arguments = space["get_init_inputs"]()
        exec(compile(source, "source", "exec"), space)
        torch.manual_seed(42)
        state = space[entry](*arguments).state_dict()
        states.append({name: value.clone() for name, value in state.items()})
    wanted, made = states
    if wanted.keys() == made.keys() and all(torch.equal(wanted[k], made[k]) for k in wanted):
        return ""
    return "its weights are not those of the reference under the same seed"


def plain(value: object) -> object:
    """What JSON can hold; exceptions become their text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def evaluate(args: argparse.Namespace, task: str, candidate: str) -> dict[str, object]:
    module = importlib.import_module("kernelbench.eval")
    timing = importlib.import_module("kernelbench.timing")
    checker = importlib.import_module("kernelbench.kernel_static_checker")
    if args.no_cache_clearing:
        timing.clear_l2_cache = nothing
    # The checker's rules for a backend ask for that backend's text, which no CPU candidate has.
    backend = "triton" if args.gpu else "cpu"
    _, errors, _ = checker.validate_kernel_static(candidate, backend=backend, precision="fp32")
    where: dict[str, Any] = {"timing_method": "host_time", "device": torch.device("cpu")}
    if args.gpu:
        where = {"backend": backend, "device": torch.device("cuda:0")}
    begun = time.monotonic()
    found = module.eval_kernel_against_ref(
        task, candidate, num_correct_trials=TRIALS, num_perf_trials=TIMED,
        measure_performance=True, precision=PRECISIONS[args.precision], **where,
    )  # fmt: skip
    seconds = time.monotonic() - begun
    if found is None:
        return {"returned": None, "static": errors, "inside_s": seconds}
    return {
        "compiled": found.compiled, "correctness": found.correctness, "static": errors,
        "runtime_ms": found.runtime, "reference_ms": found.ref_runtime, "inside_s": seconds,
        "excessive": bool(found.metadata.get("excessive_speedup")),
        "metadata": plain(found.metadata),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("task", type=Path)
    parser.add_argument("candidate", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--precision", choices=sorted(PRECISIONS), default="float32")
    parser.add_argument("--no-cache-clearing", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument(
        "--mode", choices=("evaluate", "control", "weights"), default="evaluate",
        help="control: judge the reference by itself; weights: does a seed give the same ones?",
    )  # fmt: skip
    args = parser.parse_args()
    task, candidate = args.task.read_text(), args.candidate.read_text()
    said: dict[str, object] = {}
    if args.mode == "weights":
        args.result.write_text(json.dumps({"unlike": unlike_weights(task, candidate)}))
        return
    if args.mode == "control":
        args.precision, unlike = unlike_kernelbench(task)
        if unlike:
            args.result.write_text(json.dumps({"unlike": unlike}))
            return
        candidate = f"{task}\nModelNew = Model\n"
        said["precision"] = args.precision
    if not args.gpu:
        stand_in_for_cuda()
    said["replaced"] = stand_in_for_missing()
    sys.path.insert(0, str(args.checkout / "src"))
    try:
        said |= evaluate(args, task, candidate)
    except Exception as error:  # whatever its harness lets through, its users see
        said["raised"] = f"{type(error).__name__}: {error}"
    args.result.write_text(json.dumps(said))


if __name__ == "__main__":
    main()
