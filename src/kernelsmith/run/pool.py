"""Judges on this machine: a few at a time, each with processes of its own."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.errors import EvaluationLost, SmithError
from kernelsmith.evaluate.backend import Backend, load_backend
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.harness import Judge
from kernelsmith.evaluate.settings import Settings
from kernelsmith.run.dispatch import Shapes

T = TypeVar("T")
_PATIENCE_S = 20.0
"""How long closing waits for judges whose processes have been ended."""


class _Local(LocalEvaluator):
    """One that opens nothing any more once its run has ended."""

    ended = False

    def _judge_of(self, task: Task) -> Judge:
        if self.ended:
            raise EvaluationLost("the run has ended")
        return super()._judge_of(task)


@dataclass(frozen=True, slots=True)
class _Bench:
    """A backend with the two ways of judging on it; used by one at a time."""

    backend: Backend
    usual: _Local
    thorough: _Local


class LocalPool:
    """Lends judges out, ``size`` at a time; the reference of a task stays open in each."""

    def __init__(self, backend: str, *, usual: Settings, thorough: Settings, size: int = 1) -> None:
        self._name, self._settings = backend, (usual, thorough)
        self._free: asyncio.LifoQueue[_Bench | None] = asyncio.LifoQueue()
        for _ in range(size):
            self._free.put_nowait(None)
        self._made: list[_Bench] = []
        self._size = size

    @property
    def evaluator(self) -> "Lent":
        """For every candidate."""
        return Lent(self, thorough=False)

    @property
    def confirmer(self) -> "Lent":
        """For champions, and for the result."""
        return Lent(self, thorough=True)

    async def evaluate(
        self, task: Task, candidate: Candidate, baseline: Candidate | None, *, thorough: bool
    ) -> Evaluation:
        """Wait for a free judge and ask it."""
        bench = await self._taken()
        judge = bench.thorough if thorough else bench.usual
        return await self._used(bench, judge.evaluate(task, candidate, baseline=baseline))

    async def shapes(self, task: Task) -> dict[str, Shapes]:
        """Ask the reference which shapes and dtypes each timed workload has."""
        bench = await self._taken()
        return await self._used(bench, asyncio.to_thread(_shapes, bench.backend, task))

    async def close(self) -> None:
        """End every process; evaluations under way are lost, and say so."""
        for bench in self._made:
            bench.usual.ended = bench.thorough.ended = True
        busy = self._size - self._free.qsize()
        if busy:
            for bench in self._made:
                await asyncio.to_thread(bench.backend.close)
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    for _ in range(self._size):
                        await self._free.get()
            except TimeoutError:
                return  # a thread that does not come back holds its processes; they are dead
        for bench in self._made:
            await asyncio.to_thread(bench.usual.close)
            await asyncio.to_thread(bench.thorough.close)
        self._made.clear()

    async def _taken(self) -> _Bench:
        bench = await self._free.get()
        if bench is not None:
            return bench
        try:
            backend = load_backend(self._name)
        except SmithError:
            self._free.put_nowait(None)
            raise
        usual, thorough = (_Local(backend, settings) for settings in self._settings)
        self._made.append(_Bench(backend, usual, thorough))
        return self._made[-1]

    async def _used(self, bench: _Bench, work: Coroutine[Any, Any, T]) -> T:
        # A thread cannot be stopped: the bench is free when it has come back, not when whoever
        # waited for it has given up.
        task = asyncio.ensure_future(work)

        def back(done: asyncio.Future[T]) -> None:
            self._free.put_nowait(bench)
            if not done.cancelled():
                done.exception()  # seen here where whoever asked has gone

        task.add_done_callback(back)
        return await asyncio.shield(task)


class Lent:
    """One way of judging in a pool, as an evaluator."""

    def __init__(self, pool: LocalPool, *, thorough: bool) -> None:
        self._pool, self._thorough = pool, thorough

    async def evaluate(
        self, task: Task, candidate: Candidate, *, baseline: Candidate | None = None
    ) -> Evaluation:
        """Judge as soon as a judge is free."""
        return await self._pool.evaluate(task, candidate, baseline, thorough=self._thorough)


def _shapes(backend: Backend, task: Task) -> dict[str, Shapes]:
    oracle = backend.oracle(task)
    try:
        found: dict[str, Shapes] = {}
        for workload in task.workloads:
            if workload.held_out:
                continue
            oracle.workload(workload, seed=0)
            sets = oracle.inputs([0])
            assert sets is not None
            specs = [leaf.spec for leaf in sets[0].leaves]
            found[workload.name] = tuple((each.dtype, tuple(each.shape)) for each in specs)
            oracle.release()
        return found
    finally:
        oracle.close()
