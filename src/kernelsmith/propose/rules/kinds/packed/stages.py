"""Which pass computes what: reductions over space cut a graph into passes over all pixels.

A tile pass goes over pixels; what it adds up is finished per image, and the next tile pass may use
it. The first one is the convolution itself; later ones read one value that it kept.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from kernelsmith.propose.rules.graph import Kind
from kernelsmith.propose.rules.kinds.packed.layouts import has_space
from kernelsmith.propose.rules.kinds.packed.reading import Reduced

MOMENTS = ("mean", "squares")


@dataclass(frozen=True)
class Stages:
    """Nodes by number, sorted."""

    reduced: Reduced

    @cached_property
    def needed(self) -> list[int]:
        """All that the output needs."""
        return self._reached([self.reduced.output], lambda n: False)

    @cached_property
    def of(self) -> dict[int, int]:
        """How many reductions over space lie below each node."""
        found: dict[int, int] = {}
        for n in self.needed:
            below = [found[each] for each in self.reduced.nodes[n].args]
            found[n] = max(below, default=0) + (self.over_space(n))
        return found

    def over_space(self, n: int) -> bool:
        """Whether it takes pixels together."""
        node = self.reduced.nodes[n]
        return node.kind is Kind.REDUCE and node.text not in ("c", "w")

    def spatial(self, n: int) -> bool:
        """Whether it has one value per pixel."""
        return has_space(self.reduced.layouts[n])

    @property
    def last(self) -> int:
        """The stage of the output."""
        return self.of[self.reduced.output]

    def summed(self, stage: int) -> list[int]:
        """Reductions over space that a tile pass begins and the next stage finishes."""
        return [n for n in self.needed if self.over_space(n) and self.of[n] == stage + 1]

    @cached_property
    def kept(self) -> int | None:
        """What the first pass keeps for later ones, if there are any."""
        nodes, late = self.reduced.nodes, self._late()
        if not late:
            return None
        found = {each for n in late for each in nodes[n].args
                 if self.spatial(each) and self.of[each] == 0}  # fmt: skip
        return found.pop() if len(found) == 1 else self.reduced.made

    def _late(self) -> list[int]:
        return [n for n in self.needed if self.spatial(n) and self.of[n] > 0]

    def tile_wants(self, stage: int) -> list[int]:
        """What a tile pass computes: what it sums up, what it keeps, what it gives back."""
        wanted = {self.reduced.nodes[n].args[0] for n in self.summed(stage)}
        if stage == 0 and self.kept is not None:
            wanted.add(self.kept)
        if stage == self.last and self.spatial(self.reduced.output):
            wanted.add(self.reduced.output)
        return sorted(wanted)

    def tile_nodes(self, stage: int) -> list[int]:
        """What it computes or loads on the way there."""
        begins = self.begins(stage)
        return self._reached(
            self.tile_wants(stage), lambda n: n == begins or (self._small(n) and self.of[n] > 0)
        )

    def finish_wants(self, stage: int) -> list[int]:
        """What is stored per image (and channel) once all tiles of the pass before are done."""
        wanted = {n for k in range(stage, self.last + 1) if k for n in self.tile_nodes(k)}
        wanted |= {n for k in range(stage + 1, self.last + 1) for n in self.finish_nodes(k)}
        found = {n for n in wanted if self._small(n) and self.of[n] == stage}
        if stage == self.last and not self.spatial(self.reduced.output):
            found.add(self.reduced.output)
        return sorted(found)

    def finish_nodes(self, stage: int) -> list[int]:
        """What it computes or loads on the way there."""
        return self._reached(
            self.finish_wants(stage),
            lambda n: self.over_space(n) or (self._small(n) and 0 < self.of[n] < stage),
        )

    def loads(self, nodes: Iterable[int], stage: int) -> list[int]:
        """Which of these a tile pass (or, one stage later, a finish) finds stored."""
        return [n for n in nodes if self._small(n) and 0 < self.of[n] <= stage]

    def whole(self, stage: int) -> bool:
        """Whether a tile must hold all channels."""
        begins = self.begins(stage)
        return any(
            self._across(n) and self.spatial(n) and n != begins for n in self.tile_nodes(stage)
        )

    def windowed(self, stage: int) -> bool:
        """Whether a tile must hold whole windows, which it reduces."""
        nodes, begins = self.reduced.nodes, self.begins(stage)
        return any(nodes[n].text == "w" and n != begins for n in self.tile_nodes(stage))

    def begins(self, stage: int) -> int | None:
        """What a tile pass has of every pixel to begin with."""
        return self.kept if stage else self.reduced.made

    def whole_finish(self, stage: int) -> bool:
        """Whether all channels must be finished together."""
        return any(self._across(n) for n in self.finish_nodes(stage))

    def _across(self, n: int) -> bool:
        node = self.reduced.nodes[n]
        return node.kind is Kind.REDUCE and node.text == "c"

    def _small(self, n: int) -> bool:
        return not self.spatial(n)

    def _reached(self, wanted: Iterable[int], stop: Callable[[int], bool]) -> list[int]:
        found: set[int] = set()
        stack = list(wanted)
        while stack:
            n = stack.pop()
            if n not in found:
                found.add(n)
                if not stop(n):
                    stack += self.reduced.nodes[n].args
        return sorted(found)
