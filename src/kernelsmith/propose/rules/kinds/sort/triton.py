"""A sort or a selection as Triton: rows that fit one program in registers, values by digits."""

from collections.abc import Sequence

from kernelsmith.propose.rules.graph import Kind, NotRecognised, Shape
from kernelsmith.propose.rules.kinds.around import DTYPES
from kernelsmith.propose.rules.kinds.candidate import Parts
from kernelsmith.propose.rules.kinds.sort.graph import (
    INDICES,
    SORTED,
    Over,
    Selected,
    Sorted,
    reached,
)
from kernelsmith.propose.rules.kinds.texts import Texts, triton_functions
from kernelsmith.propose.rules.plan import Sweep, plan
from kernelsmith.propose.rules.space import Parameters

_WIDE, _WIDEST = 8192, 16384
"""Elements of a row that one program can put in order: on any GPU, and where the pairs of a row
fit a multiprocessor's shared memory (128 KiB). Longer rows are left to the reference."""
_WORST = {"sum": "0.0", "max": 'float("-inf")', "min": 'float("inf")'}
_JOIN = {"sum": "{0} + {1}", "max": "tl.maximum({0}, {1}, tl.PropagateNan.ALL)",
         "min": "tl.minimum({0}, {1}, tl.PropagateNan.ALL)"}  # fmt: skip
_KEYED = """\
@triton.jit
def keyed(value):  # integers in the order of the floats; NaN is the largest and -0.0 is 0.0
    bits = tl.where(value != value, 0x7FFFFFFF, (value + 0.0).to(tl.int32, bitcast=True))
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


"""
_WIDEST_TEXT = f"""\
def widest(x):  # elements of a row whose pairs fit the shared memory of a multiprocessor
    if not x.is_cuda:
        return {_WIDE}
    shared = torch.cuda.get_device_properties(x.device).shared_memory_per_block_optin
    return {_WIDEST} if shared > 8 * {_WIDEST} else {_WIDE}


"""


def check(found: Sorted | Selected) -> None:
    """Refuse what Triton may round differently each time it is computed.

    Raises:
        NotRecognised: A selection among such values.
    """
    for n, node in enumerate(found.nodes):
        if node.op == "rounded":
            ops = {found.nodes[each].op for each in reached(found.nodes, [n])}
            if "mul" in ops and ops & {"add", "sub"}:
                raise NotRecognised("rules cannot tell which products Triton rounds before a sum")


