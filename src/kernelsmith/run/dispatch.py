"""One candidate out of several: each workload goes to the candidate that won it."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelsmith.domain.candidate import Candidate, CandidateId
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import Ratio
from kernelsmith.domain.trajectory import Exemplar

Shapes = tuple[tuple[str, tuple[int, ...]], ...]
"""Dtype and shape of each input tensor of a workload."""

PROPOSER = "dispatch"
"""What such a proposal says it was written by."""
_MOST = 4
"""Candidates that one dispatch holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Who takes which workload; the first of the candidates takes what nobody else won."""

    candidates: tuple[Candidate, ...]
    routes: tuple[tuple[str, int], ...]
    """Workload and index of its candidate."""


def plan(best: Exemplar, others: Iterable[Exemplar]) -> Plan | None:
    """Find winners of single workloads that beat the best there beyond both intervals."""
    base = _speedups(best)
    if len(base) < 2:
        return None
    winners: dict[str, tuple[float, Candidate]] = {}
    for other in others:
        for workload, speedup in _speedups(other).items():
            if workload not in base or speedup.low <= base[workload].high:
                continue
            # Ties by id: the same archive makes the same plan in whatever order it is read.
            rank = (speedup.low, other.candidate.id)
            held = winners.get(workload)
            if held is None or rank > (held[0], held[1].id):
                winners[workload] = (speedup.low, other.candidate)
    chosen: dict[CandidateId, Candidate] = {best.candidate.id: best.candidate}
    routes = []
    for workload in base:
        candidate = winners[workload][1] if workload in winners else best.candidate
        if candidate.id not in chosen and len(chosen) == _MOST:
            candidate = best.candidate
        chosen.setdefault(candidate.id, candidate)
        routes.append((workload, list(chosen).index(candidate.id)))
    if len(chosen) == 1:
        return None
    return Plan(candidates=tuple(chosen.values()), routes=tuple(routes))


def written(plan: Plan, task: Task, shapes: Mapping[str, Shapes]) -> str | None:
    """Write the plan as one stand-alone source; none where the sources cannot share a module.

    Inputs of other shapes than the workloads' go to the candidate of the nearest size.
    """
    table = {shapes[workload]: index for workload, index in plan.routes if workload in shapes}
    if len(table) != len(plan.routes):
        return None  # two workloads look alike from outside, or nobody knows what they look like
    merged = _merged([candidate.source for candidate in plan.candidates])
    if merged is None:
        return None
    entry, count = task.candidate_entry, len(plan.candidates)
    imports, bodies = merged
    routes = "\n".join(f"    {key!r}: {index}," for key, index in table.items())
    parts = [*imports, *bodies, f"_ROUTES = {{\n{routes}\n}}", _ROUTE]
    if task.is_function:
        names = ", ".join(f"{entry}_v{i}" for i in range(count))
        parts.append(_FUNCTION.format(entry=entry, names=names))
    else:
        rest = " ".join(f"{entry}_v{i}(*args, **kwargs)," for i in range(1, count))
        parts.append(_MODULE.format(entry=entry, rest=rest))
        if any("def prepare(" in candidate.source for candidate in plan.candidates):
            parts.append(_PREPARE)
    return "\n\n".join(parts) + "\n"


def _speedups(exemplar: Exemplar) -> dict[str, Ratio]:
    timing = exemplar.evaluation.timing
    return {} if timing is None else {each.workload: each.speedup for each in timing.workloads}


def _merged(sources: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Imports once, then every source with its own names told apart by a suffix."""
    imports: dict[str, str] = {}
    bodies = []
    for index, source in enumerate(sources):
        try:
            tree = ast.parse(source)
        except SyntaxError:
            return None
        rest = []
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    single = _single(node, alias)
                    bound = alias.asname or alias.name
                    if bound == "*" or imports.setdefault(bound, single) != single:
                        return None
            elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                rest.append(node)
        names = _bound(rest)
        module = ast.Module(body=rest, type_ignores=[])
        classes = [node for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
        if any(names & _bound(each.body) for each in classes):
            return None  # a class attribute has the name of something else
        bodies.append(ast.unparse(_Renamed(names, f"_v{index}").visit(module)))
    future_first = sorted(imports.values(), key=lambda line: "__future__" not in line)
    return ["\n".join(future_first)], bodies


def _single(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    if isinstance(node, ast.Import):
        return ast.unparse(ast.Import(names=[alias]))
    return ast.unparse(ast.ImportFrom(module=node.module, names=[alias], level=node.level))


def _bound(body: Sequence[ast.stmt]) -> set[str]:
    """Names that statements bind in their module."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        else:
            waiting += ast.iter_child_nodes(node)
    return found


class _Renamed(ast.NodeTransformer):
    """Adds a suffix to a module's own names wherever no parameter hides them."""

    def __init__(self, names: set[str], suffix: str) -> None:
        self._names, self._suffix, self._in_class = names, suffix, False

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._new(node.id)
        return node

    def visit_Global(self, node: ast.Global) -> ast.AST:
        node.names = [self._new(name) for name in node.names]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if not self._in_class:  # a method is reached by attribute, which keeps its name
            node.name = self._new(node.name)
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        self.visit(node.args)
        outside = self._names, self._in_class
        self._names, self._in_class = self._names - _parameters(node.args), False
        node.body = [self.visit(each) for each in node.body]
        self._names, self._in_class = outside
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.visit(node.args)
        outside, self._names = self._names, self._names - _parameters(node.args)
        node.body = self.visit(node.body)
        self._names = outside
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._new(node.name)
        outside, self._in_class = self._in_class, True
        self.generic_visit(node)
        self._in_class = outside
        return node

    def _new(self, name: str) -> str:
        return name + self._suffix if name in self._names else name


def _parameters(arguments: ast.arguments) -> set[str]:
    return {node.arg for node in ast.walk(arguments) if isinstance(node, ast.arg)}


_ROUTE = '''
def _tensors(values):
    for value in values:
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)
        elif isinstance(value, dict):
            yield from _tensors(value.values())


def _size(key):
    total = 0
    for _, shape in key:
        count = 1
        for extent in shape:
            count *= extent
        total += count
    return total


def _route(args, kwargs):
    """The candidate for these inputs: known shapes exactly, others by the nearest size."""
    tensors = _tensors((*args, *kwargs.values()))
    key = tuple((str(t.dtype).removeprefix("torch."), tuple(t.shape)) for t in tensors)
    if key not in _ROUTES:
        size = _size(key) + 1
        near = [(max(_size(k) + 1, size) / min(_size(k) + 1, size), i) for k, i in _ROUTES.items()]
        return min(near)[1]
    return _ROUTES[key]
'''.strip()

_FUNCTION = '''
def {entry}(*args, **kwargs):
    """Each shape takes the kernel that won it."""
    return ({names},)[_route(args, kwargs)](*args, **kwargs)
'''.strip()

_MODULE = '''
class {entry}({entry}_v0):
    """Each shape takes the kernel that won it; all of them use the same weights."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # Not as submodules: the state dict stays the reference's.
        self.__dict__["_others"] = ({rest})
        self._share()

    def _share(self):
        for other in self.__dict__.get("_others", ()):
            for path, tensor in self.state_dict(keep_vars=True).items():
                owner, _, name = path.rpartition(".")
                module = other.get_submodule(owner)
                if name in module._parameters:
                    module._parameters[name] = tensor
                else:
                    module._buffers[name] = tensor

    def _apply(self, fn, *args, **kwargs):
        super()._apply(fn, *args, **kwargs)
        for other in self.__dict__.get("_others", ()):
            other._apply(fn, *args, **kwargs)
        self._share()
        return self

    def train(self, mode=True):
        super().train(mode)
        for other in self.__dict__.get("_others", ()):
            other.train(mode)
        return self

    def forward(self, *args, **kwargs):
        index = _route(args, kwargs)
        if index == 0:
            return super().forward(*args, **kwargs)
        return self._others[index - 1](*args, **kwargs)
'''.strip()

_PREPARE = """
    def prepare(self):
        for each in (super(), *self._others):
            if hasattr(each, "prepare"):
                each.prepare()
""".strip("\n")
