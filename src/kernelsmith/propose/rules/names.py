"""Names for what a kernel is given: readable, and each one once."""

import re

from kernelsmith.propose.rules.graph import Graph, Kind

TAKEN = {
    "out", "rows", "dim", "size", "tile", "tiles", "block", "blocks", "row", "start", "length",
    "last", "at", "u", "W", "U", "T", "vec", "ivec", "dvec", "scratch", "partial", "float",
    "double", "int", "load", "store", "sweep", "only", "splat", "lanes", "at_row", "inside",
    "there", "first", "flat", "whole", "looped", "finish", "kernel", "short", "programs", "count",
    "lib", "RUN", "self", "torch", "tl", "triton", "larger", "smaller", "piece", "pieces", "share",
    "begin", "end", "held", "every", "joined",
}  # fmt: skip
"""Names that the templates use themselves."""


def pointers(graph: Graph) -> dict[int, str]:
    """A name for every tensor that the kernel reads, by node."""
    found: dict[int, str] = {}
    numbers = {
        each for n in graph.of(Kind.NUMBER) for each in re.findall(r"\w+", graph.nodes[n].text)
    }
    for number in graph.of(Kind.INPUT, Kind.PARAMETER):
        name = re.sub(r"\W", "_", graph.nodes[number].text.removeprefix("self."))
        while (
            name in TAKEN | numbers
            or name in found.values()
            or re.fullmatch(r"([svramet]|total|sum|kept)\d+", name)
        ):
            name += "_"
        found[number] = name
    return found
