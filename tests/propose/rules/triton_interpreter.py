"""A process in which Triton interprets, and texts loaded as modules there."""

import importlib.util
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType

import tensor_cores

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
_NUMBERS = count()


def runner(*, faithful: bool = False) -> ProcessPoolExecutor:
    """It takes seconds to start and serves many runs.

    A ``faithful`` one rounds and splits float32 as tensor cores do; else products are exact.
    """
    return ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=_begin, initargs=(faithful,)
    )


def _begin(faithful: bool) -> None:
    os.environ["TRITON_INTERPRET"] = "1"
    import torch

    from kernelsmith.evaluate.worker import sums

    torch.set_num_threads(1)
    sums.install()
    if faithful:
        tensor_cores.install()


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Triton reads a kernel's text from its file; it stays until the process ends."""
    return tempfile.TemporaryDirectory()


def loaded(text: str) -> ModuleType:
    """The text as a module."""
    path = Path(_folder().name, f"made_{next(_NUMBERS)}.py")
    path.write_text(text)
    found = importlib.util.spec_from_file_location(path.stem, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
