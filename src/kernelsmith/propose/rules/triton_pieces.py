"""Few long rows as Triton: every row is cut in pieces, and every sweep is a launch of its own.

One program per row leaves most of a GPU idle where there are fewer rows than multiprocessors. Here
a program takes one piece of a row and writes down what it found there; the next launch, in which
all of that is known, joins the pieces of its row in order. Nobody waits for anybody.
"""

from collections.abc import Mapping

from kernelsmith.propose.rules.graph import Graph, Shape
from kernelsmith.propose.rules.plan import Online
from kernelsmith.propose.rules.triton_source import WORST, TritonSource, or_zero


class PiecesSource(TritonSource):
    """Writes rows in pieces beside the usual kernels, which stay for short rows and for many."""

    def __init__(self, graph: Graph, parameters: Mapping[str, str], processors: int) -> None:
        super().__init__(graph, parameters)
        self._few = processors

    def text(self) -> str:
        """All kernels."""
        made = [self._kernel(number) for number in range(len(self.plan.sweeps))]
        if self.graph.result.shape is not Shape.FULL:
            made.append(self._joined())
        return "\n\n\n".join([super().text(), *made])

    def _slots(self) -> dict[int, int]:
        """Where what a sweep found is written down, by node."""
        found: list[int] = []
        for sweep in self.plan.sweeps:
            found += sweep.reduces
            for pair in sweep.online:
                found += [pair.maximum, pair.total]
        return {n: slot for slot, n in enumerate(found)}

    def _arguments(self, name: str) -> list[str]:
        given = [*self.pointers.values(), "out", "held", "rows", "dim", "pieces", "share"]
        given += [f"s{n}" for n in self.numbers]
        given += [f"{each}: tl.constexpr" for each in ("PIECES", "ROWS", "BLOCK")]
        return [
            "@triton.jit", f"def {name}({', '.join(given)}):",
            "    at_row = tl.program_id(0).to(tl.int64) + tl.zeros([ROWS, 1], tl.int64)",
            "    there = at_row < rows",
            "    every = tl.arange(0, PIECES)[None, :]",
        ]  # fmt: skip

    def _earlier(self, count: int) -> list[str]:
        """Lines that join what earlier sweeps found in all pieces of a row."""
        lines: list[str] = []
        for sweep in self.plan.sweeps[:count]:
            for n in sweep.reduces:
                worst = WORST[self.graph.nodes[n].op]
                lines += [self._read(n, f"p{n}", worst), f"r{n} = {self.across(n, f'p{n}')}"]
                self._done.add(n)
            for pair in sweep.online:
                lines += self._online(pair)
                self._done |= {pair.maximum, pair.total}
        return lines

    def _read(self, n: int, name: str, other: str) -> str:
        at = f"held + ({self._slots()[n]} * rows + at_row) * pieces + every"
        return f"{name} = tl.load({at}, mask=every < pieces, other={other})"

    def _online(self, pair: Online) -> list[str]:
        """Sums below maxima of their own, brought below the largest of these."""
        top, total = f"r{pair.maximum}", f"r{pair.total}"
        one = f"p{pair.maximum}"
        shifts = [or_zero(each) if pair.unshifted else each for each in (one, top)]
        return [
            self._read(pair.maximum, one, 'float("-inf")'),
            self._read(pair.total, f"p{pair.total}", "0.0"),
            f"{top} = tl.max({one}, axis=1, keep_dims=True)",
            f"p{pair.total} = p{pair.total} * tl.exp({shifts[0]} - {shifts[1]})",
            f"{total} = tl.sum(tl.where(every < pieces, p{pair.total}, 0.0), axis=1, "
            "keep_dims=True)",
        ]

    def _kernel(self, number: int) -> str:
        sweep = self.plan.sweeps[number]
        self._done = set()
        lines = [
            "piece = tl.program_id(1).to(tl.int64)",
            *self._earlier(number),
            "begin = piece * share",
            "end = tl.minimum(dim, begin + share)",
            *self.swept(sweep, "begin", "end"),
        ]
        found = [*sweep.reduces]
        for pair in sweep.online:
            found += [pair.maximum, pair.total]
        for n in found:
            at = f"held + ({self._slots()[n]} * rows + at_row) * pieces + piece"
            lines.append(f"tl.store({at}, r{n}, mask=there)")
        return "\n".join([*self._arguments(f"sweep{number}"), *[f"    {each}" for each in lines]])

    def _joined(self) -> str:
        self._done = set()
        lines = [*self._earlier(len(self.plan.sweeps)), *self._values([self.graph.output])]
        lines.append(f"tl.store(out + at_row, {self._name(self.graph.output)}, mask=there)")
        return "\n".join([*self._arguments("joined"), *[f"    {each}" for each in lines]])

    def launch(self) -> list[str]:
        """Python that launches the kernels and returns the output."""
        p, usual = self.parameters, super().launch()
        begin = ["if not out.numel():", "    return out"]
        assert usual[:2] == begin
        like = self.pointers[self._like()]
        numbers = [self.graph.nodes[n].text for n in self.numbers]
        given = ", ".join([*self.pointers.values(), "out", "held", "rows", "dim", "pieces",
                           "share", *numbers])  # fmt: skip
        tail = (
            f"({given}, PIECES=triton.next_power_of_2(pieces), ROWS=1, BLOCK={p['block']}, "
            f"num_warps={p['warps']})"
        )
        few = [
            f"share = triton.cdiv(triton.cdiv(dim, {p['splits']}), {p['block']}) * {p['block']}",
            "pieces = triton.cdiv(dim, share)",
            f"held = torch.empty(({len(self._slots())}, rows, pieces), dtype=torch.float32, "
            f"device={like}.device)",
            *[f"sweep{number}[(rows, pieces)]{tail}" for number in range(len(self.plan.sweeps))],
        ]
        if self.graph.result.shape is not Shape.FULL:
            few.append(f"joined[(rows, 1)]{tail}")
        few.append("return out")
        asked = f"if rows < {self._few} and dim > {p['whole']}:"
        return [*begin, asked, *[f"    {each}" for each in few], *usual[2:]]
