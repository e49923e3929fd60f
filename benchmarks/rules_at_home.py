"""What the rules would write for a GPU that is not here: built for it, and checked without it.

Torch's compiler is asked for its text as on that GPU. The first candidates of every task are read
by the judge's guards and compiled for the GPU at the task's own size; at a smaller size the judge
checks them in Triton's interpreter. Nothing is timed: this is for finding what would be refused,
fail to build or be wrong, before anybody's time on the GPU is spent on it.
"""

import argparse
import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.report import ROOT, say, table, without_paths
from benchmarks.rules_process import bounded
from benchmarks.rules_tasks import Chosen, of_folder, of_kernelbench
from benchmarks.task_names import made, opened
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Task
from kernelsmith.errors import SmithError
from kernelsmith.evaluate.backends.triton import InterpreterBackend
from kernelsmith.evaluate.guards.static import inspect_source
from kernelsmith.evaluate.harness import Judge
from kernelsmith.evaluate.settings import Settings, effort
from kernelsmith.propose.rules.compiler.facts import facts_of
from kernelsmith.propose.rules.families import Families, Finder, Variant, failed
from kernelsmith.propose.rules.graph import UNFORESEEN, NotRecognised
from kernelsmith.propose.rules.rewrite.shrink import RECIPES, shrunk

_MOST = 60_000
"""Elements of inputs and outputs that the interpreter gets through in seconds."""
_BUILD_S = 300.0


def written(families: Families, count: int) -> list[tuple[str, str]]:
    """The first candidates: what they try, and their text."""
    found: dict[tuple[str, str], None] = {}
    for variant in families.starts():
        with suppress(NotRecognised):
            found[_note(variant), variant.family.source(variant.chosen)] = None
        if len(found) == count:
            break
    return list(found)


def _note(variant: Variant) -> str:
    return f"{variant.name}: {variant.family.words(variant.chosen)}"


def small(task: Task) -> Task | None:
    """The task in a size for the interpreter; none where no recipe makes one."""
    for recipe in RECIPES[2:]:
        tried, _ = shrunk(task, task.workloads[0], recipe)
        if tried.source != task.source and (size := _elements(tried)) is not None and size < _MOST:
            # On a GPU, eager's own convolutions are as exact as TF32, and ours may be.
            coarse = "float16" if "Conv" in tried.source else None
            return replace(tried, name=f"{task.name}, smaller", compute_dtype=coarse)
    return None


def _elements(task: Task) -> int | None:
    """Of inputs, weights and outputs, by a run without contents; none where it does not run."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            names = opened(task)
            inputs = names["get_inputs"]()
            model = made(names["Model"], names, {}).train(task.training)
            found = [model(*inputs), inputs, list(model.parameters())]
    except Exception:  # a size that the task does not have raises whatever it likes
        return None
    leaves = torch.utils._pytree.tree_leaves(found)
    return sum(each.numel() for each in leaves if isinstance(each, torch.Tensor))


def at_true_size(task: Task, path: Path, found: list[tuple[str, str]], device: str) -> list[Any]:
    """For each candidate: what the guards say, and whether its kernels can be built."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as sources:
        json.dump([source for _, source in found], sources)
        sources.flush()
        done = bounded(
            "benchmarks.rules_built", [str(path), device, sources.name], limit_s=_BUILD_S
        )
    if done.error:
        return [{"failed": done.error, "kernels": {}} for _ in found]
    built = json.loads(done.output.strip().splitlines()[-1])
    for (_, source), each in zip(found, built, strict=True):
        finding = inspect_source(Candidate(backend="triton", source=source), task)
        each["refused"] = "" if finding is None else finding.message
    return list(built)


def in_the_interpreter(task: Task, found: list[tuple[str, str]], settings: Settings) -> list[Any]:
    """The judge's verdict on each candidate at the smaller size."""
    backend = InterpreterBackend()
    said = []
    try:
        session = Judge(backend, task, settings)
        for note, source in found:
            begun = time.monotonic()
            try:
                one = session.judge(Candidate(backend="triton", source=source))
                verdict, message = one.verdict.value, one.message
            except SmithError as error:
                verdict, message = type(error).__name__, str(error)
            said.append({"note": note, "said": verdict, "message": without_paths(message)[:400],
                         "seconds": round(time.monotonic() - begun, 1)})  # fmt: skip
        session.close()
    except SmithError as error:
        said.append({"note": "", "said": type(error).__name__, "message": str(error)[:400]})
    finally:
        backend.close()
    return said


