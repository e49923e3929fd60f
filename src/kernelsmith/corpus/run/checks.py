"""In the sandbox: whether a finished task file is a task that a judge can use, and what it does."""

import copy
import hashlib
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelsmith.evaluate.worker import parameters
from kernelsmith.evaluate.worker.answers import Case
from kernelsmith.evaluate.worker.degenerate import examine
from kernelsmith.evaluate.worker.inputs import InputSet, make
from kernelsmith.evaluate.worker.trees import Unsupported, flatten, unflatten

SLOWEST_S = 1.5
_LARGEST_OUTPUT = 1 << 26
_AN_INPUT = 1e-5
_NO_WORK = frozenset((
    "alias", "as_strided", "clone", "contiguous", "copy_", "detach", "detach_", "empty",
    "empty_like", "empty_strided", "expand", "flatten", "lift_fresh", "lift_fresh_copy",
    "new_empty", "new_empty_strided", "permute", "reshape", "select", "slice", "split",
    "split_with_sizes", "squeeze", "squeeze_", "t", "t_", "_to_copy", "transpose", "transpose_",
    "unbind", "unfold", "unsafe_split", "_unsafe_view", "unsqueeze", "unsqueeze_", "view",
    "view_as_complex", "view_as_real", "_reshape_alias", "diagonal", "unsafe_chunk",
    "promote_types", "_local_scalar_dense",
))  # fmt: skip
"""Operators that only look at memory in another way, or copy it."""
_FATAL = ("does not depend on the inputs", "is constant", "is one of the inputs unchanged")


class Unfit(Exception):
    """The task runs, and is of no use; the reason and what was seen."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


@dataclass(slots=True)
class Facts:
    """What is known of a task after it passed."""

    random: bool = False
    stateful: bool = False
    exact: bool = True
    parameters: int = 0
    seconds: float = 0.0
    ops: Counter[str] = field(default_factory=Counter)
    graph: str = ""
    notes: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


class _Graph(TorchDispatchMode):  # type: ignore[misc]
    """Writes down which operator takes which tensors, numbered as they appear: no sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: Counter[str] = Counter()
        self.lines: list[str] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[torch.Tensor] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # or torch loads its compiler for this, which takes seconds

    def _number(self, tensor: torch.Tensor) -> int:
        if id(tensor) not in self._numbers:
            self._numbers[id(tensor)] = len(self._numbers)
            self._alive.append(tensor)
        return self._numbers[id(tensor)]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = str(func).removeprefix("aten.").partition(".")[0]
        self.ops[name] += 1
        if len(self.lines) < 4000:
            taken = [self._number(t) for t in _leaves(args)]
            given = [self._number(t) for t in _leaves(result)]
            self.lines.append(f"{name} {taken} {given}")
        return result

    def digest(self) -> str:
        """A hash of the whole graph, copies of inputs and outputs left out."""
        kept = [line for line in self.lines if not line.startswith(("clone ", "detach "))]
        numbers: dict[str, int] = {}
        plain = [
            re.sub(r"\d+", lambda m: str(numbers.setdefault(m[0], len(numbers))), " ".join(rest))
            for _, *rest in (line.split(" ", 1) for line in kept)
        ]
        names = [line.split(" ", 1)[0] for line in kept]
        whole = "\n".join(f"{name} {edges}" for name, edges in zip(names, plain, strict=True))
        return hashlib.sha256(whole.encode()).hexdigest()[:24]


def _leaves(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in _leaves(each)]
    return []


def load(text: str) -> ModuleType:
    """Run a finished task file."""
    module = ModuleType("task")
    exec(compile(text, "task.py", "exec"), module.__dict__)
    return module


