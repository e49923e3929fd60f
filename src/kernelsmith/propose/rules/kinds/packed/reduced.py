"""A convolution and reductions behind it as Triton: as few passes over the pixels as they need."""

from kernelsmith.propose.rules.graph import Kind, NotRecognised
from kernelsmith.propose.rules.kinds.candidate import Parts
from kernelsmith.propose.rules.kinds.packed import sums
from kernelsmith.propose.rules.kinds.packed.again import AGAIN, again, again_launch
from kernelsmith.propose.rules.kinds.packed.finish import (
    LEAST,
    finish,
    finish_launch,
    moments_launch,
)
from kernelsmith.propose.rules.kinds.packed.layouts import has_windows
from kernelsmith.propose.rules.kinds.packed.parts import (
    in_place,
    kept_in,
    numbers_of,
    room_for,
    shares,
    tensors_of,
    values_of,
)
from kernelsmith.propose.rules.kinds.packed.phases import phases_of
from kernelsmith.propose.rules.kinds.packed.reading import Reduced
from kernelsmith.propose.rules.kinds.packed.stages import MOMENTS, Stages
from kernelsmith.propose.rules.kinds.packed.triton import (
    Ending,
    fits_of,
    helpers_of,
    kernels_of,
    launch_of,
    placed,
)
from kernelsmith.propose.rules.kinds.texts import triton_functions
from kernelsmith.propose.rules.space import Parameters

_WIDEST = 256
"""Channels that a tile can hold."""
_FINISHED = 1024
"""Channels that are finished together where they must be."""
_CHAIN = 512
"""Sums that are added one after the other."""


def check(reduced: Reduced, stages: Stages) -> None:
    """See that the kernels can do it.

    Raises:
        NotRecognised: They cannot.
    """
    for stage in range(stages.last + 1):
        if stages.windowed(stage):
            wanted = stages.tile_wants(stage)
            if not all(has_windows(reduced.layouts[n]) for n in wanted):
                raise NotRecognised("rules know what is used by windows alone, here")
            if stage == 0 and len(phases_of(reduced.convolution)) > 1:
                raise NotRecognised("rules know no windows of transposed convolutions that stride")
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
    kernels = [*helpers_of(chosen), *sums.functions(stages)]
    kernels += kernels_of(found, chosen, ending=ending)
    launch = launch_of(found, chosen, ending=ending)
    for stage in range(1, stages.last + 1):
        kernels.append(finish(stages, stage))
        launch += [*moments_launch(stages, stage), *finish_launch(stages, stage)]
        if stages.tile_wants(stage):
            kernels.append(again(stages, stage))
            launch += again_launch(stages, stage)
    nodes = (*found.before.nodes, *reduced.nodes)
    return Parts(
        kernel=triton_functions(nodes) + "\n\n\n".join(kernels),
        fits=_fits(reduced, stages, chosen), setup=found.setup(),
        launch=(*_prepared(reduced, stages), *launch, "return out"),
    )  # fmt: skip


