"""What the kernels of a reduced convolution read and leave for each other, by name."""

from kernelsmith.propose.rules.graph import Kind
from kernelsmith.propose.rules.kinds.neighbours.triton import wrapped
from kernelsmith.propose.rules.kinds.packed.layouts import has_windows
from kernelsmith.propose.rules.kinds.packed.stages import MOMENTS, Stages
from kernelsmith.propose.rules.kinds.texts import Texts


def in_place(stages: Stages) -> bool:
    """Whether what is kept lies where the output will."""
    layouts = stages.reduced.layouts
    return stages.kept is not None and layouts[stages.kept] == layouts[stages.reduced.output]


def kept_in(stages: Stages) -> str:
    """The tensor that holds what is kept, in Python."""
    return "out" if in_place(stages) else "kept"


def extent_of(stages: Stages, n: int) -> str:
    """How many values a node has in space, in Python."""
    return "windows" if has_windows(stages.reduced.layouts[n]) else "space"


def values_of(stages: Stages, nodes: list[int], *, loaded: list[int]) -> tuple[Texts, list[str]]:
    """Values that a kernel begins with, and the lines that load them."""
    reduced, lines = stages.reduced, []
    given: dict[int, str] = {}
    for n in nodes:
        node = reduced.nodes[n]
        if node.kind is Kind.COUNT:
            given[n] = f"tl.cast({node.text}, tl.float32)"
        elif node.kind is Kind.PARAMETER:
            one = n in reduced.single
            at = f"r{n}" if one else f"r{n} + co, mask=known, other=1.0"
            lines.append(f"c{n} = tl.load({at}).to(tl.float32){'' if one else '[None, :]'}")
            given[n] = f"c{n}"
        elif n in loaded:
            along = "c" in reduced.layouts[n]
            at = " * channels + co, mask=known, other=0.0" if along else ""
            lines.append(f"c{n} = tl.load(e{n} + image{at}){'[None, :]' if along else ''}")
            given[n] = f"c{n}"
    return Texts(reduced.nodes, given, cpp=False), lines


def tensors_of(stages: Stages, nodes: list[int], loaded: list[int]) -> dict[str, str]:
    """Tensors that a kernel reads, by name, as Python has them."""
    kinds = stages.reduced.nodes
    found = {f"r{n}": f"r{n}" for n in nodes if kinds[n].kind is Kind.PARAMETER}
    return found | {f"e{n}": f"e{n}" for n in loaded}


def numbers_of(stages: Stages, nodes: list[int]) -> dict[str, str]:
    """Numbers that a kernel gets, by name, as Python has them."""
    kinds = stages.reduced.nodes
    return {f"s{n}": kinds[n].text for n in nodes if kinds[n].kind is Kind.NUMBER}


def shares(stages: Stages, stage: int) -> dict[str, str]:
    """Where a tile pass leaves what it added up."""
    found: dict[str, str] = {}
    for n in stages.summed(stage):
        node = stages.reduced.nodes[n]
        if node.op in MOMENTS:
            arg = node.args[0]
            found |= {f"a{arg}": f"a{arg}", f"m{arg}": f"m{arg}", "lengths": "lengths"}
        else:
            found[f"a{n}"] = f"a{n}"
    return found


def room_for(stages: Stages, stage: int) -> list[str]:
    """Lines of Python that make room for them, once ``pieces`` is known."""
    wide = {}
    for n in stages.summed(stage):
        node = stages.reduced.nodes[n]
        channels = " * channels" * ("c" in stages.reduced.layouts[node.args[0]])
        names = [f"a{n}"]
        if node.op in MOMENTS:
            names = [f"a{node.args[0]}", f"m{node.args[0]}"]
            wide["lengths"] = "pieces"
        wide |= {name: f"batch * pieces{channels}" for name in names}
    return [
        f"{name} = torch.empty({size}, dtype=torch.float32, device=x.device)"
        for name, size in wide.items()
    ]


def kernel(name: str, names: list[str], fixed: list[str], lines: list[str]) -> str:
    """The text of a kernel."""
    head = wrapped(f"def {name}(", [*names, *(f"{each}: tl.constexpr" for each in fixed)])
    return "\n".join(["@triton.jit", *head[:-1], head[-1] + ":", *(f"    {x}" for x in lines)])
