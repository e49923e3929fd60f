"""The null backend: arithmetic expressions with a simulated clock; no hardware, no processes.

Task and candidate are expressions over named vectors, such as ``maximum(x + y, 0)``. A comment
``# us: 12.5`` sets the simulated time of one launch; without one, every operator costs 1 us.
What it does is real (expressions are evaluated and checked); only the clock is made up.
"""

import ast
import contextlib
import hashlib
import random
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager

import numpy as np

from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task, Workload
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.checks.answer import Answer
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.tensors import Array, Float64, Spec, Tensor
from kernelsmith.evaluate.values import Answers, Found, InputSet, Launches, Leaf, Setup, State

_IDLE_US = 5.0
_FUNCTIONS = {
    "maximum": np.maximum, "minimum": np.minimum, "exp": np.exp, "sqrt": np.sqrt,
    "abs": np.abs, "tanh": np.tanh, "sum": np.sum, "mean": np.mean,
}  # fmt: skip
_MOST_ARGUMENTS = {"maximum": 2, "minimum": 2, "sum": 2, "mean": 2}
_ALLOWED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, ast.Constant, ast.Call,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub, ast.UAdd,
)  # fmt: skip
_NO_STATE = State(keys=(), leaves=())
_TENSOR = {"t": 0}


class NoValue(ArithmeticError):
    """An expression that was parsed has no value, such as ``maximum(x)``."""


class Expression:
    """One parsed expression, restricted to arithmetic: it cannot reach anything.

    Raises:
        SyntaxError: The source is none, or is nested too deeply to be read.
    """

    def __init__(self, source: str) -> None:
        try:
            tree = ast.parse(source.strip(), mode="eval")
            self._code = compile(_restricted(tree), "expression", "eval")
        except (RecursionError, MemoryError) as error:
            raise SyntaxError("too deeply nested") from error
        except (ValueError, OverflowError) as error:
            raise SyntaxError(str(error)) from error
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self.inputs = tuple(sorted(names - set(_FUNCTIONS)))
        said = re.search(r"#\s*us:\s*(\d+\.?\d*|\.\d+)", source)
        operators = sum(isinstance(n, ast.BinOp | ast.UnaryOp | ast.Call) for n in ast.walk(tree))
        self.cost_us = float(said[1]) if said else float(max(operators, 1))

    def __call__(self, values: Mapping[str, Array]) -> Array:
        """Evaluate on named vectors.

        Raises:
            NoValue: There is nothing that it could be.
        """
        try:
            with np.errstate(all="ignore"):
                found = eval(self._code, {"__builtins__": {}}, {**_FUNCTIONS, **values})
            value = np.asarray(found)
        except (ArithmeticError, TypeError, ValueError, MemoryError, RecursionError) as error:
            raise NoValue(f"{type(error).__name__}: {error}") from error
        if value.dtype.kind not in "biuf":
            raise NoValue(f"{value.dtype} is no real number")
        return value


def _restricted(tree: ast.Expression) -> ast.Expression:
    """The same with numbers that cannot grow: ``9**9**9`` as integers would never be done."""
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise SyntaxError(f"{type(node).__name__} is not arithmetic")
        if isinstance(node, ast.Constant) and not isinstance(node.value, int | float):
            raise SyntaxError(f"{node.value!r} is not a number")
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name not in _FUNCTIONS:
                raise SyntaxError(f"only {', '.join(_FUNCTIONS)} can be called")
            if len(node.args) > _MOST_ARGUMENTS.get(name, 1):  # numpy's next one is written to
                raise SyntaxError(f"too many arguments of {name}")
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            for side in (node.left, node.right):
                while isinstance(side, ast.UnaryOp):
                    side = side.operand
                if isinstance(side, ast.Constant):
                    assert isinstance(side.value, int | float)
                    side.value = float(side.value)
    return tree


