"""A convolution and reductions behind it as Triton: as few passes over the pixels as they need."""

from kernelsmith.propose.rules.graph import Kind, NotRecognised
from kernelsmith.propose.rules.kinds.candidate import Parts
from kernelsmith.propose.rules.kinds.neighbours.triton import wrapped
from kernelsmith.propose.rules.kinds.packed import sums
from kernelsmith.propose.rules.kinds.packed.reading import Reduced
from kernelsmith.propose.rules.kinds.packed.stages import MOMENTS, Stages
from kernelsmith.propose.rules.kinds.packed.triton import (
    ROUNDED,
    Ending,
    fits_of,
    kernels_of,
    launch_of,
    placed,
)
from kernelsmith.propose.rules.kinds.texts import Texts, triton_functions
from kernelsmith.propose.rules.space import Parameters

_WIDEST = 256
"""Channels that a tile can hold."""
_FINISHED = 1024
"""Channels that are finished together where they must be."""
_CHAIN = 512
"""Sums that are added one after the other."""
_LEAST = 16
"""Shares that are added side by side, at least."""
_AGAIN = 8192
"""Elements of a tile in a pass that multiplies nothing."""


def check(reduced: Reduced, stages: Stages) -> None:
    """See that the kernels can do it.

    Raises:
        NotRecognised: They cannot.
    """
    if _whole(stages):
        if reduced.convolution.grouped:
            raise NotRecognised("rules know reductions over channels of convolutions of one group")
        if reduced.channels is not None and reduced.channels > _WIDEST:
            raise NotRecognised(f"rules know reductions over at most {_WIDEST} channels here")


def _whole(stages: Stages) -> bool:
    return any(stages.whole(k) for k in range(stages.last + 1))


