"""What a task around products computes: stages, each of sums of products and work behind them."""

from collections import Counter
from dataclasses import dataclass

from kernelsmith.propose.rules.graph import Kind, Node, Shape, pruned


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """``left @ right``, or ``left @ right.mT`` where turned."""

    left: str | int
    """An input, or the number of the stage whose result it is."""
    right: str
    turned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What is elementwise behind some sums of products of the same size."""

    sums: tuple[tuple[Term, ...], ...]
    nodes: tuple[Node, ...]
    output: int

    @property
    def made(self) -> dict[int, int]:
        """Nodes that stand for sums, and for which."""
        names = {sum_text(i): i for i in range(len(self.sums))}
        return {n: names[each.text] for n, each in enumerate(self.nodes) if each.text in names}

    def of(self, *kinds: Kind) -> dict[int, str]:
        """Texts of the nodes of these kinds, but for the sums."""
        made = self.made
        return {i: n.text for i, n in enumerate(self.nodes) if n.kind in kinds and i not in made}

    @property
    def terms(self) -> list[Term]:
        """All its products."""
        return [term for each in self.sums for term in each]


@dataclass(frozen=True, slots=True, kw_only=True)
class Products:
    """Stages, of which the last gives the result; a batch of them has one stage of one product."""

    stages: tuple[Stage, ...]
    rank: int
    """Dimensions of the inputs that are multiplied."""
    batched: bool

    @property
    def terms(self) -> list[Term]:
        """All products, in order."""
        return [term for stage in self.stages for term in stage.terms]

    @property
    def lefts(self) -> dict[str, str]:
        """Inputs that are multiplied, and what they are called in the kernel."""
        found = dict.fromkeys(term.left for term in self.terms if isinstance(term.left, str))
        return {text: f"a{i}" for i, text in enumerate(found)}

    @property
    def rights(self) -> dict[str, str]:
        """What they are multiplied by, and what that is called."""
        return {text: f"r{i}" for i, text in enumerate(dict.fromkeys(t.right for t in self.terms))}

    def reads(self, *kinds: Kind) -> list[tuple[int, int, str]]:
        """Stage, node and text of what is read behind products."""
        return [(s, n, text) for s, each in enumerate(self.stages)
                for n, text in each.of(*kinds).items()]  # fmt: skip

    @property
    def more(self) -> list[tuple[int, int, str]]:
        """Tensors among them; the first is ``m0`` in the kernel."""
        return self.reads(Kind.INPUT, Kind.PARAMETER)

    @property
    def numbers(self) -> list[tuple[int, int, str]]:
        """Numbers among them; the first is ``e0``."""
        return self.reads(Kind.NUMBER)

    def columns(self, stage: int) -> str:
        """How wide a stage's result is, in Python."""
        term = self.stages[stage].terms[0]
        return f"{self.rights[term.right]}.shape[{-2 if term.turned else -1}]"

    def depth(self, term: Term) -> str:
        """How long a product's sums are, in Python."""
        return f"{self.rights[term.right]}.shape[{-1 if term.turned else -2}]"

    def setup(self) -> tuple[str, ...]:
        """Lines before the conditions."""
        made = [f"{name} = {text}" for text, name in self.rights.items()]
        # An attribute of a module takes as long to find as a tensor to check: it is asked for once.
        made += [f"m{i} = {text}" for i, (_, _, text) in enumerate(self.more) if "." in text]
        return tuple(made)

    def fits(self, dtypes: str) -> tuple[str, ...]:
        """When the kernel may run."""
        first, *others = self.lefts
        made = [f"{first}.dtype in {dtypes}", f"{first}.numel() > 0",
                f"{first}.dim() == {self.rank}"]  # fmt: skip
        for text in others:
            made += [f"{text}.dtype is {first}.dtype", f"{text}.numel() > 0",
                     f"{text}.shape[:-1] == {first}.shape[:-1]"]  # fmt: skip
        for name in self.rights.values():
            made += [f"{name}.dtype is {first}.dtype", f"{name}.numel() > 0",
                     f"{name}.dim() == {3 if self.batched else 2}"]  # fmt: skip
        if self.batched:
            made.append(f"{first}.shape[0] == r0.shape[0]")
        for s, stage in enumerate(self.stages):
            for term in stage.terms:
                left = term.left
                size = self.columns(left) if isinstance(left, int) else f"{left}.shape[-1]"
                made.append(f"{size} == {self.depth(term)}")
                wide = f"{self.rights[term.right]}.shape[{-2 if term.turned else -1}]"
                made += [f"{wide} == {self.columns(s)}"] if wide != self.columns(s) else []
        for i, (s, n, text) in enumerate(self.more):
            text = f"m{i}" if "." in text else text
            size = {
                Shape.FULL: f"{text}.shape == (*{first}.shape[:-1], {self.columns(s)})",
                Shape.COLUMN: f"{text}.numel() == {self.columns(s)}",
            }.get(self.stages[s].nodes[n].shape, f"{text}.numel() == 1")
            made += [size, f"{text}.dtype is {first}.dtype"]
        return tuple(dict.fromkeys(made))

    def prepared(self) -> list[str]:
        """Lines of ``forward`` up to the launch."""
        lines = [f"{name} = {text}.contiguous()" for text, name in self.lefts.items()]
        lines += [f"{name} = {name}.contiguous()" for name in self.rights.values()]
        lines += [
            f"m{i} = {f'm{i}' if '.' in text else text}.contiguous()"
            for i, (_, _, text) in enumerate(self.more)
        ]
        if self.batched:
            lines.append("batch, rows = a0.shape[:2]")
        else:
            lines.append("batch, rows = 1, a0.shape[:-1].numel()")
        last = len(self.stages) - 1
        lines += [
            f"t{s} = a0.new_empty((rows, {self.columns(s)}), dtype=torch.float32)"
            for s in range(last)
        ]
        return [*lines, f"out = a0.new_empty((*a0.shape[:-1], {self.columns(last)}))"]


def sum_text(number: int) -> str:
    """The text of the node that stands for a sum of products."""
    return f"<product {number}>"


def a_stage(nodes: tuple[Node, ...], output: int, terms: list[Term]) -> Stage:
    """A stage, in which products that are only added to each other are one sum."""
    used = Counter(arg for node in nodes for arg in node.args)
    used[output] += 1
    sums: dict[str, tuple[Term, ...]] = {sum_text(i): (term,) for i, term in enumerate(terms)}
    made: list[Node] = []
    for node in nodes:
        names = [made[arg].text for arg in node.args]
        alone = node.kind is Kind.BINARY and all(used[arg] == 1 for arg in node.args)
        if alone and node.op == "add" and all(each in sums for each in names):
            one, other = names
            sums[one] += sums.pop(other)
            node = made[node.args[0]]
        made.append(node)
    kept, output = pruned(made, output)
    order = {text: sum_text(i) for i, text in enumerate(sums)}
    named = tuple(
        Node(kind=n.kind, shape=n.shape, op=n.op, args=n.args, text=order.get(n.text, n.text),
             value=n.value) for n in kept
    )  # fmt: skip
    return Stage(sums=tuple(sums.values()), nodes=named, output=output)