def render_sorted(sort: Sorted, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    inputs, count = sort.inputs(), "count" if sort.count else "length"
    texts = Texts(sort.nodes, _given(sort), cpp=False)
    flip = "~" if sort.descending else ""
    lines = [
        "row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]",
        "at = tl.arange(0, BLOCK)[None, :]",
        "inside = (row < rows) & (at < length)",
        *_loads(inputs, "row * length + at", "inside"),
        *texts.lines([sort.score]),
        f"key = {flip}keyed({_stored(texts.name(sort.score))})",
        "# Places in the lower half keep equal ones in their order.",
        "pair = tl.where(inside, (key.to(tl.int64) << 32) | at, 0x7FFFFFFFFFFFFFFF)",
        "place = tl.sort(pair, dim=1) & 0xFFFFFFFF",
        f"kept = (row < rows) & (at < {count})",
    ]
    nodes = [n for n in sort.outputs if n != INDICES]
    if INDICES in sort.outputs:
        lines.append(f"tl.store(indices + row * {count} + at, place, mask=kept)")
    if nodes:
        again = Texts(sort.nodes, _given(sort), cpp=False)
        lines += _loads(inputs, "row * length + place", "kept") + again.lines([sort.score])
        ((n, _),) = [(n, text) for n, text in sort.of(Kind.INPUT).items() if text == SORTED]
        lines.append(f"value = {_stored(again.name(sort.score))}")
        behind = Texts(sort.nodes, _given(sort) | {n: "value"}, cpp=False)
        lines += behind.lines(nodes)
        for name, each in zip(sort.names(), sort.outputs, strict=True):
            if each != INDICES:
                to = f"{name} + row * {count} + at"
                lines.append(f"tl.store({to}, {behind.name(each)}, mask=kept)")
    arguments = [*[name for _, name in sort.arguments()], "rows", "length"]
    arguments += ["count"] if sort.count else []
    x = sort.around.like
    narrow = f"({x}.shape[-1] <= {_WIDE} or {x}.shape[-1] <= widest({x}))"
    fits = (*sort.fits(DTYPES), narrow)
    launch = ("block = triton.next_power_of_2(length)",
              f"grid = (triton.cdiv(rows, max(1, {chosen['block']} // block)),)")  # fmt: skip
    constants = {"ROWS": f"max(1, {chosen['block']} // block)", "BLOCK": "block"}
    # A wide row would fill the registers of fewer.
    constants |= {"num_warps": f"max({chosen['warps']}, min(16, block // 512))"}
    return _parts(sort, "order", arguments, lines, constants, fits, launch)


def render_selected(selected: Selected, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    arguments = [*[name for _, name in selected.arguments()], "rows", "length"]
    arguments += [f"t{n}" for n in selected.ranks()]
    fits = (*selected.fits(DTYPES), f"{selected.around.like}.shape[-1] < 2**31 - {1 << 16}")
    # As many elements as threads at least: none is then counted by two of them.
    least = f"max({32 * int(chosen['warps'])}, triton.next_power_of_2(length))"
    launch = (f"block = min({chosen['block']}, {least})", "grid = (rows,)")
    constants = {"BLOCK": "block", "num_warps": chosen["warps"]}
    lines = ["row = tl.program_id(0).to(tl.int64)", *_Row(selected).lines()]
    return _parts(selected, "select", arguments, lines, constants, fits, launch)


class _Row:
    """What happens to one row, in steps: what a sweep needs is computed in it."""

    def __init__(self, selected: Selected) -> None:
        self._selected = selected
        self._nodes = selected.nodes
        self._plan = plan(selected.graph, keep=False, online=False)
        self._have = {n: f"s{n}" for n in selected.of(Kind.NUMBER)}
        self._have |= {n: "tl.cast(length, tl.float32)" for n in selected.of(Kind.COUNT)}

    def lines(self) -> list[str]:
        nodes, lines = self._nodes, []
        for sweep in self._plan.sweeps:
            for n in sweep.reduces:
                if n in self._selected.ranks():
                    lines += self._search(n)
            lines += self._per_row() + self._sweep(sweep)
        lines += self._per_row()
        texts = Texts(nodes, self._have, cpp=False)
        for name, n in zip(self._selected.names(), self._selected.outputs, strict=True):
            if nodes[n].shape is not Shape.FULL:
                lines.append(f"tl.store({name} + row, {texts.name(n)})")
        return lines

    def _per_row(self) -> list[str]:
        """Values per row that can be computed by now, each once."""
        lines: list[str] = []
        for n, node in enumerate(self._nodes):
            per_row = node.shape in (Shape.ROW, Shape.SQUEEZED) and node.kind is not Kind.REDUCE
            known = all(a in self._have or self._nodes[a].shape is Shape.SCALAR for a in node.args)
            if per_row and known and n not in self._have:
                texts = Texts(self._nodes, self._have, cpp=False)
                lines += texts.lines([n])
                self._have |= texts.given
                self._have[n] = texts.name(n)
        return lines

    def _inside(self, wanted: Sequence[int]) -> tuple[list[str], Texts]:
        """The lines of one step up to some values."""
        inputs = self._selected.inputs()
        lines = ["at = start + tl.arange(0, BLOCK)", "inside = at < length"]
        lines += _loads(inputs, "row * length + at", "inside")
        texts = Texts(self._nodes, self._have | {n: f"v{n}" for n in inputs}, cpp=False)
        for n in sorted(reached(self._nodes, list(wanted))):
            if self._nodes[n].op == "rounded":
                (raw,) = self._nodes[n].args
                lines += texts.lines([raw])
                lines.append(f"v{n} = {_stored(texts.name(raw))}")
                texts.given[n] = f"v{n}"
        return lines + texts.lines(wanted), texts

    def _search(self, n: int) -> list[str]:
        """The key of a rank, eight bits at a time: how many have each next digit."""
        over = self._nodes[n].args[0]
        inside, texts = self._inside([over])
        digits = [
            *inside,
            f"key = keyed({texts.name(over)}) ^ -2147483648",
            "same = ((key >> (24 - 8 * digit) >> 8) & ((1 << (8 * digit)) - 1)) == found",
            "counts += tl.histogram((key >> (24 - 8 * digit)) & 255, 256, mask=inside & same)",
        ]
        lines = [
            f"rank, found, known = t{n} + 0, 0, 0",
            "for digit in tl.static_range(4):",
            "    counts = tl.zeros([256], tl.int32)",
            "    for start in range(0, length, BLOCK):",
            *[f"        {line}" for line in digits],
            "    step = tl.sum((tl.cumsum(counts, 0) < rank).to(tl.int32), 0)",
            "    rank -= tl.sum(tl.where(tl.arange(0, 256) < step, counts, 0), 0)",
            "    known, found = found, found * 256 + step",
            "ranked = (known.to(tl.int64) * 256 + step - 2147483648).to(tl.int32)",
            "bits = ranked ^ ((ranked >> 31) & 0x7FFFFFFF)",
            f"r{n} = bits.to(tl.float32, bitcast=True)",
        ]
        if self._nodes[n].op == "median":
            lines += [
                "odd = tl.zeros([BLOCK], tl.int32)",
                "for start in range(0, length, BLOCK):",
                *[f"    {line}" for line in inside],
                f"    odd |= (inside & ({texts.name(over)} != {texts.name(over)})).to(tl.int32)",
                f'r{n} = tl.where(tl.max(odd, 0) > 0, float("nan"), r{n})',
            ]
        self._have[n] = f"r{n}"
        return lines

    def _sweep(self, sweep: Sweep) -> list[str]:
        nodes = self._nodes
        summed = [n for n in sweep.reduces if n not in self._selected.ranks()]
        pairs = zip(self._selected.names(), self._selected.outputs, strict=True)
        full = [(name, n) for name, n in pairs if nodes[n].shape is Shape.FULL]
        wanted = [nodes[n].args[0] for n in summed] + [n for _, n in full if sweep.writes]
        if not wanted:
            return []
        inside, texts = self._inside(wanted)
        for n in summed:
            value = f"tl.where(inside, {texts.name(nodes[n].args[0])}, {_WORST[nodes[n].op]})"
            inside.append(f"a{n} = {_JOIN[nodes[n].op].format(f'a{n}', value)}")
        if sweep.writes:
            inside += [
                f"tl.store({name} + row * length + at, {texts.name(n)}, mask=inside)"
                for name, n in full
            ]
        lines = [f"a{n} = tl.full([BLOCK], {_WORST[nodes[n].op]}, tl.float32)" for n in summed]
        lines += ["for start in range(0, length, BLOCK):", *[f"    {line}" for line in inside]]
        for n in summed:
            lines.append(f"r{n} = tl.{nodes[n].op}(a{n}, 0)")
            if nodes[n].op != "sum":
                odd = f"tl.max((a{n} != a{n}).to(tl.int32), 0) > 0"
                lines.append(f'r{n} = tl.where({odd}, float("nan"), r{n})')
            self._have[n] = f"r{n}"
        return lines


def _given(over: Over) -> dict[int, str]:
    return {n: f"v{n}" for n in over.inputs()} | {n: f"s{n}" for n in over.of(Kind.NUMBER)}


def _loads(inputs: dict[int, str], place: str, mask: str) -> list[str]:
    return [
        f"v{n} = tl.load({text} + {place}, mask={mask}, other=0.0).to(tl.float32)"
        for n, text in inputs.items()
    ]


def _stored(text: str) -> str:
    """A value as it would be after it was stored."""
    return f"({text}).to(x0.dtype.element_ty).to(tl.float32)"


def _parts(
    over: Over, name: str, arguments: Sequence[str], lines: Sequence[str],
    constants: dict[str, str], fits: tuple[str, ...], launch: tuple[str, ...],
) -> Parts:  # fmt: skip
    numbers = over.of(Kind.NUMBER)
    ranks = over.ranks() if isinstance(over, Selected) else {}
    known = {f"t{n}": text for n, text in ranks.items()}
    known |= {name: text for text, name in over.given().items()}
    listed = [
        *arguments,
        *[f"s{n}" for n in numbers],
        *[f"{c}: tl.constexpr" for c in constants if c.isupper()],
    ]
    given = ", ".join([*[known.get(each, each) for each in arguments], *numbers.values(),
                       *[f"{c}={value}" for c, value in constants.items()]])  # fmt: skip
    text = triton_functions(over.nodes) + _KEYED
    text += _WIDEST_TEXT if isinstance(over, Sorted) else ""
    text += f"@triton.jit\ndef {name}({', '.join(listed)}):\n"
    return Parts(
        kernel=text + "\n".join(f"    {line}" for line in lines), fits=fits,
        launch=(*over.prepared(), *launch,
                f"{name}[grid]({given})", over.returned()),
    )  # fmt: skip
