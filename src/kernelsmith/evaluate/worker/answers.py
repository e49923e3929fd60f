"""Right answers: the reference run as it is, in float64, and on inputs nudged by rounding."""

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import cast

import torch

from kernelsmith.evaluate.worker.closeness import close
from kernelsmith.evaluate.worker.inputs import InputSet
from kernelsmith.evaluate.worker.trees import describe, flatten, paths, unflatten

_BLOCK = 1 << 24
"""Elements whose noise is drawn at once: 128 MiB of it."""


@dataclass(slots=True)
class Output:
    """One tensor that a candidate must reproduce."""

    path: str
    eager: torch.Tensor
    exact: torch.Tensor
    alternatives: list[torch.Tensor]
    scores: torch.Tensor | None = None
    dim: int | None = None
    aliases: int | None = None
    """Leaf number of the input that this output shares memory with, if any."""
    kept: bool = False
    """Whether this output is memory that the module keeps, such as a table."""


@dataclass(slots=True)
class Answer:
    """Everything the reference says about one input set."""

    tree: object
    outputs: list[Output]
    mutated: list[tuple[int, Output]]
    """Inputs changed in place, by leaf number."""
    buffers: list[tuple[str, Output]]
    """Buffers changed by the forward, by state-dict key."""
    exact: bool
    """Whether float64 could be had."""

    def to_message(self) -> dict[str, object]:
        """As JSON with addresses; the tensors stay alive until the judge releases them."""
        return {
            "tree": self.tree,
            "outputs": [_output(each) for each in self.outputs],
            "mutated": [[leaf, _output(each)] for leaf, each in self.mutated],
            "buffers": [[key, _output(each)] for key, each in self.buffers],
            "exact": self.exact,
        }


def _output(each: Output) -> dict[str, object]:
    return {
        "path": each.path,
        "eager": describe(each.eager),
        "exact": describe(each.exact),
        "alternatives": [describe(other) for other in each.alternatives],
        "scores": None if each.scores is None else describe(each.scores),
        "dim": each.dim,
        "aliases": each.aliases,
        "kept": each.kept,
    }


@dataclass(slots=True)
class Run:
    """What one call of the reference gave, and what it left behind."""

    tree: object
    leaves: list[torch.Tensor]
    inputs: list[torch.Tensor]
    state: dict[str, torch.Tensor]
    """What of the model's state it changed, as it was left."""
    aliases: list[int | None]
    kept: list[bool]


