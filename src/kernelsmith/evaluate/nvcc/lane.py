"""A CUDA candidate on the device: what its kernels are is known from building them."""

from collections.abc import Sequence
from dataclasses import replace

from kernelsmith.domain.evaluation import Kernel, Verdict
from kernelsmith.evaluate.builder import Artifact
from kernelsmith.evaluate.cuda.lane import DeviceLane
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.nvcc.cute import is_cute, missing_cute
from kernelsmith.evaluate.nvcc.report import demangled, table
from kernelsmith.evaluate.values import Setup


class CudaLane(DeviceLane):
    """A program whose kernels the judge compiled, unless CuTe DSL does."""

    _is_cute = False

    @property
    def compiled(self) -> tuple[Kernel, ...]:
        """What the compiler said of its kernels, whether or not they ever ran."""
        return compiled(self._artifacts)

    @property
    def output(self) -> str:
        """Tail of what it printed, and what the compilers had to say."""
        return with_notes(super().output, self._artifacts)

    def load(self, source: str, entry: str, setup: Setup, *, function: bool) -> None:
        """Run the source and construct what it defines."""
        if missing := missing_cute(source):
            raise ProgramFailed(Verdict.BUILD_FAILED, missing)
        self._is_cute = is_cute(source)
        super().load(source, entry, setup, function=function)

    def kernels(self, slots: Sequence[int], launches: int) -> list[tuple[Kernel, float]]:
        """What it launches. Its word on whose a kernel is counts only where we built that name.

        What CuTe DSL compiles nobody but its process has seen; there its word is all there is.
        """
        if self._is_cute:
            return super().kernels(slots, launches)
        known = {each.name: each for each in self.compiled}
        known |= {demangled(name): each for name, each in known.items()}
        return [(_checked(said, known), us) for said, us in super().kernels(slots, launches)]


def _checked(said: Kernel, known: dict[str, Kernel]) -> Kernel:
    built = known.get(said.name)
    if not said.own or built is None:
        return replace(said, own=False)
    return replace(
        said, name=demangled(said.name)[:200], registers=built.registers, spills=built.spills,
        precision=built.precision,
    )  # fmt: skip


def compiled(artifacts: Sequence[Artifact]) -> tuple[Kernel, ...]:
    """All kernels of all that was built."""
    return tuple(kernel for artifact in artifacts for kernel in artifact.kernels)


def with_notes(output: str, artifacts: Sequence[Artifact]) -> str:
    """A program's output, with the compilers' report behind it."""
    said = [artifact.notes for artifact in artifacts if artifact.notes]
    if kernels := compiled(artifacts):
        said.append(table(kernels))
    return "\n".join([*([output.rstrip()] if output.strip() else []), *said])
