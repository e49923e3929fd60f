"""Attention cut out of whatever module it stands in: one kernel, no matrix of scores in memory."""

import ast

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.attention.cpu import render_cpu
from kernelsmith.propose.rules.kinds.attention.deep import render_deep
from kernelsmith.propose.rules.kinds.attention.graph import Attention, find
from kernelsmith.propose.rules.kinds.attention.helpers import DEEPEST, IN_REGISTERS, ON_PROCESSOR
from kernelsmith.propose.rules.kinds.attention.triton import render_kernels
from kernelsmith.propose.rules.kinds.candidate import Parts, Written
from kernelsmith.propose.rules.kinds.straight import Cut, Place, places
from kernelsmith.propose.rules.source import Module
from kernelsmith.propose.rules.space import Parameters, Space

_DOES = (
    "Attention goes over blocks of keys with {how}, so that scores never reach memory; "
    "what stands around it stays as it is."
)
_DEEP = (
    "Heads are too deep for registers: scores of some heads at a time are written down, and both "
    "products go over a head in steps; what stands around it stays as it is."
)


def recognise(module: Module, backend: str) -> Written:
    """Attention anywhere in a file, written out or by torch's own functions.

    Raises:
        NotRecognised: There is none, or it is of another form.
    """
    found: list[tuple[Place, list[tuple[Cut, Attention]]]] = []
    for place in places(module):
        cuts = find(place)
        if cuts:
            found.append((place, cuts))
    if not found:
        raise NotRecognised("rules find no attention")
    each = [attention for _, cuts in found for _, attention in cuts]
    depth = max(_depth(module, one) for one in each)
    if depth > (ON_PROCESSOR if backend == "cpu" else DEEPEST):
        raise NotRecognised(f"rules do not know heads of {depth} elements")
    deep = backend != "cpu" and depth > IN_REGISTERS
    features = _features(found)
    turned = any(_turned(place) for place, _ in found)
    how = "a softmax that is corrected as larger scores come"
    if "softmax" not in features:
        how = "weights that need no sum"

    def render(chosen: Parameters) -> Parts:
        write = render_cpu if backend == "cpu" else render_deep if deep else render_kernels
        kernel = write(features, chosen)
        bodies = {place.name: place.rewritten([cut for cut, _ in cuts]) for place, cuts in found}
        entry = module.task.entry
        return Parts(
            kernel=kernel, fits=(), launch=bodies.pop(entry, ()), others=tuple(bodies.items())
        )

    space = _deep_space if deep else _space
    return Written(
        backend=backend, module=module, space=space(features, backend, turned=turned),
        render=render, does=_DEEP if deep else _DOES.format(how=how),
    )  # fmt: skip


def _depth(module: Module, attention: Attention) -> int:
    """How deep heads are known to be, or 0; of others the kernel finds out when it runs."""
    names = [each.arg for each in module.forward.args.args]
    names = names if module.task.is_function else names[1:]
    shapes = dict(zip(names, _shapes(module), strict=False))
    deepest = 0
    for text in (attention.q, attention.v):
        shape = shapes.get(text)
        try:
            depth = module.plain(ast.parse(shape[-1], mode="eval").body) if shape else None
        except NotRecognised:
            continue
        deepest = max(deepest, depth) if isinstance(depth, int) else deepest
    return deepest


def _shapes(module: Module) -> list[tuple[str, ...] | None]:
    try:
        return module.input_shapes()
    except NotRecognised:
        return []


def _features(found: list[tuple[Place, list[tuple[Cut, Attention]]]]) -> frozenset[str]:
    each = [attention for _, cuts in found for _, attention in cuts]
    if len({one.weigh for one in each}) > 1 or len({one.causal for one in each}) > 1:
        raise NotRecognised("rules know one sort of attention in a file")
    features = frozenset().union(*(one.features for one in each))
    calls = " ".join(one.call for one in each)
    features |= {name for name in ("library", "multihead") if name in calls}
    return features


def _turned(place: Place) -> bool:
    """Whether heads are put back beside each other behind it."""
    text = "\n".join(place.rewritten([]))
    return any(each in text for each in (".transpose(1, 2)", ".permute(0, 2, 1, 3)"))


def _space(features: frozenset[str], backend: str, *, turned: bool) -> Space:
    if backend == "cpu":
        made = [
            p.width(), p.sized("queries", "64", "queries that share what was read of the keys",
                               "8", "16", "32", "64"),
            p.sized("keys", "64", "keys per step", "32", "64", "128"), *p.threads(), p.math(),
        ]  # fmt: skip
        return p.a_space("attention", made, (
            {}, {"queries": "32"}, {"keys": "128"}, {"queries": "16", "keys": "32"},
            {"schedule": "dynamic"}, {"width": "8"},
        ))  # fmt: skip
    softmax = "softmax" in features
    exact = ("fp16x3", "bf16x6", "ieee") if softmax else ("bf16x6", "ieee")
    made = [
        p.choice("precision", exact, "how float32 is multiplied; half precision goes as it is",
                 safe="ieee"),
        p.sized("queries", "128", "queries per program", "16", "32", "64", "128"),
        p.sized("keys", "64", "keys per step", "16", "32", "64", "128"),
        p.warps("8"),
        p.sized("stages", "2", "blocks of keys in flight", "1", "2", "3", "4"),
    ]  # fmt: skip
    if softmax:
        made.append(p.sized("programs", "132", "fewer programs than that share the keys of one",
                            "1", "132", "264", "528"))  # fmt: skip
    if turned:
        made.append(p.choice("layout", ("tokens", "heads"),
                             "heads side by side need not be turned afterwards"))  # fmt: skip
    return p.a_space("attention", made, (
        {}, {"queries": "64", "warps": "4"}, {"precision": "bf16x6", "queries": "64", "keys": "32",
                                              "warps": "4"},
        {"queries": "64", "keys": "128"}, {"stages": "3"},
        {"precision": "ieee", "queries": "64", "keys": "32"},
        {"programs": "528", "queries": "32", "warps": "4"},
    ))  # fmt: skip


def _deep_space(features: frozenset[str], backend: str, *, turned: bool) -> Space:
    exact = ("fp16x3", "bf16x6", "ieee") if "softmax" in features else ("bf16x6", "ieee")
    made = [
        p.choice("precision", exact, "how float32 is multiplied; half precision goes as it is",
                 safe="ieee"),
        p.sized("queries", "128", "rows of a tile", "32", "64", "128"),
        p.sized("columns", "128", "columns of a tile", "32", "64", "128"),
        p.warps("8"),
        p.sized("stages", "3", "steps in flight", "1", "2", "3", "4"),
        p.sized("scores", "256", "MiB of scores at a time; few of them stay in the cache",
                "32", "64", "256", "1024"),
    ]  # fmt: skip
    if turned:
        made.append(p.choice("layout", ("tokens", "heads"),
                             "heads side by side need not be turned afterwards"))  # fmt: skip
    return p.a_space("attention", made, (
        {}, {"scores": "32"}, {"queries": "64", "warps": "4"}, {"scores": "1024"},
        {"precision": "bf16x6"}, {"stages": "2"}, {"precision": "ieee"},
    ))  # fmt: skip