class Case:
    """The reference for one workload, callable as it is and in float64."""

    def __init__(
        self,
        model: torch.nn.Module | None,
        function: Callable[..., object] | None,
        dtype: torch.dtype | None,
        index_scores: Callable[..., object] | None,
        statistic: Callable[..., object] | None,
    ) -> None:
        self.model, self.dtype = model, dtype
        self.function = function
        self._index_scores, self._statistic = index_scores, statistic
        self._double: torch.nn.Module | None = None
        self._changing: set[str] | None = None
        """Parameters that a call changes; before the first one nobody knows."""
        self.renew()

    def renew(self) -> None:
        """Take note of changed weights."""
        if self.model is not None:
            self._double = None  # there may not be room for two
            self._double = copy.deepcopy(self.model).double()

    def call(self, chosen: InputSet, leaves: list[torch.Tensor], *, double: bool) -> object:
        """Run once on the given leaves; state is restored by whoever asks."""
        arguments = unflatten(chosen.tree, leaves)
        assert isinstance(arguments, list)
        target = self.function or (self._double if double else self.model)
        assert target is not None
        if chosen.keywords:
            return target(**arguments[0])
        return target(*arguments)

    def answer_after(self, chosen: InputSet, earlier: list[InputSet], *, nudges: int) -> Answer:
        """Say what is right for one input set where others were launched before it."""
        if not earlier:
            return self.answer(chosen, nudges=nudges)
        models = [m for m in (self.model, self._double) if m is not None]
        with torch.no_grad(), ExitStack() as later:
            for each in models:
                later.enter_context(self.undone(each))
            for each in earlier:
                for double in (False, True)[: len(models)]:
                    leaves = [leaf.clone() for leaf in each.leaves]
                    if double:
                        leaves = [x.double() if x.is_floating_point() else x for x in leaves]
                    self.call(each, leaves, double=double)
            return self.answer(chosen, nudges=nudges)

    def answer(self, chosen: InputSet, *, nudges: int) -> Answer:
        """Say what is right for one input set."""
        eager = self.run(chosen, chosen.leaves, double=False)
        written = self._written(chosen, eager)
        exact, is_exact = self.exactly(chosen, eager)
        for i, same in enumerate(eager.inputs):
            if i not in written:
                exact.inputs[i] = same  # copies in float64 take memory, too
        discrete = [i for i, leaf in enumerate(eager.leaves) if not leaf.is_floating_point()]
        nudged: dict[int, list[torch.Tensor]] = {i: [] for i in discrete}
        if discrete and is_exact:
            for leaves in self._nudged(chosen, nudges, ulps=16):
                for i in discrete:
                    nudged[i].append(leaves[i])
                del leaves  # before the next run is there
        names = paths(eager.tree, "out")
        outputs = [
            Output(names[i], leaf, exact.leaves[i], nudged.get(i, []),
                   aliases=eager.aliases[i], kept=eager.kept[i])
            for i, leaf in enumerate(eager.leaves)
        ]  # fmt: skip
        self._attach_scores(chosen, outputs)
        mutated = [
            (i, Output(f"input[{i}] after the call", eager.inputs[i], exact.inputs[i], []))
            for i in written
        ]
        before_state = self.model.state_dict() if self.model is not None else {}
        buffers = [
            (key, Output(f"buffer {key} after the call", after, self._exact_state(exact, key), []))
            for key, after in eager.state.items()
            if not torch.equal(before_state[key], after)
        ]
        return Answer(eager.tree, outputs, mutated, buffers, is_exact)

    @staticmethod
    def _written(chosen: InputSet, eager: Run) -> list[int]:
        """Which inputs the call changed; its copies of all others are let go, they take memory."""
        written = []
        for i, before in enumerate(chosen.leaves):
            after = eager.inputs[i]
            if torch.equal(before, after) or _both_nan(before, after):
                eager.inputs[i] = before
            else:
                written.append(i)
        return written

    def shifted(self, chosen: InputSet, runs: int) -> Iterator[list[torch.Tensor]]:
        """Outputs in float64 on inputs that carry 18 bits: how much the task magnifies rounding.

        One run after the other: all at once they take eight times the memory of eager's outputs.
        """
        return self._nudged(chosen, runs, ulps=32)

    def differs(self, chosen: InputSet) -> bool:
        """Whether two runs on the same inputs disagree by more than rounding."""

        def once(seed: int) -> list[torch.Tensor]:
            torch.manual_seed(seed)
            return self.run(chosen, chosen.leaves, double=False).leaves

        first = once(1)
        return any(
            a.shape != b.shape or not _close(a, b)
            for seed in (2, 3)
            for a, b in zip(first, once(seed), strict=True)
        )

    def statistics(self, chosen: InputSet, runs: int) -> torch.Tensor:
        """The task's statistic over fresh runs of the reference: one row a run."""
        assert self._statistic is not None
        rows = []
        for _ in range(runs):
            torch.seed()
            outputs = self.run(chosen, chosen.leaves, double=False)
            rows.append(self.reduce(unflatten(outputs.tree, outputs.leaves)))
        return torch.stack(rows)

    def reduce(self, outputs: object) -> torch.Tensor:
        """Apply the task's statistic to one set of outputs."""
        assert self._statistic is not None
        value = self._statistic(outputs)
        return torch.as_tensor(value, dtype=torch.float64).flatten()

    def _nudged(self, chosen: InputSet, runs: int, *, ulps: float) -> Iterator[list[torch.Tensor]]:
        for seed in range(runs):
            with double_by_default():
                leaves = _nudge(chosen.leaves, seed, ulps)
                found = self.run(chosen, leaves, double=True, copies=True).leaves
            del leaves
            yield found
            del found  # before the next one is there

    def exactly(self, chosen: InputSet, eager: Run) -> tuple[Run, bool]:
        """The same in float64, and whether that could be had."""
        try:
            with double_by_default():
                exact = self.run(chosen, _doubled(chosen.leaves), double=True, copies=True)
        except torch.OutOfMemoryError:
            raise  # whoever asks may have a way with less
        except (RuntimeError, TypeError, ValueError) as error:
            # A reference that insists on its own precision cannot be had in float64.
            self.give_up(error)
            return _as_double(eager), False
        same = len(exact.leaves) == len(eager.leaves) and all(
            a.shape == b.shape and (not b.is_floating_point() or a.dtype is torch.float64)
            for a, b in zip(exact.leaves, eager.leaves, strict=True)
        )
        return (exact, True) if same else (_as_double(eager), False)

    def give_up(self, error: Exception) -> None:
        """Say what else it may be that no float64 was had; here nothing."""

    def run(
        self, chosen: InputSet, leaves: list[torch.Tensor], *, double: bool, copies: bool = False
    ) -> Run:
        """Call once on copies of the leaves, and put the state back.

        Args:
            chosen: What they are leaves of.
            leaves: The inputs.
            double: Whether the model in float64 is called.
            copies: Whether these are copies already, which nobody else has.
        """
        model = self._double if double else self.model
        own = leaves if copies else [_copy(leaf) for leaf in leaves]
        with torch.no_grad(), self.undone(model) as state:
            result = self.call(chosen, own, double=double)
            found: list[torch.Tensor] = []
            tree = flatten(result, found, by_key=True)
            kept = [False] * len(found)
            if model is not None:
                memory = {_storage(each) for each in (*model.parameters(), *model.buffers())}
                kept = [_storage(each) in memory for each in found]
                # The state is put back below, and such an output with it.
                found = [f.clone() if k else f for f, k in zip(found, kept, strict=True)]
        storages = [_storage(leaf) for leaf in own]
        aliases = [storages.index(p) if (p := _storage(f)) in storages and p else None
                   for f in found]  # fmt: skip
        return Run(tree, [f.detach() for f in found], own, state, aliases, kept)

    @contextmanager
    def undone(self, model: torch.nn.Module | None) -> Iterator[dict[str, torch.Tensor]]:
        """Put a model's state back afterwards; then what is yielded says how it had been left.

        Raises:
            ValueError: It was changed in a way that could not be foreseen.
        """
        found: dict[str, torch.Tensor] = {}
        if model is None:
            yield found
            return
        names, saved = set(model.state_dict()), self._set_aside(model)
        versions = {key: value._version for key, value in model.named_parameters()}
        try:
            yield found
        finally:
            now = model.state_dict()
            written = {k for k, v in model.named_parameters() if v._version != versions.get(k)}
            for key in saved.keys() & now.keys():
                if not torch.equal(now[key], saved[key]):
                    found[key] = now[key].clone()
                    now[key].copy_(saved[key])
        if added := sorted(now.keys() - names):
            raise ValueError(f"the reference adds {added[0]} to its state while it runs")
        if self._changing is None:
            self._changing = set(found) | written
        elif late := sorted(written - saved.keys()):
            raise ValueError(f"the reference changes its parameter {late[0]} in some calls only")

    def _set_aside(self, model: torch.nn.Module) -> dict[str, torch.Tensor]:
        """Copies of what a call may change: buffers, and parameters as the first call has shown.

        Copies of all parameters, in both precisions, were most of a device for a large model.
        """
        state = model.state_dict()
        if self._changing is not None:
            may = self._changing | {name for name, _ in model.named_buffers()}
            state = {key: value for key, value in state.items() if key in may}
        return {key: value.clone() for key, value in state.items()}

    def _exact_state(self, exact: Run, key: str) -> torch.Tensor:
        """What a buffer holds after a call in float64, which may have left it as it was."""
        if key in exact.state:
            return exact.state[key]
        assert self._double is not None
        return cast(torch.Tensor, self._double.state_dict()[key]).clone()

    def _attach_scores(self, chosen: InputSet, outputs: list[Output]) -> None:
        """Ask the task what its index outputs point into, where it says so."""
        if self._index_scores is None:
            return
        leaves = [x.double() if x.is_floating_point() else x for x in chosen.leaves]
        arguments = unflatten(chosen.tree, leaves)
        assert isinstance(arguments, list)
        with torch.no_grad(), self.undone(self._double):
            said = self._index_scores(*([self._double] if self._double is not None else []),
                                      *arguments)  # fmt: skip
        assert isinstance(said, dict)
        for index, (scores, dim) in said.items():
            outputs[index].scores = scores.double()
            outputs[index].dim = int(dim) % scores.dim()