def check(text: str, workloads: list[dict[str, int]]) -> Facts:
    """Run a finished task file through everything a judge would ask of it.

    Raises:
        Unfit: It is no use as a task.
    """
    module = load(text)
    facts = Facts()
    model = _initialised(module)
    facts.parameters = sum(p.numel() for p in model.parameters())
    sets = [_drawn(module, {}, seed) for seed in (11, 12, 13)]
    leaves = sets[0].leaves
    facts.inputs = [_said(leaf) for leaf in leaves]
    if not leaves:
        raise Unfit("takes no tensors")
    parameters.randomise(model, 5)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    first = _outputs(model, sets[0], 1)
    _usable(first)
    facts.outputs = [_said(leaf) for leaf in first]
    facts.stateful = any(not torch.equal(v, before[k]) for k, v in model.state_dict().items()
                         if v.shape == before[k].shape)  # fmt: skip
    model.load_state_dict(before)
    second = _outputs(model, sets[0], 2)
    if [leaf.shape for leaf in first] != [leaf.shape for leaf in second]:
        raise Unfit("another shape on every call")
    facts.random = not _equal(first, second)
    _timed(model, sets[0], facts)
    _effects(model, sets, first, facts)
    _against_itself(module, model, sets[0], first, facts)
    for sizes in workloads:
        drawn = _drawn(module, sizes, 14)
        _usable(_outputs(model, drawn, 1))
    return facts


def graph_without_memory(text: str) -> str:
    """The hash of what a task computes, from tensors without memory; empty where that fails."""
    graph = _Graph()
    try:
        with torch.device("meta"), torch.no_grad():
            module = load(text)
            model = module.Model(*getattr(module, "get_init_inputs", list)()).eval()
            inputs = module.get_inputs()
            drawn = [leaf.to("meta") for leaf in _leaves(list(inputs))]
            if len(drawn) != len(inputs):
                return ""
            with graph:
                model(*(leaf.clone() for leaf in drawn))
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException:  # what cannot be traced is compared by its text alone
        return ""
    return graph.digest()