class NullOracle:
    """Answers of an expression, in float64."""

    has_statistic = False
    is_beside = False

    def __init__(self, task: Task) -> None:
        try:
            self._expression = Expression(task.source)
        except SyntaxError as error:
            raise UsageError(f"task {task.name!r} is no null expression: {error.msg}") from error
        self._length, self._next = 16, 0

    def workload(self, workload: Workload, seed: int) -> Setup:
        """Take the vector length from the workload's argument ``n``."""
        length = dict(workload.arguments).get("n", 16)
        if not isinstance(length, int):
            raise UsageError(f"the null backend's n is a number of elements; got {length!r}")
        self._length = length
        return Setup(
            init=list(self._expression.inputs), keywords=False, leaves=(), state=_NO_STATE,
            seed=seed, dtype=None, training=False,
        )  # fmt: skip

    def weights(self, seed: int, *, few: bool = False) -> State:
        """Expressions have none."""
        del seed, few
        return _NO_STATE

    def inputs(self, seeds: Sequence[int], variant: str = "plain") -> list[InputSet] | None:
        """Draw vectors in (0, 1); signs and ranges by variant."""
        if variant not in ("plain", "negative", "wide"):
            return None
        return [self._draw(np.random.default_rng(seed), variant) for seed in seeds]

    def answers(
        self, sets: Sequence[InputSet], *, nudges: int = 4, before: Sequence[InputSet] = ()
    ) -> list[Answers]:
        """Evaluate in float32 and float64; an expression keeps nothing between launches."""
        del nudges, before
        found = []
        for each in sets:
            values = {
                name: leaf.tensor.values
                for name, leaf in zip(self._expression.inputs, each.leaves, strict=True)
            }
            wide = {name: value.astype(np.float64) for name, value in values.items()}
            try:
                eager = self._expression(values).astype(np.float32)
                exact = self._expression(wide).astype(np.float64)
            except NoValue as error:
                raise UsageError(f"the task's expression has no value: {error}") from error
            answer = Answer(
                path="out", exact=Tensor("float64", exact), eager=Tensor("float32", eager)
            )
            found.append(
                Answers(
                    tree=_TENSOR, outputs=(answer,), aliases=(None,), mutated=(), buffers=(),
                    exact=True,
                )
            )  # fmt: skip
        return found

    def shifted(self, chosen: InputSet, runs: int = 4) -> list[list[Tensor]]:
        """Not needed: null candidates compute as the reference does."""
        del chosen, runs
        return []

    def is_random(self, chosen: InputSet) -> bool:
        """Arithmetic is not."""
        del chosen
        return False

    def degenerate(self, sets: Sequence[InputSet]) -> list[str]:
        """Say so where the expression has no inputs."""
        del sets
        return [] if self._expression.inputs else ["the output does not depend on the inputs"]

    def statistics(self, chosen: InputSet, runs: int) -> Float64:
        """There is none: arithmetic is not random."""
        raise UsageError("null tasks have no statistic")

    def reduce(self, tree: object, outputs: Sequence[Found]) -> Float64:
        """There is none: arithmetic is not random."""
        raise UsageError("null tasks have no statistic")

    def release(self, keep: Sequence[InputSet] = ()) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is open."""

    def _draw(self, rng: np.random.Generator, variant: str) -> InputSet:
        leaves = []
        for _ in self._expression.inputs:
            values = rng.random(self._length, dtype=np.float32)
            if variant != "plain":
                values *= rng.choice(np.array([-1, 1], np.float32), self._length)
            if variant == "wide":
                values *= (10.0 ** rng.uniform(-2, 2, self._length)).astype(np.float32)
            spec = Spec(dtype="float32", shape=(self._length,), strides=(1,))
            leaves.append(Leaf(spec, bytearray(values.tobytes())))
        self._next += 1
        paths = tuple(f"input[{i}]" for i in range(len(leaves)))
        return InputSet(id=self._next, tree=[], keywords=False, leaves=tuple(leaves), paths=paths)


class NullLane:
    """One expression that is 'launched' by evaluating it."""

    prepares = False
    room = None
    pid = None
    output = ""
    own_code: Collection[tuple[int, int]] = ((0, 0),)

    def __init__(self) -> None:
        self.build_s = 0.0
        self.spared: frozenset[int] = frozenset()
        self._expression: Expression
        self._names: tuple[str, ...] = ()
        self._sets: Sequence[InputSet] = ()
        self._kept: list[Array] = []
        self._jitter = random.Random(0)

    def load(self, source: str, entry: str, setup: Setup, *, function: bool) -> None:
        """Parse the expression."""
        del entry, function
        try:
            self._expression = Expression(source)
        except SyntaxError as error:
            raise ProgramFailed(Verdict.BUILD_FAILED, f"line 1: {error.msg}") from error
        assert isinstance(setup.init, list)
        self._names = tuple(str(name) for name in setup.init)
        if unknown := sorted(set(self._expression.inputs) - set(self._names)):
            raise ProgramFailed(Verdict.BUILD_FAILED, f"no input {', '.join(unknown)}")
        digest = hashlib.sha256(f"{source} {setup.seed}".encode()).digest()
        self._jitter = random.Random(digest)

    def state_mismatch(self, state: State) -> str | None:
        """Expressions have no state."""
        del state
        return None

    def weights(self, state: State, *, first: bool, prepare: bool = False) -> None:
        """Expressions have no weights."""

    def arrange(self, sets: Sequence[InputSet]) -> None:
        """Take the sets as slots."""
        self._sets = sets

    def refill(self, sets: Sequence[InputSet], slots: Sequence[int] | None = None) -> None:
        """Take new sets as the same slots."""
        del slots
        self._sets = sets

    def run(self, slots: Sequence[int]) -> Launches:
        """Evaluate once per slot; the clock is simulated, with a little jitter."""
        self._kept = []
        for slot in slots:
            leaves = self._sets[slot].leaves
            values = {n: leaf.tensor.values for n, leaf in zip(self._names, leaves, strict=True)}
            try:
                self._kept.append(self._expression(values).astype(np.float32))
            except NoValue as error:
                raise ProgramFailed(Verdict.CRASHED, str(error)) from error
        elapsed = _IDLE_US + len(self._kept) * self._expression.cost_us
        return Launches(
            elapsed_us=elapsed * (1 + 0.002 * self._jitter.random()),
            waited_us=0.0,
            faults=0,
            tree=_TENSOR if self._kept else None,
            specs=tuple(_spec(each) for each in self._kept[:1]),
            addresses=tuple((index,) for index in range(len(self._kept))),
        )

    def outputs(self, launches: Launches, index: int) -> list[Tensor | str]:
        """The values just computed."""
        del launches
        return [Tensor("float32", self._kept[index])]

    def buffer(self, key: str, like: Tensor | Spec) -> Tensor | str:
        """Expressions have no buffers."""
        del like
        return f"missing: {key}"

    def release(self, launches: Launches) -> None:
        """Forget the outputs."""
        del launches
        self._kept = []

    def input_now(self, slot: int, leaf: int) -> Tensor:
        """Inputs cannot be changed by arithmetic."""
        return self._sets[slot].leaves[leaf].tensor

    def changed_inputs(self, slot: int) -> list[int]:
        """Inputs cannot be changed by arithmetic."""
        del slot
        return []

    def guards_intact(self) -> bool:
        """There is nothing around the inputs."""
        return True

    def input_at(self, address: int) -> tuple[int, int] | None:
        """Outputs are always new."""
        del address
        return None

    def settle(self) -> None:
        """Nothing is tuned."""

    def modules(self) -> list[str]:
        """Nothing can be loaded."""
        return []

    def close(self) -> None:
        """Nothing is open."""


def _spec(values: Array) -> Spec:
    steps = tuple(step // values.itemsize for step in values.strides)
    return Spec(dtype="float32", shape=values.shape, strides=steps)


class NullBackend:
    """For tests, demos and the framework's own overhead: everything but the hardware."""

    name = "null"
    timed = True
    references = 4

    def device(self) -> Device:
        """No device."""
        return Device(kind="null", name="simulated clock")

    def oracle(self, task: Task) -> NullOracle:
        """Parse the task's expression."""
        return NullOracle(task)

    def lane(self, name: str, *, timeout_s: float, oracle: object = None) -> NullLane:
        """An empty lane."""
        del name, timeout_s, oracle
        return NullLane()

    def shared(self) -> AbstractContextManager[None]:
        """Nobody competes for a simulated clock."""
        return contextlib.nullcontext()

    def exclusive(self) -> AbstractContextManager[None]:
        """Nobody competes for a simulated clock."""
        return contextlib.nullcontext()

    def close(self) -> None:
        """Nothing is open."""
