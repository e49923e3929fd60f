"""Convolutions across channels over a copy that tensor cores can read as it lies.

Tensor cores take TF32 only from rows of factors that lie side by side, and in torch's layout pixels
do. So input and weights are copied once, channels side by side and borders included; neighbours are
then rows of that copy, read without a question. TF32 is what torch's own convolutions multiply in.
"""

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds import neighbours
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.candidate import Written
from kernelsmith.propose.rules.kinds.packed.phases import phases_of
from kernelsmith.propose.rules.kinds.packed.triton import render_triton
from kernelsmith.propose.rules.kinds.trace import Traced
from kernelsmith.propose.rules.space import Space


def recognise(traced: Traced, backend: str) -> Written:
    """One convolution that mixes channels, with what is elementwise on both sides.

    Raises:
        NotRecognised: There is none, or it is of another form, or this is no GPU.
    """
    found = neighbours.read(traced)
    if backend == "cpu":
        raise NotRecognised("rules leave convolutions that mix channels to the library here")
    if found.direct:
        raise NotRecognised("rules add up neighbours where a group has few channels")
    phases_of(found)
    kind = "transposed convolution" if found.turned else "convolution"
    return Written(
        backend=backend, module=traced.module, space=_space(),
        render=lambda chosen: render_triton(found, chosen),
        does=f"One kernel multiplies weights and neighbours of a {kind} over copies with "
        "channels side by side, and does what stands behind it in registers.",
    )  # fmt: skip


def _space() -> Space:
    made = [
        p.sized("pixels", "128", "outputs per program and channel", "64", "128", "256"),
        p.sized("channels", "128", "output channels per program", "32", "64", "128", "256"),
        p.sized("depth", "32", "products per step", "16", "32", "64"),
        p.warps("8"),
        p.sized("stages", "4", "tiles in flight", "2", "3", "4", "5"),
    ]
    return p.a_space("packed", made, (
        {}, {"channels": "256", "stages": "3"}, {"channels": "64", "warps": "4"},
        {"pixels": "256", "channels": "64"}, {"stages": "3"}, {"depth": "64", "stages": "2"},
    ))  # fmt: skip
