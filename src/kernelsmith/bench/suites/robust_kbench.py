"""robust-kbench: eleven tasks of its own with several settings, and KernelBench ported to its form.

Handled: it runs the candidate first on the same inputs, uncloned, and its further settings are off
by default; here they are workloads. Backward tasks are listed as absent.
"""

import ast
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from kernelsmith.bench.suite import Absent, Entry
from kernelsmith.bench.suites.families import family_of
from kernelsmith.bench.suites.reading import missing_package, promised
from kernelsmith.domain.task import Scalar, Task, Workload
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.tasks import read_source

Setting = dict[str, object]
_HELD_OUT = 4
_INIT = '''

def get_init_inputs(**settings):
    """Hand the settings of a workload to the constructor."""
    return settings
'''


class RobustKBench:
    """A checkout of SakanaAI/robust-kbench."""

    name = "robust-kbench"

    def __init__(self, path: Path) -> None:
        self._root = path / "tasks" if (path / "tasks").is_dir() else path
        if not any(self._root.rglob("func_forward.py")):
            raise UsageError(f"{str(path)!r} holds no tasks/*/func_forward.py")

    def entries(self) -> Iterator[Entry | Absent]:
        """Yield its own tasks by name, then the ported ones by level and number."""
        folders = {path.parent for path in self._root.rglob("func_*.py")}
        for folder in sorted(folders, key=self._order):
            inside = folder.relative_to(self._root)
            name = f"{self.name}/{inside.as_posix()}"
            if (folder / "func_forward.py").is_file():
                yield self._entry(name, folder)
            if (folder / "func_backward.py").is_file():
                yield Absent(
                    id=f"{name}/backward", level=_level(name),
                    reason="asks for gradients; the judge compares forward computation only",
                )  # fmt: skip

    def _order(self, folder: Path) -> tuple[bool, list[int], str]:
        inside = folder.relative_to(self._root).as_posix()
        return "/" in inside, [int(each) for each in re.findall(r"\d+", inside)], inside

    def _entry(self, name: str, folder: Path) -> Entry | Absent:
        path, absent = folder / "func_forward.py", partial(Absent, id=name, level=_level(name))
        settings = folder / "config_forward.json"
        ported = next(iter(sorted(folder.glob("[0-9]*_*.py"))), None)
        words = re.sub(r"^\d+_", "", ported.stem) if ported else folder.name
        try:
            source = read_source(path, "task")
            if package := missing_package(source):
                return absent(reason=f"needs {package}: pip install {package}")
            if not settings.exists():
                return absent(reason=f"has no {settings.name}")
            config = json.loads(read_source(settings, "setting"))
            task = _task(folder.name if ported is None else words, source, config)
        except (UsageError, SyntaxError, ValueError) as error:
            return absent(reason=str(error))
        except (RecursionError, AttributeError, LookupError, TypeError) as error:
            return absent(reason=f"{settings.name} is broken: {error!r}")
        return Entry(
            id=name, task=promised(task, words), level=_level(name),
            category="kernelbench" if ported else "robust", family=family_of(words),
            dtype="float32", note=_filtered(folder / "filter_results.json"),
        )  # fmt: skip


def _level(name: str) -> str:
    return name.split("/")[2].replace("_", " ") if "/kernelbench/" in name else "robust"


def _task(name: str, source: str, config: dict[str, list[Setting]]) -> Task:
    accepts = _accepted(source)
    if "get_init_inputs" not in accepts:
        source += _INIT
    task = Task(name=name, source=source)
    usual = _settings(config, "single")
    others = [each for each in _settings(config, "multi") if each not in usual]
    step = max(1, len(others) // _HELD_OUT)
    workloads: list[Workload] = []
    for setting in [usual[0], *others[::step][:_HELD_OUT]]:
        inputs = _pairs(setting[0], accepts.get("get_inputs", set()))
        init = _pairs(setting[1], accepts.get("__init__", set()))
        made = Workload(name=_said(setting), arguments=inputs, init=init, held_out=bool(workloads))
        if all((made.arguments, made.init) != (each.arguments, each.init) for each in workloads):
            workloads.append(made)
    return replace(task, workloads=tuple(workloads))


def _settings(config: dict[str, list[Setting]], which: str) -> list[tuple[Setting, Setting]]:
    """Every combination, shared settings last, as its own reader makes them."""
    axes = [config.get(f"{which}_{kind}_configs", [{}]) for kind in ("input", "init", "shared")]
    return [
        ({**inputs, **shared}, {**init, **shared})
        for inputs, init, shared in itertools.product(*axes)
    ]


def _accepted(source: str) -> dict[str, set[str]]:
    """Parameter names of the functions that settings go to."""
    found: dict[str, set[str]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = {each.arg for each in node.args.args + node.args.kwonlyargs}
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            for each in node.body:
                if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                    found["__init__"] = {a.arg for a in each.args.args + each.args.kwonlyargs}
    if "get_inputs" not in found:
        raise UsageError("func_forward.py defines no get_inputs")
    return found


def _pairs(
    setting: Setting, names: set[str]
) -> tuple[tuple[str, Scalar | tuple[Scalar, ...]], ...]:
    found: list[tuple[str, Scalar | tuple[Scalar, ...]]] = []
    for key, value in setting.items():
        if key not in names:
            continue
        if isinstance(value, list):
            found.append((key, tuple(value)))
        elif value is None or isinstance(value, str | int | float | bool):
            found.append((key, value))
        else:
            raise UsageError(f"setting {key} is a {type(value).__name__}")
    return tuple(found)


def _said(setting: tuple[Setting, Setting]) -> str:
    both = {**setting[1], **setting[0]}
    return ", ".join(f"{key}={value}" for key, value in both.items()) or "default"


def _filtered(path: Path) -> str:
    """Say which of its own filters the task fell to."""
    if not path.exists():
        return ""
    try:
        said = dict(json.loads(read_source(path, "filter")))
    except (ValueError, TypeError, RecursionError):
        return f"what its own filters found cannot be read: {path.name} is broken"
    hit = [
        key.removeprefix("filter_") for key, value in said.items()
        if value is True and "llm" not in key
    ]  # fmt: skip
    return f"suspect: its own filters found {', '.join(hit)}" if hit else ""
