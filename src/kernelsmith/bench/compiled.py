"""``torch.compile`` as an entrant and as a baseline, under the same judge as everyone.

A candidate may never compile its way through a task: the judge refuses it. An entrant of our own
that is nothing but the reference behind ``torch.compile`` may, and is then held to everything else:
the same fresh inputs, the same comparison, the same clock. As a baseline it takes the place of the
reference run eagerly.
"""

import ast
import io
import logging
import tokenize
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import cast

from kernelsmith.bench.beginning import begun_with
from kernelsmith.bench.compiling import Compiling, CompilingCpu, CompilingCuda
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Library, Task
from kernelsmith.errors import BackendUnavailable, SmithError, UsageError
from kernelsmith.evaluate.backend import load_backend
from kernelsmith.evaluate.cuda.backend import CudaBackend
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.harness import Judge
from kernelsmith.evaluate.settings import Settings

MODES = {
    "compile": "",
    # The judge captures graphs itself; the compiler's own would be captured inside them.
    "max-autotune": ', mode="max-autotune-no-cudagraphs"',
}
logger = logging.getLogger(__name__)
TIMEOUT_S = 300.0
"""How long the compiler may take over its first call."""

_HEAD = """\
import os

# Kept with what Triton compiled, which the judge hands on to the next process of this source.
if "TRITON_CACHE_DIR" in os.environ:
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(os.environ["TRITON_CACHE_DIR"], "inductor")
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

"""
_MODULE = '''


class ModelNew(Model):
    """The reference behind torch.compile."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__["compiled"] = torch.compile(super().forward{mode})

    def forward(self, *args, **kwargs):
        return self.compiled(*args, **kwargs)
'''
_FUNCTION = "\n\n{entry} = torch.compile({entry}{mode})\n"


def compiling(task: Task, mode: str) -> str:
    """The reference's own source, compiled when it is first called.

    Args:
        task: Whose reference.
        mode: One of ``MODES``.
    """
    said = MODES[mode]
    tail = _FUNCTION.format(entry=task.entry, mode=said) if task.is_function else ""
    torch = "" if _imports_torch(task.source) else "\n\nimport torch\n"
    return begun_with(_HEAD, task.source) + torch + (tail or _MODULE.format(mode=said))


def eager(task: Task) -> str:
    """The reference as a candidate: what must pass at a ratio of one."""
    return task.source if task.is_function else renamed(task.source)


def renamed(source: str) -> str:
    """Rename the class ``Model`` to ``ModelNew``, and every mention of it."""
    lines = io.StringIO(source).readlines()  # as the tokenizer counts them
    places = [
        each.start
        for each in tokenize.generate_tokens(io.StringIO(source).readline)
        if each.type == tokenize.NAME and each.string == "Model"
    ]
    for row, column in reversed(places):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]}ModelNew{line[column + len('Model') :]}"
    return "".join(lines)


class _Lenient(Judge):
    """A judge of our own entrants, which may load torch's compiler."""

    def _convict_compiler(self, lane: object) -> None:
        del lane


class _Entrants(LocalEvaluator):
    """Judges what is compiled."""

    _maker = _Lenient