def render_reduced(reduced: Reduced, stages: Stages, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    found = reduced.convolution
    ending = _ending(stages)
    kernels = [ROUNDED, *sums.functions(stages), *kernels_of(found, ending=ending)]
    launch = launch_of(found, chosen, ending=ending)
    for stage in range(1, stages.last + 1):
        kernels.append(_finish(stages, stage))
        launch += [*_join_moments(stages, stage), *_finish_launch(stages, stage)]
        if stages.tile_wants(stage):
            kernels.append(_again(stages, stage))
            launch += _again_launch(stages, stage)
    nodes = (*found.before.nodes, *reduced.nodes)
    return Parts(
        kernel=triton_functions(nodes) + "\n\n\n".join(kernels),
        fits=_fits(reduced, stages, chosen), setup=found.setup(),
        launch=(*_prepared(reduced, stages), *launch, "return out"),
    )  # fmt: skip


def _fits(reduced: Reduced, stages: Stages, chosen: Parameters) -> tuple[str, ...]:
    found = reduced.convolution
    space = " * ".join(f"({each})" for each in found.outs(found.x) if each != "1")
    made = [*fits_of(found), *(each.replace("<pixels>", space) for each in reduced.fits)]
    if _whole(stages):
        made.append(f"layer.out_channels <= {_WIDEST}")
    if stages.last:
        # Sums of sums stay in short chains.
        tile = min(64, _AGAIN // _WIDEST) if stages.last > 1 and _whole(stages) else 64
        made.append(f"{space} <= {tile * _LEAST * (_CHAIN - 1)}")
    if any(stages.whole_finish(k) for k in range(1, stages.last + 1)):
        made.append(f"layer.out_channels <= {_FINISHED}")
    return tuple(dict.fromkeys(made))


def _shape(reduced: Reduced, n: int) -> str:
    """The shape of a node, in Python."""
    missing = 3 - reduced.convolution.ndim
    known = {"b": "x.shape[0]", "c": "channels", "1": "1"}
    known |= {f"s{i}": f"outs[{missing + i}]" for i in range(3 - missing)}
    made = ", ".join(known[each] for each in reduced.layouts[n])
    return f"({made},)"


def _prepared(reduced: Reduced, stages: Stages) -> list[str]:
    """Lines of ``forward`` that make outputs and parameters ready."""
    found = reduced.convolution
    lines = [*found.measured(), f"out = x.new_empty({_shape(reduced, reduced.output)})"]
    if stages.kept is not None and not _in_place(stages):
        lines.append(f"kept = x.new_empty({_shape(reduced, stages.kept)})")
    for n, text in reduced.of(Kind.PARAMETER).items():
        if n in stages.needed:
            spread = "" if n in reduced.single else ".expand(channels).contiguous()"
            lines.append(f"r{n} = {text}.reshape(-1){spread}")
    lines += [*found.weights(), "groups = layer.groups"]
    if stages.last:
        lines.append("space = outs[0] * outs[1] * outs[2]")
    return lines


def _in_place(stages: Stages) -> bool:
    """Whether what is kept lies where the output will."""
    layouts = stages.reduced.layouts
    return stages.kept is not None and layouts[stages.kept] == layouts[stages.reduced.output]


def _kept(stages: Stages) -> str:
    return "out" if _in_place(stages) else "kept"


def _texts(stages: Stages, nodes: list[int], *, loaded: list[int]) -> tuple[Texts, list[str]]:
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


def _read(stages: Stages, nodes: list[int], loaded: list[int]) -> dict[str, str]:
    """Tensors that a kernel reads, by name, as Python has them."""
    kinds = stages.reduced.nodes
    found = {f"r{n}": f"r{n}" for n in nodes if kinds[n].kind is Kind.PARAMETER}
    return found | {f"e{n}": f"e{n}" for n in loaded}


def _numbers(stages: Stages, nodes: list[int]) -> dict[str, str]:
    kinds = stages.reduced.nodes
    return {f"s{n}": kinds[n].text for n in nodes if kinds[n].kind is Kind.NUMBER}


def _shares(stages: Stages, stage: int) -> dict[str, str]:
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


def _made_shares(stages: Stages, stage: int) -> list[str]:
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


def _ending(stages: Stages) -> Ending:
    """What the convolution does with its sums."""
    reduced = stages.reduced
    nodes = stages.tile_nodes(0)
    texts, lines = _texts(stages, nodes, loaded=[])
    tensors = _read(stages, nodes, [])
    if reduced.convolution.bias:
        tensors = {"bias": "bias"} | tensors
        add = "total += tl.load(bias + co, mask=known, other=0.0).to(tl.float32)[None, :]"
        lines = [add, *lines]
    texts.given[reduced.made] = "total"
    lines += sums.computed(stages, texts, nodes)
    summed = bool(stages.summed(0))
    lines += sums.pieces(stages, texts, 0)
    target = ""
    value = stages.kept if stages.kept is not None else reduced.output
    if stages.kept is not None or not stages.last:
        target = _kept(stages) if stages.kept is not None else "out"
        channels = "c" in reduced.layouts[value]
        lines += [*placed(reduced.convolution, channels),
                  f"tl.store(to + at, {texts.name(value)}, mask=there)"]  # fmt: skip
    numbers = _numbers(stages, nodes)
    if summed:
        numbers |= {"pieces": "pieces", "first": "first"}
        tensors |= _shares(stages, 0)
    if target:
        tensors["to"] = target
    return Ending(
        lines=tuple(lines), tensors=tuple(tensors.items()), numbers=tuple(numbers.items()),
        target=_full_form(reduced, value, target), by_image=summed, whole=stages.whole(0),
        room=tuple(_made_shares(stages, 0)),
    )  # fmt: skip


def _full_form(reduced: Reduced, n: int, target: str) -> str:
    """A tensor of five strides, whatever dimensions the node has kept."""
    gone = target and len(reduced.layouts[n]) < reduced.convolution.ndim + 2
    return f"{target}.unsqueeze(1)" if gone else target


def _kernel(name: str, names: list[str], fixed: list[str], lines: list[str]) -> str:
    head = wrapped(f"def {name}(", [*names, *(f"{each}: tl.constexpr" for each in fixed)])
    return "\n".join(["@triton.jit", *head[:-1], head[-1] + ":", *(f"    {x}" for x in lines)])


def _again_names(stages: Stages, stage: int) -> dict[str, str]:
    nodes = stages.tile_nodes(stage)
    tensors = {"kept": _kept(stages)} | _read(stages, nodes, stages.loads(nodes, stage))
    tensors |= _shares(stages, stage)
    if stage == stages.last:
        tensors["out"] = "out"
    return tensors | {"channels": "channels", "pixels": "space"} | _numbers(stages, nodes)


def _again(stages: Stages, stage: int) -> str:
    """One more pass over what was kept."""
    reduced, nodes = stages.reduced, stages.tile_nodes(stage)
    assert stages.kept is not None
    texts, loads = _texts(stages, nodes, loaded=stages.loads(nodes, stage))

    def place(n: int) -> tuple[str, str]:
        if "c" in reduced.layouts[n]:
            return ("((image * channels + co) * pixels)[None, :] + pixel[:, None]",
                    "exists[:, None] & known[None, :]")  # fmt: skip
        return "(image * pixels + pixel)[:, None]", "exists[:, None]"

    at, there = place(stages.kept)
    lines = [
        "pieces = tl.cdiv(pixels, BP)",
        "first = 0",
        "block = tl.program_id(0) % pieces",
        "image = (tl.program_id(0) // pieces).to(tl.int64)",
        "pixel = block * BP + tl.arange(0, BP)",
        "exists = pixel < pixels",
        "co = tl.program_id(1) * BC + tl.arange(0, BC)",
        "known = co < channels",
        f"value = tl.load(kept + {at}, mask={there}, other=0.0).to(tl.float32)",
        *loads,
    ]
    texts.given[stages.kept] = "value"
    lines += [*sums.computed(stages, texts, nodes), *sums.pieces(stages, texts, stage)]
    if stage == stages.last:
        at, there = place(reduced.output)
        lines.append(f"tl.store(out + {at}, {texts.name(reduced.output)}, mask={there})")
    names = list(_again_names(stages, stage))
    return _kernel(f"again{stage}", names, ["BP", "BC"], lines)


def _again_launch(stages: Stages, stage: int) -> list[str]:
    whole = stages.whole(stage)
    layouts = stages.reduced.layouts
    wide = any("c" in layouts[n] for n in stages.tile_nodes(stage) if stages.spatial(n))
    across = "channels" if wide and not whole else "1"
    lines = [
        "BC = triton.next_power_of_2(channels)" if whole else "BC = 1",
        f"BP = {_AGAIN} // BC" if whole else "BP = min(1024, triton.next_power_of_2(space))",
        "pieces = triton.cdiv(space, BP)",
        *_made_shares(stages, stage),
        f"grid = (batch * pieces, {across})",
    ]
    given = list(_again_names(stages, stage).values())
    return [
        *lines, *wrapped(f"again{stage}[grid](", [*given, "BP=BP", "BC=BC", "num_warps=4"]),
    ]  # fmt: skip


def _moments(stages: Stages, stage: int) -> dict[int, tuple[int, str]]:
    """Moments that a stage finishes: by node, the argument and the number of groups."""
    nodes = stages.reduced.nodes
    return {
        n: (nodes[n].args[0], nodes[n].text)
        for n in stages.summed(stage - 1)
        if nodes[n].op in MOMENTS
    }


def _join_moments(stages: Stages, stage: int) -> list[str]:
    """Lines of Python that join the moments of pieces."""
    lines: list[str] = []
    done: set[tuple[int, str]] = set()
    for n, (arg, groups) in _moments(stages, stage).items():
        if (arg, groups) in done:
            continue
        done.add((arg, groups))
        channels = "channels" if "c" in stages.reduced.layouts[arg] else "1"
        lines += [
            f"parts = {groups}",
            f"t{n} = torch.empty((2, batch * parts), dtype=torch.float32, device=x.device)",
            f"BG = triton.next_power_of_2({channels} // parts)",
            *wrapped("joined[(batch, parts)](", [
                f"a{arg}", f"m{arg}", "lengths", f"t{n}[0]", f"t{n}[1]", channels, "parts",
                "pieces", "space", f"BLOCK=max({_LEAST}, 4096 // BG)", "BG=BG", "num_warps=4",
            ]),
        ]  # fmt: skip
    return lines


def _finish_names(stages: Stages, stage: int) -> dict[str, str]:
    nodes = stages.finish_nodes(stage)
    moments = _moments(stages, stage)
    tensors = _read(stages, nodes, stages.loads(nodes, stage - 1))
    numbers = _numbers(stages, nodes)
    for n in stages.summed(stage - 1):
        if n not in nodes:
            continue
        if n in moments:
            holder = next(k for k, key in moments.items() if key == moments[n])
            which = MOMENTS.index(stages.reduced.nodes[n].op)
            tensors[f"m{n}"] = f"t{holder}[{which}]"
            if "c" in stages.reduced.layouts[n]:
                numbers[f"g{n}"] = moments[n][1]
        else:
            tensors[f"a{n}"] = f"a{n}"
    for n in stages.finish_wants(stage):
        name = "out" if n == stages.reduced.output else f"e{n}"
        tensors[f"to{n}"] = name
    return tensors | {"channels": "channels", "pixels": "space", "pieces": "pieces"} | numbers


def _finish(stages: Stages, stage: int) -> str:
    """What tiles added up, and all that needs no pixels."""
    reduced, nodes = stages.reduced, stages.finish_nodes(stage)
    texts, loads = _texts(stages, nodes, loaded=stages.loads(nodes, stage - 1))
    moments = _moments(stages, stage)
    lines = [
        "image = tl.program_id(0).to(tl.int64)",
        "co = tl.program_id(1) * BC + tl.arange(0, BC)",
        "known = co < channels",
        *loads,
    ]
    for n in stages.summed(stage - 1):
        if n not in nodes:
            continue
        if n not in moments:
            lines += sums.finished(stages, n)
        elif "c" in reduced.layouts[n]:
            at = f"m{n} + image * g{n} + co // (channels // g{n})"
            lines.append(f"v{n} = tl.load({at}, mask=known, other=0.0)[None, :]")
        else:
            lines.append(f"v{n} = tl.load(m{n} + image)")
        texts.given[n] = f"v{n}"
    lines += sums.computed(stages, texts, nodes)
    for n in stages.finish_wants(stage):
        value = texts.name(n)
        if "c" in reduced.layouts[n]:
            at = f"to{n} + (image * channels + co)[None, :]"
            lines.append(f"tl.store({at}, {value}, mask=known[None, :])")
        else:
            lines.append(f"tl.store(to{n} + image + tl.zeros([1, 1], tl.int64), {value})")
    names = list(_finish_names(stages, stage))
    return _kernel(f"finish{stage}", names, ["BLOCK", "BC"], lines)


def _finish_launch(stages: Stages, stage: int) -> list[str]:
    reduced, lines = stages.reduced, []
    for n in stages.finish_wants(stage):
        if n != reduced.output:
            size = "batch" + " * channels" * ("c" in reduced.layouts[n])
            lines.append(f"e{n} = torch.empty({size}, dtype=torch.float32, device=x.device)")
    whole = stages.whole_finish(stage)
    wide = "triton.next_power_of_2(channels)"
    lines += [
        f"BC = {wide}" if whole else f"BC = min(32, {wide})",
        "grid = (batch, triton.cdiv(channels, BC))",
    ]
    given = list(_finish_names(stages, stage).values())
    block = f"BLOCK=max({_LEAST}, 4096 // BC)"
    tail = [block, "BC=BC", f"num_warps={8 if whole else 4}"]
    return [*lines, *wrapped(f"finish{stage}[grid](", [*given, *tail])]
