"""Names for what a kernel is given: readable, and each one once."""

import re

from kernelsmith.propose.rules.graph import Graph, Kind

_TAKEN = {"out", "rows", "dim", "size", "tile", "block", "blocks", "row", "start", "length", "last",
          "at", "u", "W", "U", "T", "vec", "scratch", "partial", "float", "double", "int",
          "at_row", "inside", "programs", "count", "load", "store", "sweep"}  # fmt: skip


def pointers(graph: Graph) -> dict[int, str]:
    """A name for every tensor that the kernel reads, by node."""
    found: dict[int, str] = {}
    for number in graph.of(Kind.INPUT, Kind.PARAMETER):
        name = re.sub(r"\W", "_", graph.nodes[number].text.removeprefix("self."))
        while name in _TAKEN or name in found.values() or re.fullmatch(r"[svrak]\d+", name):
            name += "_"
        found[number] = name
    return found
