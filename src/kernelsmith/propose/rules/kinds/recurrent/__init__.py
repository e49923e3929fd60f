"""Recurrent layers cut out of whatever module they stand in: all steps in one go."""

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.candidate import Parts, Written
from kernelsmith.propose.rules.kinds.recurrent.cpu import render_cpu
from kernelsmith.propose.rules.kinds.recurrent.graph import find
from kernelsmith.propose.rules.kinds.recurrent.loops import find_loop
from kernelsmith.propose.rules.kinds.recurrent.triton import render_kernels
from kernelsmith.propose.rules.kinds.straight import Cut, Place, places
from kernelsmith.propose.rules.source import Module
from kernelsmith.propose.rules.space import Parameters, Space

_DOES = {
    "cpu": "Each step of the {mode} is one pass over weights that are packed once, gates and all.",
    "triton": "One kernel runs all steps of the {mode} in a wave through its layers: programs own "
    "units, keep cells in registers and wait for each other.",
}


def recognise(module: Module, backend: str) -> Written:
    """Layers of type ``nn.LSTM``, ``nn.GRU`` or ``nn.RNN`` anywhere in a file, or step by step.

    Raises:
        NotRecognised: There is none, or it is called in another way.
    """
    found: list[tuple[Place, list[Cut]]] = []
    modes: set[str] = set()
    for place in places(module):
        cuts = find(place)
        if cuts:
            found.append((place, [cut for cut, _ in cuts]))
            modes |= {mode for _, mode in cuts}
            continue
        loop = find_loop(place)
        if loop is not None:
            found.append((place, loop[0]))
            modes.add(loop[1])
    if len(modes) != 1:
        raise NotRecognised("rules find no recurrent layer" if not modes else
                            "rules know one sort of recurrent layer in a file")  # fmt: skip
    (mode,) = modes

    def render(chosen: Parameters) -> Parts:
        bodies = {place.name: place.rewritten(cuts) for place, cuts in found}
        render = render_cpu if backend == "cpu" else render_kernels
        return Parts(
            kernel=render(mode, chosen), fits=(), launch=bodies.pop(module.task.entry, ()),
            others=tuple(bodies.items()),
        )  # fmt: skip

    return Written(
        backend=backend, module=module, space=_space(backend), render=render,
        does=_DOES[backend].format(mode=mode),
    )  # fmt: skip


def _space(backend: str) -> Space:
    if backend == "cpu":
        made = [
            p.width(), p.sized("rows", "4", "sequences that share what was read of the weights",
                               "1", "2", "4"), *p.threads("16384"), p.math(),
        ]  # fmt: skip
        return p.a_space("recurrent", made, (
            {}, {"threads": "1"}, {"width": "8"}, {"rows": "2"},
        ))  # fmt: skip
    made = [
        p.choice("launch", ("grid", "step"), "one launch for all steps, or one for each"),
        p.choice("precision", ("fp16x3", "tf32x3", "ieee"), "how float32 is multiplied; as pairs "
                 "of float16 programs keep their weights for all steps", safe="ieee"),
        p.sized("units", "16", "units of a layer per program", "16", "32", "64"),
        p.sized("rows", "16", "sequences per program", "16", "32", "64"),
        p.sized("block", "64", "elements of the state per step", "32", "64", "128", "256"),
        p.warps("8"),
    ]  # fmt: skip
    return p.a_space("recurrent", made, (
        # Of what reads its weights anew the second was the fastest on an H200, by half. More units
        # than 16 leave room for a program's weights in small layers only.
        {}, {"precision": "tf32x3", "units": "32", "rows": "64"},
        {"precision": "tf32x3", "warps": "4"}, {"launch": "step"}, {"precision": "ieee"},
        {"warps": "4"},
    ))  # fmt: skip
