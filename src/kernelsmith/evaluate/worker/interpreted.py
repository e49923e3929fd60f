"""A candidate's process where Triton kernels run in Triton's interpreter, on the CPU."""

import os
import socket
from collections.abc import Callable, Sequence

from triton.runtime.autotuner import Autotuner

from kernelsmith.evaluate.worker import bfloat16, libdevice, program, sums


def serve(control: socket.socket, fds: list[int]) -> None:
    """Answer the judge until it hangs up, with Triton's cache in the scratch directory."""
    # Triton noted its home when the zygote loaded it; the scratch is known since the fork.
    os.environ["TRITON_CACHE_DIR"] = os.path.join(os.environ["TMPDIR"], "triton")
    program.serve(control, fds)


def _first_wins(kernel_call: Callable[[], object], quantiles: Sequence[float]) -> list[float]:
    del kernel_call
    return [1.0 for _ in quantiles]


_construct = Autotuner.__init__


def _without_a_clock(tuner: Autotuner, *arguments: object, **options: object) -> None:
    """Construct an autotuner that takes the first of its configurations.

    There is no driver to ask for a clock, and an interpreter's would say nothing.
    """
    for clock in ("warmup", "rep", "use_cuda_graph"):
        options.pop(clock, None)
    _construct(tuner, *arguments, **{**options, "do_bench": _first_wins})


Autotuner.__init__ = _without_a_clock
bfloat16.install()
libdevice.install()
sums.install()