class Compilers:
    """Judges what is compiled, and candidates beside it, with what was compiled kept."""

    def __init__(self, backend: str, settings: Settings, *, only_beside: bool = False) -> None:
        """Open a backend whose programs can start compilers.

        Args:
            backend: Its name.
            settings: How thorough the judge is.
            only_beside: Whether nothing may have the device to itself, as many judge on it.

        Raises:
            UsageError: The backend has no compiler of torch's.
            BackendUnavailable: It cannot work here.
        """
        settings = replace(settings, timeout_s=max(settings.timeout_s, TIMEOUT_S))
        self._settings = settings
        self._backend = opened(backend)
        if isinstance(self._backend, CudaBackend):
            self._backend.only_beside = only_beside
        # Its source is ours and says torch.compile; odd strides would only make it compile again.
        free = replace(settings, static=False, robust=False, rehearse=False, kernels=False)
        self._entrants = _Entrants(self._backend, free)
        self._others = LocalEvaluator(self._backend, settings)
        once = replace(settings.stop, min_pairs=1, max_pairs=1)
        self._hurried = _Entrants(self._backend, replace(free, stop=once))
        self._compiled: set[str] = set()
        """Sources whose files are kept."""
        self.seeds_fit: bool | None = None
        """Whether files that were compiled elsewhere are what is asked for here, once known."""

    def begin(self) -> None:
        """Load the compiler now: it takes seconds, and the device should not wait for them."""
        self._backend.load()

    def adopt(self, other: LocalEvaluator) -> None:
        """Go on with the references that another judge of this device has open."""
        self._entrants.adopt(other)

    def judge(self, task: Task, mode: str) -> Evaluation:
        """The reference behind the compiler as the candidate, beside the reference run eagerly."""
        self._side("candidate")
        free = replace(task, library=Library.ANY, baseline=None)
        source = compiling(task, mode)
        self._compiled.add(source)
        found = self._entrants.judge(free, Candidate(backend=self._backend.name, source=source))
        self._look_at_seeds(source)
        return found

    def judge_beside(self, task: Task, candidate: Candidate, mode: str) -> Evaluation:
        """A candidate, held to everything that candidates are, beside the compiled reference.

        Raises:
            UsageError: The compiled reference does not run.
        """
        source = compiling(task, mode)
        self._warm(task, source)
        self._side("baseline")
        return self._others.judge(replace(task, baseline=source), candidate)

    def seed(self, source: str, files: Mapping[str, str]) -> None:
        """Begin with files that were compiled elsewhere, so that no process compiles the source.

        Where they do not fit what is asked of it here, it is compiled all the same. Whether they
        do is looked at once; until then, and where they do not, a source is compiled and its files
        are kept before it is a baseline.

        Args:
            source: As ``compiling`` writes it.
            files: In base64, by name in the folder that ``TRITON_CACHE_DIR`` names.
        """
        if files:
            self._backend.seed(source, files)
            if self.seeds_fit:
                self._compiled.add(source)

    def forget(self) -> None:
        """End the references that are open."""
        for each in (self._entrants, self._hurried, self._others):
            each.forget()

    def close(self) -> None:
        """End every process."""
        for each in (self._entrants, self._hurried, self._others):
            each.close()

    def _warm(self, task: Task, source: str) -> None:
        """Have a device keep what is compiled: it does so for candidates, not for baselines."""
        if isinstance(self._backend, CompilingCpu) or source in self._compiled:
            return
        self._compiled.add(source)
        self._side("candidate")
        if self._settings.stop.max_pairs > 1:
            free = replace(task, library=Library.ANY, baseline=None)
            with suppress(SmithError):  # what is wrong with it, the baseline will say
                self._hurried.judge(free, Candidate(backend=self._backend.name, source=source))
        self._look_at_seeds(source)

    def _look_at_seeds(self, source: str) -> None:
        if self.seeds_fit is None and (anew := self._backend.compiled_anew(source)) is not None:
            self.seeds_fit = not anew
            logger.info("what was compiled ahead %s", "is compiled anew" if anew else "is used")

    def _side(self, name: str) -> None:
        self._backend.compiles = name


def opened(backend: str) -> Compiling:
    """A backend on which torch.compile can run.

    Raises:
        UsageError: There is none.
        BackendUnavailable: There is, and it cannot work here.
    """
    if backend == "cpu":
        return CompilingCpu()
    if backend != "triton":
        raise UsageError(f"torch.compile has no form on the backend {backend!r}")
    found = load_backend(backend)
    found.close()
    if not isinstance(found, CudaBackend):
        raise BackendUnavailable("nothing is timed in Triton's interpreter, torch.compile neither")
    return cast(Compiling, CompilingCuda())


def _imports_torch(source: str) -> bool:
    """Whether the name ``torch`` is there for the lines that are added."""
    return any(
        isinstance(node, ast.Import)
        and any((alias.asname or alias.name.partition(".")[0]) == "torch" for alias in node.names)
        for node in ast.parse(source).body
    )