def _constructed(module: ModuleType, seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    values = module.get_init_inputs()
    flatten(list(values), [])
    torch.manual_seed(seed)
    model: torch.nn.Module = module.Model(*values)
    return model.eval()


def _initialised(module: ModuleType) -> torch.nn.Module:
    """Construct it where memory that nobody wrote holds NaN: another function sets its weights."""
    # The public switch imports torch's compiler.
    torch._C._set_deterministic_algorithms(True, warn_only=True)
    try:
        model = _constructed(module, 1)
    finally:
        torch._C._set_deterministic_algorithms(False)
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point() and bool(tensor.isnan().any()):
            raise Unfit("its weights are never set", name)
    return model


def _drawn(module: ModuleType, sizes: dict[str, int], seed: int) -> InputSet:
    drawn = make(module.get_inputs, dict(sizes), None, seed, "plain")
    assert drawn is not None
    return drawn


def _outputs(model: torch.nn.Module, chosen: InputSet, seed: int) -> list[torch.Tensor]:
    case_inputs = [leaf.clone() for leaf in chosen.leaves]
    torch.manual_seed(seed)
    found: list[torch.Tensor] = []
    with torch.no_grad():
        arguments: Any = unflatten(chosen.tree, case_inputs)
        value = model(**arguments[0]) if chosen.keywords else model(*arguments)
    try:
        flatten(value, found)
    except Unsupported as error:
        raise Unfit("returns what cannot be handed over", str(error)) from None
    return [leaf.detach().clone() for leaf in found]


def _usable(outputs: list[torch.Tensor]) -> None:
    if not outputs or not any(leaf.numel() for leaf in outputs):
        raise Unfit("returns no tensor")
    if sum(leaf.numel() for leaf in outputs) > _LARGEST_OUTPUT:
        raise Unfit("returns too much")
    if any(leaf.layout is not torch.strided or leaf.is_complex() for leaf in outputs):
        raise Unfit("returns what cannot be handed over", "sparse or complex tensors")
    for leaf in outputs:
        if leaf.is_floating_point() and not bool(torch.isfinite(leaf).all()):
            raise Unfit("not finite")


def _equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(
        a.shape == b.shape and torch.equal(a, b) for a, b in zip(one, other, strict=True)
    )


def _near(one: list[torch.Tensor], other: list[torch.Tensor], tolerance: float) -> bool:
    return len(one) == len(other) and all(
        a.shape == b.shape
        and torch.allclose(a.double(), b.double(), rtol=tolerance, atol=tolerance)
        for a, b in zip(one, other, strict=True)
    )


def _timed(model: torch.nn.Module, chosen: InputSet, facts: Facts) -> None:
    began = time.process_time()
    _outputs(model, chosen, 1)
    facts.seconds = time.process_time() - began
    if facts.seconds > SLOWEST_S:
        raise Unfit("takes too long", f"{facts.seconds:.2f} s on one core")
    graph = _Graph()
    with graph:
        _outputs(model, chosen, 1)
    # Copies that this file makes around a call are not the module's.
    facts.ops = graph.ops
    facts.graph = graph.digest()


def _effects(
    model: torch.nn.Module, sets: list[InputSet], first: list[torch.Tensor], facts: Facts
) -> None:
    if not facts.random:
        reasons = examine(Case(model, None, None, None, None), sets)
        fatal = [r for r in reasons if any(word in r for word in _FATAL)]
        floats = sum(leaf.is_floating_point() and leaf.numel() > 0 for leaf in first)
        if floats and len(fatal) >= floats:
            raise Unfit(_effect(fatal[0]), fatal[0])
        if first and all(_is_input(leaf, sets[0]) for leaf in first):
            raise Unfit("returns its input", f"within {_AN_INPUT:g} of its largest value")
        if set(facts.ops) <= _NO_WORK:
            raise Unfit("does no work", ", ".join(sorted(facts.ops)))
        if not floats and all(_equal(first, _outputs(model, each, 1)) for each in sets[1:]):
            raise Unfit("output ignores the inputs")
        facts.notes = reasons
    if facts.parameters and not facts.random:
        other = copy.deepcopy(model)
        with torch.no_grad():
            for index, tensor in enumerate(other.parameters()):
                if tensor.is_floating_point():
                    torch.manual_seed(90 + index)
                    tensor.add_(torch.randn_like(tensor) * 0.5)
        if _near(first, _outputs(other, sets[0], 1), 1e-6):
            raise Unfit("output ignores the parameters")


def _is_input(leaf: torch.Tensor, chosen: InputSet) -> bool:
    return any(
        leaf.shape == given.shape
        and leaf.numel() > 0
        and leaf.is_floating_point() == given.is_floating_point()
        and float((leaf.double() - given.double()).abs().max())
        <= _AN_INPUT * float(given.double().abs().max())
        for given in chosen.leaves
    )


def _effect(reason: str) -> str:
    if "depend" in reason:
        return "output ignores the inputs"
    return "output is constant" if "constant" in reason else "returns its input"


def _against_itself(
    module: ModuleType, model: torch.nn.Module, chosen: InputSet, first: list[torch.Tensor],
    facts: Facts,
) -> None:  # fmt: skip
    """Construct it again under another seed, hand over the weights: the answers must agree."""
    other = _constructed(module, 2)
    try:
        other.load_state_dict(model.state_dict())
    except RuntimeError as error:
        raise Unfit("does not pass against itself", str(error)[:200]) from None
    if not facts.random and not _near(first, _outputs(other, chosen, 1), 1e-4):
        raise Unfit("does not pass against itself", "other weights than its state dict decide")
    case = Case(model, None, None, None, None)
    double = [leaf.double() if leaf.is_floating_point() else leaf for leaf in chosen.leaves]
    try:
        with torch.no_grad():
            case.call(chosen, double, double=True)
    except RuntimeError:
        facts.exact = False


def _said(leaf: torch.Tensor) -> str:
    return f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}"
