"""Calls as a stand-alone Triton candidate: plain kernels, explicit grids, a function per call."""

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.compiler import helpers
from kernelsmith.propose.rules.compiler.body import Body
from kernelsmith.propose.rules.compiler.call import Call, Kernel, Launch
from kernelsmith.propose.rules.compiler.module_text import Part, candidate_text
from kernelsmith.propose.rules.graph import NotRecognised

Launches = Mapping[str, Mapping[str, int]]
"""By kernel: block sizes, ``num_warps`` and ``num_stages`` other than its defaults."""
_GRID = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """A call and the workload that it is for."""

    call: Call
    label: str


def triton_candidate(
    task: Task, shaped: Sequence[Shaped], *, header: str, words: str, launches: Launches,
    math: str = "exact", origin: str = "from what torch's compiler does",
) -> str:  # fmt: skip
    """Write a candidate.

    Args:
        task: Its source gives the constructor and the plain forward.
        shaped: One call per set of shapes, kernels named apart (``named_apart``).
        header: The line with the parameters.
        words: What this candidate is, for its reader.
        launches: Where kernels are launched otherwise than by default.
        math: How exponentials and their like are computed; see ``helpers.function``.
        origin: Where the rules have it from.

    Raises:
        NotRecognised: It cannot be written; the text says why.
    """
    calls = [each.call for each in shaped]
    functions = helpers.merged(call.prelude for call in calls)
    functions = [helpers.function(_name(each), math, each) for each in functions]
    _check(functions)
    kernels = {kernel.name: kernel for call in calls for kernel in call.kernels}
    texts = [_without_sizes(kernel) for kernel in kernels.values()]
    parts, runs = [], []
    for number, each in enumerate(shaped):
        name = "compute" if len(shaped) == 1 else f"compute_{number + 1}"
        body = Body(each.call, lambda step: _launch(step, kernels[step.kernel], launches))
        runs.append(body.function(name))
        parts.append(Part(call=each.call, function=name, label=each.label))
    extra = body_helpers(runs)
    block = "\n\n\n".join([*functions, *texts, *extra, *runs])
    imports = ["import triton", "import triton.language as tl"]
    if "libdevice." in block:
        imports.append("from triton.language.extra import libdevice")
    if "functools." in block:
        imports.append("import functools")
    return candidate_text(task, parts, header=header, words=words, imports=imports, block=block,
                          origin=origin)  # fmt: skip


def body_helpers(runs: Sequence[str]) -> list[str]:
    """Functions beside the kernels that the written calls use."""
    return [_IN_LAYOUT] if any("in_layout(" in each for each in runs) else []


_IN_LAYOUT = '''\
def in_layout(x, stride):
    """A library may lay out its result otherwise than the kernels read it."""
    if all(n == 1 or a == b for n, a, b in zip(x.shape, x.stride(), stride)):
        return x
    return torch.empty_strided(x.shape, stride, dtype=x.dtype, device=x.device).copy_(x)'''


def named_apart(calls: Sequence[Call]) -> list[Call]:
    """The same calls with a name of its own for every kernel that differs."""
    texts: dict[str, Kernel] = {}
    made = []
    for call in calls:
        names = {}
        for kernel in call.kernels:
            name, number = kernel.name, 2
            while name in texts and _as(texts[name], kernel.name) != kernel:
                name, number = f"{kernel.name}_{number}", number + 1
            names[kernel.name] = name
            texts.setdefault(name, _as(kernel, name))
        made.append(
            replace(
                call,
                kernels=tuple(_as(kernel, names[kernel.name]) for kernel in call.kernels),
                steps=tuple(
                    replace(step, kernel=names[step.kernel]) if isinstance(step, Launch) else step
                    for step in call.steps
                ),
            )
        )
    return made


def _as(kernel: Kernel, name: str) -> Kernel:
    if kernel.name == name:
        return kernel
    text = re.sub(rf"\bdef {kernel.name}\(", f"def {name}(", kernel.text)
    return replace(kernel, name=name, text=text)


def _name(text: str) -> str:
    found = re.search(r"^def (\w+)\(", text, re.MULTILINE)
    return found[1] if found else ""


def _check(functions: Sequence[str]) -> None:
    names = [_name(each) for each in functions]
    for name in names:
        if name and names.count(name) > 1:
            raise NotRecognised(f"two helpers of the captured kernels are called {name}")


def parameters(kernel: Kernel) -> list[tuple[str, bool]]:
    """A kernel's parameters without block sizes, and whether the written kernel keeps each.

    Extents that the body sets itself, or does not read, are left out.
    """
    tree = ast.parse(kernel.text).body[0]
    assert isinstance(tree, ast.FunctionDef)
    found = []
    for each in tree.args.args:
        if each.annotation is None:
            found.append((each.arg, not each.arg.endswith("numel") or _reads(tree, each.arg)))
    return found


def _reads(tree: ast.FunctionDef, name: str) -> bool:
    stored = any(
        isinstance(each, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name
                                             for t in each.targets)
        for each in tree.body
    )  # fmt: skip
    return not stored and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(tree))


def _without_sizes(kernel: Kernel) -> str:
    tree = ast.parse(kernel.text)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    dropped = {name for name, kept in parameters(kernel) if not kept}
    function.args.args = [each for each in function.args.args if each.arg not in dropped]
    comment = f"# {', '.join(kernel.operators)}\n" if kernel.operators else ""
    return comment[:98].rstrip(", \n") + ("\n" if comment else "") + ast.unparse(tree)


def _launch(step: Launch, kernel: Kernel, launches: Launches) -> tuple[list[bool], str, list[str]]:
    """Which operands stay, the grid, and the keywords of a launch."""
    chosen = dict(kernel.defaults) | dict(launches.get(kernel.name, {}))
    kept = [keep for _, keep in parameters(kernel)]
    grid = _grid(step, kernel, chosen, len(kept))
    keywords = [f"{name}={chosen[name]}" for name in kernel.blocks]
    keywords += [f"{key}={chosen[key]}" for key in ("num_warps", "num_stages") if key in chosen]
    return kept, grid, keywords


def _grid(step: Launch, kernel: Kernel, chosen: Mapping[str, int], count: int) -> str:
    sizes = dict(kernel.sizes)
    if kernel.grid == "FixedGrid":
        given = [each for each in step.operands[count:] if isinstance(each, int)]
        while len(given) > 1 and given[-1] == 1:
            given.pop()
        return f"({', '.join(map(str, given))},)"

    def along(prefix: str) -> str:
        return f"triton.cdiv({sizes[prefix]}, {chosen.get(f'{prefix.upper()}BLOCK', 1)})"

    match kernel.grid:
        case "Grid1D":
            return f"({along('x')},)"
        case "Grid2D":
            return f"({along('x')}, {along('y')})"
        case "Grid3D":
            return f"({along('x')}, {along('y')}, {along('z')})"
        case "Grid2DWithYZOverflow":
            rows = math.ceil(sizes["y"] / chosen.get("YBLOCK", 1))
            planes = math.ceil(rows / _GRID)
            if planes == 1:
                return f"({along('x')}, {along('y')})"
            return f"({along('x')}, triton.cdiv({along('y')}, {planes}), {planes})"
    raise NotRecognised(f"rules do not know the grid {kernel.grid!r}")