def one(chosen: Chosen, args: argparse.Namespace) -> dict[str, Any]:
    """Everything about one task; what fails in our own hands ends nobody else's."""
    try:
        return _found(chosen, args)
    except UNFORESEEN as error:
        return {"task": chosen.path.stem, "true": [], "small": [], "reasons": [failed(error)],
                "seconds": 0.0}  # fmt: skip


def _found(chosen: Chosen, args: argparse.Namespace) -> dict[str, Any]:
    find = Finder(
        options=tuple(args.options.split(",")), device=Device(kind="cuda", name=args.device)
    )
    task = chosen.task(gpu=True)
    begun = time.monotonic()
    families = find(task, "triton")
    found = written(families, args.candidates)
    record: dict[str, Any] = {
        "task": task.name, "families": [each.space.template for each in families.members],
        "reasons": list(families.reasons),
        "true": [{"note": note, **each} for (note, _), each
                 in zip(found, at_true_size(task, chosen.path, found, args.device), strict=True)],
    }  # fmt: skip
    reduced = small(task)
    if reduced is None:
        record["small"] = "no smaller size runs"
    else:
        less = written(find(reduced, "triton"), args.candidates)
        settings = replace(effort("glance"), timeout_s=args.limit_s, robust=False)
        record["small"] = in_the_interpreter(reduced, less, settings)
    return record | {"seconds": round(time.monotonic() - begun, 1)}


def shown(records: dict[str, Any]) -> str:
    """A row a task: how many were built, how many are right, and what went wrong first."""
    rows = []
    for key, each in records.items():
        less = each["small"] if isinstance(each["small"], list) else []
        refused = [x.get("refused") or x["failed"] for x in each["true"]]
        wrong = ["" if x["said"] == "passed" else f"{x['said']}: {x['message']}" for x in less]
        faults = [fault for fault in (*refused, *wrong) if fault]
        if not wrong.count(""):
            faults += each["reasons"]
        rows.append([f"{key} {each['task'][:30]}", f"{refused.count('')}/{len(refused)}",
                     f"{wrong.count('')}/{len(wrong)}", faults[:1]])  # fmt: skip
    return table(("task", "built", "right", "first fault"), rows)


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernelbench", type=Path, metavar="PATH", help="a checkout")
    parser.add_argument("--tasks", type=Path, metavar="FOLDER", help="a folder of tasks instead")
    parser.add_argument("--levels", default="1,2,3", help="of KernelBench (1,2,3)")
    parser.add_argument("--only", nargs="+", metavar="KEY", help="these, e.g. level1/23")
    parser.add_argument("--device", default="NVIDIA H200", help="by the name that its driver says")
    parser.add_argument("--options", default="default", help="what the compiler is asked for")
    parser.add_argument("--candidates", type=int, default=4, metavar="N", help="of a task (4)")
    parser.add_argument("--limit-s", type=float, default=120.0, help="of one run of a candidate")
    parser.add_argument("--at-once", type=int, default=2, metavar="N", help="tasks (2)")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "runs" / "rules-at-home.json", metavar="FILE"
    )
    parser.add_argument("--fresh", action="store_true", help="do not go on from what is there")
    return parser


def main() -> None:
    parser = options()
    args = parser.parse_args()
    if (args.kernelbench is None) is (args.tasks is None):
        parser.error("name --kernelbench PATH or --tasks FOLDER")
    if facts_of(Device(kind="cuda", name=args.device)) is None:
        parser.error(f"there is no data sheet of {args.device!r}; try 'NVIDIA H200'")
    levels = [int(each) for each in args.levels.split(",")]
    # Even-numbered tasks are only ever measured; this is for development.
    tasks = (
        of_folder(args.tasks)
        if args.tasks is not None
        else of_kernelbench(args.kernelbench, levels, parity="odd")
    )
    args.out.parent.mkdir(parents=True, exist_ok=True)
    there = {} if args.fresh or not args.out.exists() else json.loads(args.out.read_text())
    todo = [
        each for each in tasks
        if each.key not in there and not each.left_out and each.key in (args.only or [each.key])
    ]  # fmt: skip
    with ThreadPoolExecutor(args.at_once) as pool:
        asked = {pool.submit(one, each, args): each.key for each in todo}
        for done in as_completed(asked):
            key, record = asked[done], done.result()
            there[key] = record
            args.out.write_text(json.dumps(there, indent=1))
            say(f"{key}: {record['seconds']} s")
    print(shown({key: there[key] for key in sorted(there)}))


if __name__ == "__main__":
    main()