@contextmanager
def double_by_default() -> Iterator[None]:
    """Let constants that a reference makes be as precise as the rest."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(default)


def _nudge(leaves: list[torch.Tensor], seed: int, ulps: float) -> list[torch.Tensor]:
    """Copies, floating ones moved by about what rounding in a different order would."""
    moved = []
    for index, leaf in enumerate(leaves):
        if not leaf.is_floating_point():
            moved.append(_copy(leaf))
            continue
        step = ulps * torch.finfo(leaf.dtype).eps
        generator = torch.Generator(leaf.device).manual_seed(1000 * seed + index)
        double = leaf.double() if leaf.dtype is not torch.float64 else leaf.clone()
        # Block by block: noise for all of a large input would take as much again, three times.
        for part in double.view(-1).split(_BLOCK) if double.is_contiguous() else (double,):
            noise = torch.rand(part.shape, generator=generator, dtype=torch.float64,
                               device=leaf.device)  # fmt: skip
            part.mul_(noise.mul_(2 * step).add_(1 - step))
        moved.append(double)
    return moved


def _copy(leaf: torch.Tensor) -> torch.Tensor:
    return leaf.clone(memory_format=torch.preserve_format)


def _doubled(leaves: list[torch.Tensor]) -> list[torch.Tensor]:
    """Copies in float64 of what can be had in it, and plain ones of the rest."""
    return [
        leaf.to(torch.float64, copy=True) if leaf.is_floating_point() else _copy(leaf)
        for leaf in leaves
    ]


def _as_double(run: Run) -> Run:
    def double(values: list[torch.Tensor]) -> list[torch.Tensor]:
        return [v.double() if v.is_floating_point() else v for v in values]

    state = {k: v.double() if v.is_floating_point() else v for k, v in run.state.items()}
    return Run(run.tree, double(run.leaves), double(run.inputs), state, run.aliases, run.kept)


def _storage(tensor: torch.Tensor) -> int:
    """Where the memory begins that a tensor or view lies in; 0 where there is none."""
    return int(tensor.untyped_storage().data_ptr()) if tensor.layout is torch.strided else 0


def _both_nan(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.is_floating_point() and bool(torch.isnan(a).any()) and close(a, b, rtol=0, atol=0)


def _close(a: torch.Tensor, b: torch.Tensor) -> bool:
    if not a.is_floating_point():
        return bool(torch.equal(a, b))
    eps = torch.finfo(a.dtype).eps
    return close(a, b, rtol=1e3 * eps, atol=1e3 * eps)
