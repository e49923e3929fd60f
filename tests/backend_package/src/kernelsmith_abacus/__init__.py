"""A backend that is not part of Kernel-Smith: C++ with its own name for ``cpp``, on one core.

It shows what ``docs/adding-a-backend.md`` says: a toolchain, a device record, processes of the
judge's sandbox, and nothing about what is right or fast.
"""

import platform

from kernelsmith.domain.device import Device
from kernelsmith.evaluate.backends.cpu import CpuBackend
from kernelsmith.evaluate.processor import processor


class AbacusBackend(CpuBackend):
    """One core of this machine, as if it were a device of its own."""

    name = "abacus"

    @property
    def cores(self) -> int:
        """One, whatever the machine has."""
        return 1

    def device(self) -> Device:
        """Name what a timing depends on."""
        return Device(
            kind="abacus",
            name=f"one core of {processor()}",
            cores=1,
            versions=(("python", platform.python_version()), ("compiler", self._compiler)),
            sandbox=self._sandbox,
        )
