"""KernelBench-form files and texts as tasks, with what their recipes promise without saying so."""

import ast
import importlib.util
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.tasks import load_task, read_source

_STRUCTURE = (
    (r"symmetric_matri", "symmetric"),
    (r"(upper|lower)_?triangular", "triangular"),
    (r"kl_?div", "probabilities"),
    (r"hinge_?loss", "signs"),
)
"""Inputs that a recipe draws with a structure: our judge would draw other values too."""
_DECLARED = ("FAMILY", "DIFFICULTY", "ORIGIN")
_HALF = re.compile(r"torch\.(bfloat16|float16|half)\b|\.(half|bfloat16)\(\)")


def task_from_text(name: str, text: str, run: Callable[[Task], object] | None = None) -> Task:
    """Read a KernelBench file that is not a file: a row of a table, or generated.

    Raises:
        UsageError: It is not in KernelBench's form.
    """
    with tempfile.TemporaryDirectory(prefix="kernelsmith-suite-") as folder:
        path = Path(folder) / f"{name.replace('/', '_')}.py"
        try:
            path.write_text(text)
        except (OSError, ValueError) as error:  # its name is too long, or it is no text
            raise UsageError(f"it cannot be written to a file: {error}") from error
        try:
            return load_task(path, run)
        except UsageError as error:  # it is not there any more when this is read
            raise UsageError(str(error).replace(f"{folder}/", "")) from error


def records_in(path: Path, *needed: str) -> list[dict[str, object]]:
    """What a suite's own list says: one JSON list of objects, or an object a line.

    Raises:
        UsageError: It is neither, or an object lacks what is needed.
    """
    text = read_source(path, "list")
    parts = [text] if text.lstrip().startswith("[") else filter(str.strip, text.splitlines())
    try:
        found = [json.loads(part) for part in parts]
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is broken: it is not JSON ({error})") from error
    if len(found) == 1 and isinstance(found[0], list):
        found = found[0]
    if not all(isinstance(each, dict) for each in found):
        raise UsageError(f"{path} is broken: it is no list of objects")
    for number, each in enumerate(found, start=1):
        if lacking := [name for name in needed if name not in each]:
            raise UsageError(f"{path} is broken: object {number} has no {lacking[0]!r}")
    return found


def parquet_rows(path: Path) -> list[dict[str, object]]:
    """The rows of a parquet file.

    Raises:
        UsageError: There is no reader for it, or it is broken.
    """
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise UsageError(f"{path} needs pyarrow: pip install pyarrow") from error
    try:
        rows: list[dict[str, object]] = parquet.read_table(path).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        said = " ".join(str(error).split())
        raise UsageError(f"{path} cannot be read as parquet: {said}") from error
    return rows


def promised(task: Task, stem: str) -> Task:
    """Declare the structure that inputs of this name have in KernelBench; a file's own wins."""
    if task.structure:
        return task
    for pattern, structure in _STRUCTURE:
        if re.search(pattern, stem, re.IGNORECASE):
            return replace(task, structure=(structure,))
    return task


def missing_package(source: str) -> str:
    """Name the first package that a source imports and this machine has not; empty if none."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        for name in names:
            if importlib.util.find_spec(name.partition(".")[0]) is None:
                return name.partition(".")[0]
    return ""


def dtype_of(source: str) -> str:
    """Guess from the source; ``float32`` is what torch draws where nothing is said."""
    found = {each for pair in _HALF.findall(source) for each in pair if each}
    if not found:
        return "float32"
    return "bfloat16" if "bfloat16" in found else "float16"


def declared(source: str) -> dict[str, str]:
    """What a file says about itself in constants that tables group by."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id in _DECLARED:
                    found[target.id] = str(node.value.value)
    return found
