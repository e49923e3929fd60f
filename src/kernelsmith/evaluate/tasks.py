"""Tasks from KernelBench files, with the optional extras read from module-level constants."""

import ast
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.task import Library, Task, Tolerance, Weights, Workload
from kernelsmith.errors import UsageError

OpenWorkloads = Callable[[Task], object]
"""Runs a task's ``get_workloads`` in a sandbox and returns what it says, as a tree."""

_HELPERS = {"get_inputs", "get_init_inputs", "get_workloads", "statistic", "index_scores"}


def load_task(path: Path, run_workloads: OpenWorkloads | None = None) -> Task:
    """Read one task file. Its code is not run here; a computed ``get_workloads`` runs in a sandbox.

    Raises:
        UsageError: There is no such file, or it is not a KernelBench file.
    """
    source = read_source(path, "task")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise UsageError(f"{path} is not Python: line {error.lineno}: {error.msg}") from error
    constants = _constants(tree)
    task = _task(path, source, tree, constants)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if "get_workloads" not in functions:
        return task
    said = _literal_return(functions["get_workloads"])
    if said is None:
        if run_workloads is None:
            raise UsageError(f"{path}: get_workloads() must return a literal list here")
        said = _plain(run_workloads(task))
    return _with_workloads(task, said, path)


def fitting(task: Task, *, gpu: bool) -> Task:
    """Leave out workloads that are meant for other hardware, by the beginning of their names.

    Those named ``gpu: ...`` would take a processor minutes, those named ``cpu: ...`` are too small
    for a GPU. Where nothing would be left to time, all stay.
    """
    other = "cpu:" if gpu else "gpu:"
    kept = tuple(each for each in task.workloads if not each.name.startswith(other))
    if all(each.held_out for each in kept):
        return task
    return dataclasses.replace(task, workloads=kept)


def load_candidate(path: Path, backend: str) -> Candidate:
    """Read one candidate file."""
    source = read_source(path, "candidate")
    if not source.strip():
        raise UsageError(f"{path} is empty; a candidate defines ModelNew")
    return Candidate(backend=backend, source=source)


def read_source(path: Path, what: str) -> str:
    """Read a source file, or say in one line why that cannot be done."""
    if not path.exists():
        raise UsageError(f"no {what} file {str(path)!r}")
    if path.is_dir():
        raise UsageError(f"{str(path)!r} is a folder; name one {what} file in it")
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text: {error.reason}") from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _task(path: Path, source: str, tree: ast.Module, constants: dict[str, Any]) -> Task:
    try:
        return Task(
            name=path.stem,
            source=source,
            entry=constants.get("ENTRY") or _entry(tree, path),
            tolerance=_tolerance(constants.get("TOLERANCE")),
            compute_dtype=constants.get("COMPUTE_DTYPE"),
            weights=Weights(constants.get("WEIGHTS", Weights.DYNAMIC)),
            library=Library(constants.get("LIBRARY", Library.SOME)),
            training=bool(constants.get("TRAINING", False)),
            structure=_texts(constants.get("STRUCTURE", ())),
            baseline=constants.get("BASELINE"),
        )
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path}: {error}") from error


def _entry(tree: ast.Module, path: Path) -> str:
    names = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    missing = {"get_inputs"} - names
    functions = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and node.name not in _HELPERS
        and not node.name.startswith("_")
    ]
    if "Model" in names and not missing:
        return "Model"
    if len(functions) == 1 and not missing:
        return functions[0]
    lacking = sorted(missing | (set() if "Model" in names or functions else {"Model"}))
    if lacking:
        raise UsageError(
            f"{path} is not a KernelBench file: it defines no {' and no '.join(lacking)}"
        )
    raise UsageError(
        f"{path} defines no Model and several functions; say which is the task: ENTRY = 'name'"
    )


def _constants(tree: ast.Module) -> dict[str, Any]:
    known = {
        "ENTRY", "TOLERANCE", "COMPUTE_DTYPE", "WEIGHTS", "LIBRARY", "TRAINING", "STRUCTURE",
        "BASELINE",
    }  # fmt: skip
    found: dict[str, Any] = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id in known:
            try:
                found[target.id] = ast.literal_eval(node.value)
            except ValueError as error:
                raise UsageError(
                    f"line {node.lineno}: {target.id} must be a literal value"
                ) from error
    return found


def _tolerance(value: object) -> Tolerance:
    if value is None:
        return Tolerance()
    if isinstance(value, dict):
        return Tolerance(**value)
    if isinstance(value, int | float):
        return Tolerance(atol=float(value), rtol=float(value))
    raise ValueError(f"TOLERANCE is a number or {{'atol': ..., 'rtol': ...}}; got {value!r}")


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise ValueError(f"STRUCTURE is a text or a list of texts; got {value!r}")


def _literal_return(function: ast.FunctionDef) -> list[Any] | None:
    last = function.body[-1]
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    try:
        value = ast.literal_eval(last.value)
    except ValueError:
        return None
    return value if isinstance(value, list) else None


def _plain(tree: object) -> list[Any]:
    """Undo the process boundary's tags for values without tensors."""

    def undo(node: Any) -> Any:
        if isinstance(node, list):
            return [undo(item) for item in node]
        if isinstance(node, dict):
            ((tag, body),) = node.items()
            if tag == "()":
                return tuple(undo(item) for item in body)
            if tag == "{}":
                return {undo(key): undo(value) for key, value in body}
            raise UsageError("get_workloads() must return plain values, no tensors")
        return node

    value = undo(tree)
    return list(value) if isinstance(value, list | tuple) else []


def _with_workloads(task: Task, said: list[Any], path: Path) -> Task:
    try:
        workloads = tuple(_workload(each) for each in said)
        return dataclasses.replace(task, workloads=workloads)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(
            f"{path}: get_workloads() returns a list of dicts with name, inputs, init, dtype and "
            f"held_out: {error}"
        ) from error


def _workload(said: dict[str, Any]) -> Workload:
    unknown = set(said) - {"name", "inputs", "init", "dtype", "held_out"}
    if unknown:
        raise ValueError(f"unknown key {', '.join(sorted(unknown))}")
    return Workload(
        name=said["name"],
        arguments=_pairs(said.get("inputs", {})),
        init=_pairs(said.get("init", {})),
        dtype=said.get("dtype"),
        held_out=bool(said.get("held_out", False)),
    )


def _pairs(values: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (key, tuple(value) if isinstance(value, list | tuple) else value)
        for key, value in values.items()
    )
