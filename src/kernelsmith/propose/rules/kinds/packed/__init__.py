"""Convolutions across channels over a copy that tensor cores can read as it lies.

Tensor cores take TF32 only from rows of factors that lie side by side, and in torch's layout pixels
do. So input and weights are copied once, channels side by side and borders included; neighbours are
then rows of that copy, read without a question. TF32 is what torch's own convolutions multiply in,
for some sizes and layouts; where they do not, float32 is split into parts that tensor cores take,
and the copies are not rounded.
"""

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds import neighbours
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.candidate import Written
from kernelsmith.propose.rules.kinds.neighbours.graph import Convolution
from kernelsmith.propose.rules.kinds.packed.phases import phases_of
from kernelsmith.propose.rules.kinds.packed.reading import read
from kernelsmith.propose.rules.kinds.packed.reduced import check, render_reduced
from kernelsmith.propose.rules.kinds.packed.stages import Stages
from kernelsmith.propose.rules.kinds.packed.tiles import EXACT, SMALLER
from kernelsmith.propose.rules.kinds.packed.triton import render_triton
from kernelsmith.propose.rules.kinds.trace import Traced
from kernelsmith.propose.rules.space import Space


def recognise(traced: Traced, backend: str) -> Written:
    """One convolution that mixes channels, with what is elementwise on both sides.

    Raises:
        NotRecognised: There is none, or it is of another form, or this is no GPU.
    """
    try:
        found = neighbours.read(traced)
    except NotRecognised:
        return _reduced(traced, backend)
    _check(found, backend)
    kind = "transposed convolution" if found.turned else "convolution"
    return Written(
        backend=backend, module=traced.module, space=_space(halves=_in_halves(traced)),
        render=lambda chosen: render_triton(found, chosen),
        does=f"One kernel multiplies weights and neighbours of a {kind} over copies with "
        "channels side by side, and does what stands behind it in registers.",
    )  # fmt: skip


def _reduced(traced: Traced, backend: str) -> Written:
    """The same with reductions behind it."""
    reduced = read(traced)
    found, stages = reduced.convolution, Stages(reduced)
    _check(found, backend)
    check(reduced, stages)
    kind = "transposed convolution" if found.turned else "convolution"
    does = f"One kernel multiplies weights and neighbours of a {kind} over copies with channels "
    does += "side by side"
    if not stages.last:
        what = [f"all channels of a {'window' if reduced.window else 'pixel'}"]
        what = (what if stages.whole(0) else []) + ["windows"] * (reduced.window is not None)
        how = f"reduces {' and '.join(what)}" if what else "does what stands behind it"
        does += f", and {how} in registers."
    elif stages.kept is None:
        does += " and adds up what stands behind it tile by tile; a small one adds up the tiles."
    else:
        does += (
            " and keeps moments or sums of its tiles; small ones join them, and another pass over "
            "what it wrote does the rest."
        )
    space = _space(whole=stages.whole(0), halves=_in_halves(traced))
    return Written(
        backend=backend, module=traced.module, space=space, does=does,
        render=lambda chosen: render_reduced(reduced, stages, chosen),
    )  # fmt: skip


def _check(found: Convolution, backend: str) -> None:
    if backend == "cpu":
        raise NotRecognised("rules leave convolutions that mix channels to the library here")
    if found.thin:
        raise NotRecognised("rules add up neighbours where a group has few channels")
    phases_of(found)


def _in_halves(traced: Traced) -> bool:
    """Whether every workload is of half precision, which tensor cores take as it is."""
    halves = ("float16", "bfloat16")
    return all(each.dtype in halves for each in traced.module.task.workloads)


def _space(*, whole: bool = False, halves: bool = False) -> Space:
    """``whole``: a program has all channels. ``halves``: there is no float32 to be multiplied."""
    wide = p.sized("channels", "128", "output channels per program", "32", "64", "128", "256")
    smaller = tuple(each for each in SMALLER if not (whole and each[0] == "channels"))
    made = [
        *([] if halves else [p.precision(*EXACT, smaller=smaller)]),
        p.sized("pixels", "128", "outputs per program and channel", "64", "128", "256"),
        *([] if whole else [wide]),
        p.sized("depth", "32", "products per step", "16", "32", "64"),
        p.warps("8"),
        p.sized("stages", "4", "tiles in flight", "2", "3", "4", "5"),
    ]
    exact = () if halves else tuple({"precision": each, **dict(smaller)} for each in EXACT[:2])
    if whole:
        return p.a_space("packed", made, (
            {}, {"stages": "3"}, {"warps": "4"}, {"pixels": "64", "warps": "4"},
            {"pixels": "256"}, {"depth": "64", "stages": "2"}, *exact,
        ))  # fmt: skip
    return p.a_space("packed", made, (
        {}, {"channels": "256", "stages": "3"}, {"channels": "64", "warps": "4"},
        {"pixels": "256", "channels": "64"}, {"stages": "3"}, {"depth": "64", "stages": "2"},
        *exact,
    ))  # fmt: skip
