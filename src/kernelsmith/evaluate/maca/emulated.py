"""An NVIDIA device that stands in for MetaX's: the same checks, and no word about speed."""

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Library, Task
from kernelsmith.evaluate.cuda.oracle import DeviceOracle
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.guards.policy import Violation, judge_coverage
from kernelsmith.evaluate.maca.builder import EmulatedBuilder
from kernelsmith.evaluate.nvcc.backend import CudaCppBackend
from kernelsmith.evaluate.nvcc.lane import CudaLane
from kernelsmith.evaluate.nvcc.owned import coverage_of
from kernelsmith.evaluate.nvcc.profiler import Profile
from kernelsmith.evaluate.nvcc.sanitizer import Examined
from kernelsmith.evaluate.sandbox.process import Zygote

IMITATED = "a MetaX C500 (waves of 64, 64 KiB of shared memory)"


class EmulatedLane(CudaLane):
    """A MACA candidate on an NVIDIA device."""

    def settle(self) -> None:
        """Once it is right: whose kernels ran? Nobody times it, so nobody else would ask."""
        if not self.compiled:
            raise ProgramFailed(
                Verdict.CHEATED, "torch fallback: the candidate built no kernels of its own"
            )
        found = coverage_of(self)
        if found is None:
            return
        said = judge_coverage(found, Library.SOME, certain=True)
        if isinstance(said, Violation):
            raise ProgramFailed(Verdict.CHEATED, said.message)


class OnNvidia(CudaCppBackend):
    """Builds MACA C++ with nvcc and our headers; a pass is labelled ``emulated``, and untimed."""

    name = "maca-emulated"
    timed = False
    emulates = IMITATED

    def device(self) -> Device:
        """Name the device that is really there, and what it stands in for."""
        real = super().device()
        return Device(
            kind="maca-emulated",
            name=f"{real.name} standing in for {IMITATED}",
            versions=real.versions,
            sandbox=real.sandbox,
        )

    def lane(
        self, name: str, *, timeout_s: float, oracle: DeviceOracle | None = None
    ) -> EmulatedLane:
        """Open an empty program in a process of its own."""
        assert oracle is not None
        return EmulatedLane(
            self._spawn("program"), oracle, threads=1, timeout_s=timeout_s, name=name,
            template=None, settled=self._settled, builder=self.builder,
        )  # fmt: skip

    def examined(self, task: Task, candidate: Candidate) -> list[Examined]:
        """Nothing: a sanitizer would look at the emulation, not at the candidate."""
        del task, candidate
        return []

    def profiled(self, task: Task, candidate: Candidate) -> list[Profile]:
        """Nothing: the counters would be those of the wrong device."""
        del task, candidate
        return []

    def _open_builder(self, zygote: Zygote) -> EmulatedBuilder:
        return EmulatedBuilder(zygote, cache=self._cache, arch=self.arch, toolkit=self._toolkit)
