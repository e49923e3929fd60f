"""From a task to candidates: the graph is read once, then any choice of parameters is written."""

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass

from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.propose.rules.chip import H200, Chip
from kernelsmith.propose.rules.cpp_source import CppSource
from kernelsmith.propose.rules.family import owned
from kernelsmith.propose.rules.graph import Graph, Kind, NotRecognised
from kernelsmith.propose.rules.making import FLOATS
from kernelsmith.propose.rules.module_source import candidate_source, local
from kernelsmith.propose.rules.names import pointers
from kernelsmith.propose.rules.reader import read_graph
from kernelsmith.propose.rules.source import Module, read_module
from kernelsmith.propose.rules.space import Parameters, Space, cpu_space, triton_space
from kernelsmith.propose.rules.triton_pieces import PiecesSource
from kernelsmith.propose.rules.triton_source import TritonSource

BACKENDS = ("cpu", "triton")
READ = ("float32", "bfloat16", "float16")
"""What kernels read, and compute in float32."""

_LIBRARY = '''\
lib = cpp(
    r"""
{text}""",
    flags=["-fno-math-errno", "-fno-trapping-math"],
)
RUN = {{
    torch.float32: lib.run_float32,
    torch.bfloat16: lib.run_bfloat16,
    torch.float16: lib.run_float16,
}}
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One task's graph with its space, ready to be written for one backend."""

    backend: str
    module: Module
    graph: Graph
    space: Space
    chip: Chip = H200

    @property
    def follows_library(self) -> bool:
        """Whether a library computes most of it."""
        return bool(self.graph.prefix)

    def source(self, chosen: Parameters) -> str:
        """A stand-alone candidate; the same parameters give the same text."""
        if self.backend == "cpu":
            kernel = _LIBRARY.format(text=CppSource(self.graph, chosen).text())
            imports, launch = "from kernelsmith.kernels import cpp", _cpp_launch(self.graph)
        else:
            made = TritonSource(self.graph, chosen)
            if chosen.get("splits", "1") != "1":
                made = PiecesSource(self.graph, chosen, self.chip.processors)
            kernel, launch = made.text(), [*_checked(local(self.graph)), *made.launch()]
            imports = "import triton\nimport triton.language as tl"
        return candidate_source(
            self.module, self.graph, header=self.space.header(chosen), words=self._summary(),
            imports=imports, kernel=kernel, launch=launch,
        )  # fmt: skip

    def words(self, chosen: Parameters) -> str:
        """What this choice tries and why it may be faster."""
        what = self._summary().removesuffix(".")
        return f"{what[0].lower()}{what[1:]}: every tensor is read and written once"

    def _summary(self) -> str:
        how = "each row by itself" if self.graph.has_rows else "one flat stretch"
        behind = " behind the library's product" if self.follows_library else ""
        return f"One fused kernel{behind}, {how}."

    def own(self, source: str) -> dict[str, str] | None:
        """The parameters of a candidate that this template wrote; ``None`` of any other text."""
        return owned(self, source)


def template_for(task: Task, backend: str, chip: Chip = H200) -> Template:
    """Read a task.

    Raises:
        NotRecognised: It holds something that the rules do not know, or that kernels cannot read.
        UsageError: There are no templates for this backend.
    """
    if backend not in BACKENDS:
        raise UsageError(f"rules write for {' and '.join(BACKENDS)}, not for {backend!r}")
    graph = read_graph(task)
    if backend == "triton" and "pow" in graph.ops():
        raise NotRecognised("rules do not know a general power in Triton")
    module = read_module(task)
    check_readable(module, graph)
    if backend == "cpu":
        if graph.overall:
            raise NotRecognised("rules do not share one row among threads")
        return Template(backend=backend, module=module, graph=graph, space=cpu_space(graph))
    space = triton_space(graph, _rows(module, graph), chip)
    return Template(backend=backend, module=module, graph=graph, space=space, chip=chip)


def check_readable(module: Module, graph: Graph) -> None:
    """Insist that the kernels can read all tensors, in every workload.

    Raises:
        NotRecognised: They are of other dtypes, of several, or it cannot be told of which.
    """
    kinds = dict(_kinds(module, graph))
    for workload in module.task.workloads:
        cast = workload.dtype
        kept = {name: (cast or each) if each in FLOATS else each for name, each in kinds.items()}
        for name, dtype in kept.items():
            if dtype not in READ:
                raise NotRecognised(
                    f"rules read {', '.join(READ[:-1])} and {READ[-1]}, not {name} of {dtype}"
                )
        if len(set(kept.values())) > 1:
            said = ", ".join(f"{name} of {dtype}" for name, dtype in kept.items())
            raise NotRecognised(f"rules do not know tensors of several dtypes: {said}")


def _kinds(module: Module, graph: Graph) -> Iterator[tuple[str, str]]:
    """What every tensor that is read is kept in, as written."""
    names = [each.arg for each in module.forward.args.args]
    names = names if module.task.is_function else names[1:]
    inputs = {
        name: made for name, made in zip(names, module.made(), strict=False) if not made.number
    }
    texts = [graph.nodes[n].text for n in graph.of(Kind.INPUT, Kind.PARAMETER)]
    texts += [text for _, text in graph.prefix]
    parts = [each for text in texts for each in ast.walk(ast.parse(text, mode="eval"))]
    used = {each.id for each in parts if isinstance(each, ast.Name)}
    for name in [each for each in inputs if each in used]:
        made = inputs[name]
        if made.dtype is None:
            raise NotRecognised(f"rules cannot tell what the input {name!r} is kept in")
        if made.shape is None and len(inputs) > 1:
            raise NotRecognised(f"rules cannot tell of what size the input {name!r} is")
        yield repr(name), made.dtype
    for path in dict.fromkeys(
        each.attr for each in parts
        if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self"
    ):  # fmt: skip
        dtype = module.dtype_of(path)
        if dtype is None:
            raise NotRecognised(f"rules cannot tell what self.{path} is kept in")
        yield f"self.{path}", dtype


def _checked(like: str) -> list[str]:
    """Lines that insist on a dtype that is computed in float32; C++ is built for no other."""
    dtypes = ", ".join(f"torch.{each}" for each in READ)
    return [
        f"if {like}.dtype not in ({dtypes}):",
        f'    raise ValueError("the kernel does not read {like} in this dtype")',
    ]


def _rows(module: Module, graph: Graph) -> tuple[tuple[int, int], ...]:
    """How many rows there are and how long they are, for every workload whose sizes are told."""
    names = [each.arg for each in module.forward.args.args]
    names = names if module.task.is_function else names[1:]
    written = dict(zip(names, module.inputs(), strict=False)).get(graph.shaped_like)
    if not isinstance(written, tuple):
        return ()
    found = []
    for workload in module.task.workloads:
        try:
            sizes = module.sizes(written, workload)
        except NotRecognised:
            continue
        cut = len(sizes) - graph.trailing
        found.append((math.prod(sizes[:cut]), math.prod(sizes[cut:])))
    return tuple(found)


def _cpp_launch(graph: Graph) -> list[str]:
    numbers = [graph.nodes[n].text for n in graph.of(Kind.NUMBER)]
    given = ", ".join([*pointers(graph).values(), "out", "rows", "dim", *numbers])
    return [f"RUN[{local(graph)}.dtype]({given})", "return out"]