def _fits(reduced: Reduced, stages: Stages, chosen: Parameters) -> tuple[str, ...]:
    found = reduced.convolution
    space = " * ".join(f"({each})" for each in found.outs(found.x) if each != "1")
    windows = " * ".join(
        f"(({each}) // {size})"
        for each, size in zip(found.outs(found.x), reduced.window or (1, 1, 1), strict=True)
    )
    made = [
        *fits_of(found, chosen),
        *(each.replace("<pixels>", space).replace("<windows>", windows) for each in reduced.fits),
    ]
    if _whole(stages):
        made.append(f"layer.out_channels <= {_WIDEST}")
    if stages.last:
        # Sums of sums stay in short chains.
        tile = min(64, AGAIN // _WIDEST) if stages.last > 1 and _whole(stages) else 64
        made.append(f"{space} <= {tile * LEAST * (_CHAIN - 1)}")
    joined = {"channels"} | {
        reduced.nodes[n].text for n in stages.needed if reduced.nodes[n].op in MOMENTS
    }
    if len(joined) > 1 or any(stages.whole_finish(k) for k in range(1, stages.last + 1)):
        made.append(f"layer.out_channels <= {_FINISHED}")
    return tuple(dict.fromkeys(made))


def _shape(reduced: Reduced, n: int) -> str:
    """The shape of a node, in Python."""
    missing = 3 - reduced.convolution.ndim
    known = {"b": "x.shape[0]", "c": "channels", "1": "1"}
    known |= {f"s{i}": f"outs[{missing + i}]" for i in range(3 - missing)}
    if reduced.window is not None:
        known |= {f"s{i}q": f"outs[{missing + i}] // {reduced.window[missing + i]}"
                  for i in range(3 - missing)}  # fmt: skip
    made = ", ".join(known[each] for each in reduced.layouts[n])
    return f"({made},)"


def _prepared(reduced: Reduced, stages: Stages) -> list[str]:
    """Lines of ``forward`` that make outputs and parameters ready."""
    found = reduced.convolution
    lines = [*found.measured(), f"out = x.new_empty({_shape(reduced, reduced.output)})"]
    if stages.kept is not None and not in_place(stages):
        lines.append(f"kept = x.new_empty({_shape(reduced, stages.kept)})")
    for n, text in reduced.of(Kind.PARAMETER).items():
        if n in stages.needed:
            spread = "" if n in reduced.single else ".expand(channels).contiguous()"
            lines.append(f"r{n} = {text}.reshape(-1){spread}")
    lines += [*found.weights(), "groups = layer.groups"]
    if stages.last:
        lines.append("space = outs[0] * outs[1] * outs[2]")
        if reduced.window is not None:
            z, y, x = reduced.window
            lines.append(f"windows = (outs[0] // {z}) * (outs[1] // {y}) * (outs[2] // {x})")
    return lines


def _ending(stages: Stages) -> Ending:
    """What the convolution does with its sums."""
    reduced = stages.reduced
    nodes = stages.tile_nodes(0)
    texts, lines = values_of(stages, nodes, loaded=[])
    tensors = tensors_of(stages, nodes, [])
    if reduced.convolution.bias:
        tensors = {"bias": "bias"} | tensors
        add = "total += tl.load(bias + co, mask=known, other=0.0).to(tl.float32)[None, :]"
        lines = [add, *lines]
    texts.given[reduced.made] = "total"
    lines += sums.computed(stages, texts, nodes)
    summed, windowed = bool(stages.summed(0)), stages.windowed(0)
    window = (reduced.window if windowed else None) or (1, 1, 1)
    lines += sums.of_windows(window) if windowed else []
    lines += sums.pieces(stages, texts, 0)
    target = ""
    value = stages.kept if stages.kept is not None else reduced.output
    if stages.kept is not None or not stages.last:
        target = kept_in(stages) if stages.kept is not None else "out"
        channels = "c" in reduced.layouts[value]
        lines += [*placed(reduced.convolution, channels),
                  f"tl.store(to + at, {texts.name(value)}, mask=there)"]  # fmt: skip
    numbers = numbers_of(stages, nodes)
    if summed:
        numbers |= {"pieces": "pieces", "first": "first"}
        tensors |= shares(stages, 0)
    if target:
        tensors["to"] = target
    return Ending(
        lines=tuple(lines), tensors=tuple(tensors.items()), numbers=tuple(numbers.items()),
        target=_full_form(reduced, value, target), whole=stages.whole(0),
        by_image=summed or windowed, window=window,
        places=tuple(sums.by_window(window)) if windowed else (),
        room=tuple(room_for(stages, 0)),
    )  # fmt: skip


def _full_form(reduced: Reduced, n: int, target: str) -> str:
    """A tensor of five strides, whatever dimensions the node has kept."""
    gone = target and len(reduced.layouts[n]) < reduced.convolution.ndim + 2
    return f"{target}.unsqueeze(1)" if gone else target
