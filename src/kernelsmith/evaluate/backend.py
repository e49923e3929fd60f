"""The seam to hardware: what a backend gives the judge, and how one is found.

A backend opens references and programs on its device and reads a clock. It never judges: what
counts as right, fast or honest is the harness's business and is the same for all backends.
"""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from importlib.metadata import entry_points
from typing import Protocol

from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Task, Workload
from kernelsmith.errors import BackendUnavailable, UsageError
from kernelsmith.evaluate.tensors import Float64, Spec, Tensor
from kernelsmith.evaluate.values import Answers, Found, InputSet, Launches, Setup, State


class Oracle(Protocol):
    """The reference of one task, where no candidate can reach it."""

    has_statistic: bool

    @property
    def is_beside(self) -> bool:
        """Whether others may use the device's memory meanwhile."""
        ...

    def workload(self, workload: Workload, seed: int) -> Setup:
        """Construct the reference for a workload, with weights drawn from ``seed``."""
        ...

    def weights(self, seed: int, *, few: bool = False) -> State:
        """Draw new weights for the current workload, or only a few elements of each."""
        ...

    def inputs(self, seeds: Sequence[int], variant: str = "plain") -> list[InputSet] | None:
        """Draw one set per seed; none where the variant does not apply to this task."""
        ...

    def answers(
        self, sets: Sequence[InputSet], *, nudges: int = 4, before: Sequence[InputSet] = ()
    ) -> list[Answers]:
        """Say what is right for each set, where launching those before may have changed buffers.

        Raises:
            UsageError: The reference itself fails on them.
        """
        ...

    def shifted(self, chosen: InputSet, runs: int = 4) -> list[list[Tensor]]:
        """Give the outputs in float64 on inputs that carry 18 bits, one list a run.

        They say how much the task magnifies rounding; none where that cannot be had.
        """
        ...

    def is_random(self, chosen: InputSet) -> bool:
        """Whether the reference gives other answers under another seed."""
        ...

    def degenerate(self, sets: Sequence[InputSet]) -> list[str]:
        """In what way the task asks for less than it seems to."""
        ...

    def statistics(self, chosen: InputSet, runs: int) -> Float64:
        """The task's statistic over fresh runs of the reference, one row a run."""
        ...

    def reduce(self, tree: object, outputs: Sequence[Found]) -> Float64:
        """The task's statistic of a candidate's outputs."""
        ...

    def release(self, keep: Sequence[InputSet] = ()) -> None:
        """Forget all input sets but those to keep, and all answers read so far."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class Lane(Protocol):
    """One program (candidate or baseline) that turns inputs into outputs and says nothing more.

    Every method but ``close`` may raise ``ProgramFailed`` with a verdict.
    """

    prepares: bool
    """Whether the program has a ``prepare()`` for static weights."""
    build_s: float
    spared: frozenset[int]
    """Outputs that are the module's own memory in the reference too: not written over."""

    @property
    def room(self) -> int | None:
        """Bytes of input that may be arranged at once; none where memory is no concern."""
        ...

    @property
    def pid(self) -> int | None:
        """Its process, where it has one of its own to be watched."""
        ...

    @property
    def output(self) -> str:
        """Tail of what it printed."""
        ...

    @property
    def own_code(self) -> Collection[tuple[int, int]]:
        """Device and inode of each shared object built for it."""
        ...

    def load(self, source: str, entry: str, setup: Setup, *, function: bool) -> None:
        """Build and construct; a source that does not build is ``build_failed``."""
        ...

    def state_mismatch(self, state: State) -> str | None:
        """Which state-dict keys do not fit the reference's."""
        ...

    def weights(self, state: State, *, first: bool, prepare: bool = False) -> None:
        """Write the reference's weights into the program's, in place."""
        ...

    def arrange(self, sets: Sequence[InputSet]) -> None:
        """Make one slot per set and fill it."""
        ...

    def refill(self, sets: Sequence[InputSet], slots: Sequence[int] | None = None) -> None:
        """Put new contents behind the same addresses, of some slots or all."""
        ...

    def run(self, slots: Sequence[int]) -> Launches:
        """Launch once per slot, under the judge's clock."""
        ...

    def outputs(self, launches: Launches, index: int) -> Sequence[Found | str]:
        """Read one launch's outputs; a text says why one is no plain tensor."""
        ...

    def buffer(self, key: str, like: Tensor | Spec) -> Found | str:
        """Read one of the program's buffers, if it has the form of ``like``."""
        ...

    def release(self, launches: Launches) -> None:
        """Write over the outputs and let the program forget them."""
        ...

    def input_now(self, slot: int, leaf: int) -> Found:
        """What an input holds after the launches."""
        ...

    def changed_inputs(self, slot: int) -> list[int]:
        """Leaves of a slot that no longer hold what the judge wrote."""
        ...

    def guards_intact(self) -> bool:
        """Whether nothing was written between the inputs."""
        ...

    def input_at(self, address: int) -> tuple[int, int] | None:
        """Slot and leaf of the input that an address lies in."""
        ...

    def settle(self) -> None:
        """Remember what its autotuners chose, for other processes of the same source."""
        ...

    def modules(self) -> list[str]:
        """Private torch modules that it has loaded."""
        ...

    def close(self) -> None:
        """End it; nothing of it survives."""
        ...


class Backend(Protocol):
    """Toolchain and device family. Found by the entry point group ``kernelsmith.backends``."""

    name: str
    timed: bool
    """Whether its clock means anything; an interpreter's does not, and a pass says so."""
    references: int
    """How many tasks' references may stay open: each is a process, and on a device takes memory
    that the next task may need."""

    def device(self) -> Device:
        """Name the device in use, or raise ``BackendUnavailable`` saying what is missing."""
        ...

    def oracle(self, task: Task) -> Oracle:
        """Open the reference of a task."""
        ...

    def lane(self, name: str, *, timeout_s: float, oracle: Oracle | None = None) -> Lane:
        """Open an empty, fresh program; ``name`` says whose, for messages.

        Where values stay on the device, ``oracle`` is whoever reads and writes them there.
        """
        ...

    def shared(self) -> AbstractContextManager[None]:
        """Hold the device together with others, for building and checking."""
        ...

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the device alone, for timing."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


_BUILTIN = {
    "null": "kernelsmith.evaluate.backends.null:NullBackend",
    "cpu": "kernelsmith.evaluate.backends.cpu:CpuBackend",
    "triton": "kernelsmith.evaluate.backends.triton:TritonBackend",
    "cuda": "kernelsmith.evaluate.backends.cuda:CudaBackend",
    "maca": "kernelsmith.evaluate.backends.maca:MacaBackend",
    "maca-emulated": "kernelsmith.evaluate.backends.maca_emulated:EmulatedBackend",
}


def known_backends() -> dict[str, str]:
    """Name every backend of this installation, with where it lives; nothing is imported."""
    plugins = {each.name: each.value for each in entry_points(group="kernelsmith.backends")}
    return _BUILTIN | plugins


def load_backend(name: str) -> Backend:
    """Import and return one backend. Others, and their toolchains, stay unimported."""
    known = known_backends()
    if name not in known:
        raise UsageError(f"no backend {name!r}; this installation knows {', '.join(sorted(known))}")
    module, _, attribute = known[name].partition(":")
    try:
        backend: Backend = getattr(import_module(module), attribute)()
    except ImportError as error:
        raise BackendUnavailable(
            f"backend {name!r} needs the module {error.name!r}, which is not installed; "
            f"try: pip install 'kernelsmith[{name}]'"
        ) from error
    return backend
