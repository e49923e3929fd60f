"""Tasks that bring a verified CUDA kernel along, to be made faster or ported: MACA's form.

Such a file is a KernelBench file with a constant ``CUDA``: a candidate of the ``cuda`` backend that
passes there. The kernel is the input (prompts show it, the rules translate it), the module says
what is right.
"""

from collections.abc import Iterator
from pathlib import Path

from kernelsmith.bench.suite import Absent, Entry
from kernelsmith.bench.suites.builtin import FOLDER, Builtin
from kernelsmith.domain.task import cuda_in


class CudaTasks(Builtin):
    """The 45 that come with the sources; see ``docs/maca.md``."""

    name = "cuda"

    def __init__(self, path: Path = FOLDER / "cuda") -> None:
        super().__init__(path)

    def entries(self) -> Iterator[Entry | Absent]:
        """Yield tasks in the order of names; one without a kernel is absent."""
        for each in super().entries():
            if isinstance(each, Entry) and cuda_in(each.task.source) is None:
                reason = "brings no CUDA kernel along (a constant CUDA)"
                yield Absent(id=each.id, reason=reason)
            else:
                yield each


class CudaFolder(CudaTasks):
    """A folder of such files."""

    name = "cuda-folder"
    _absent = "there is no task file in {path!r}"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
