"""The MACA backend: kernels in MACA C++ (or CUDA through cu-bridge) for MetaX GPUs.

Written from public sources; it never ran on MetaX hardware here, and says so.
"""

from importlib import import_module
from pathlib import Path

from kernelsmith.errors import BackendUnavailable
from kernelsmith.evaluate.backend import Backend
from kernelsmith.evaluate.maca.builder import MacaBuilder
from kernelsmith.evaluate.maca.metax import look
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.evaluate.untested import METAX


def MacaBackend() -> Backend:
    """Open the MetaX GPU; with its compiler alone, candidates are built and not judged.

    Raises:
        BackendUnavailable: The compiler is missing; the message says what else is.
    """
    found = look()
    missing = found.missing()
    if missing is not None and found.sdk.mxcc is None:
        raise BackendUnavailable(
            f"backend 'maca' needs MetaX's software and a GPU of theirs: {missing}. "
            "Without them, --backend maca-emulated checks MACA sources on an NVIDIA GPU"
        )
    if missing is None:
        opened: Backend = import_module("kernelsmith.evaluate.maca.backend").OnMetaX(found)
        return opened

    def open_builder(zygote: Zygote, cache: Path) -> MacaBuilder:
        return MacaBuilder(zygote, cache=cache, sdk=found.sdk)

    module = import_module("kernelsmith.evaluate.nvcc.compile_only")
    only: Backend = module.CompileOnlyBackend(
        "maca", missing=f"{missing}; candidates are built for {found.sdk.arch} and not run",
        open_builder=open_builder, tools=(("mxcc", str(found.sdk.mxcc)), ("state", METAX)),
    )  # fmt: skip
    return only
