"""Attention cut out of whatever module it stands in: one kernel, no matrix of scores in memory."""

import ast

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.attention.cpu import render_cpu
from kernelsmith.propose.rules.kinds.attention.graph import Attention, find
from kernelsmith.propose.rules.kinds.attention.triton import render_kernels
from kernelsmith.propose.rules.kinds.candidate import Parts, Written
from kernelsmith.propose.rules.kinds.straight import Cut, Place, places
from kernelsmith.propose.rules.source import Module
from kernelsmith.propose.rules.space import Parameters, Space

_DOES = (
    "Attention goes over blocks of keys with {how}, so that scores never reach memory; "
    "what stands around it stays as it is."
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
    for _, cuts in found:
        for _, attention in cuts:
            _check_depth(module, attention, 1024 if backend == "cpu" else 256)
    features = _features(found)
    turned = any(_turned(place) for place, _ in found)
    how = "a softmax that is corrected as larger scores come"
    if "softmax" not in features:
        how = "weights that need no sum"

    def render(chosen: Parameters) -> Parts:
        kernel = render_cpu(features, chosen) if backend == "cpu" else render_kernels(
            features, chosen)  # fmt: skip
        bodies = {place.name: place.rewritten([cut for cut, _ in cuts]) for place, cuts in found}
        entry = module.task.entry
        return Parts(
            kernel=kernel, fits=(), launch=bodies.pop(entry, ()), others=tuple(bodies.items())
        )

    return Written(
        backend=backend, module=module, space=_space(features, backend, turned=turned),
        render=render, does=_DOES.format(how=how),
    )  # fmt: skip


def _check_depth(module: Module, attention: Attention, most: int) -> None:
    """Refuse heads that are known to be too deep; of others the kernel finds out when it runs."""
    names = [each.arg for each in module.forward.args.args]
    names = names if module.task.is_function else names[1:]
    shapes = dict(zip(names, _shapes(module), strict=False))
    for text in (attention.q, attention.v):
        shape = shapes.get(text)
        try:
            depth = module.plain(ast.parse(shape[-1], mode="eval").body) if shape else None
        except NotRecognised:
            continue
        if isinstance(depth, int) and depth > most:
            raise NotRecognised(f"rules know heads of at most {most} elements")


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
