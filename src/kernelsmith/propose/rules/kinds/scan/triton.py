"""A scan as Triton: a program walks along a row, or down a strip of columns, with a carry."""

from kernelsmith.propose.rules.kinds.around import DTYPES
from kernelsmith.propose.rules.kinds.candidate import Parts
from kernelsmith.propose.rules.kinds.scan.graph import Scan
from kernelsmith.propose.rules.kinds.texts import Texts, triton_functions
from kernelsmith.propose.rules.space import Parameters

_JOIN = {"sum": "carry + {0}", "prod": "carry * {0}"}
_IDENTITY = {"sum": "0.0", "prod": "1.0"}
_TIMES = """\
@triton.jit
def times(a, b):
    return a * b


"""
_FEW = 264
"""Below so many rows, each is cut in pieces: two programs for every processor of an H200."""


def render_triton(scan: Scan, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    kernel = triton_functions(scan.nodes) + (_TIMES if scan.op == "prod" else "")
    kernel += _rows(scan, chosen) if scan.around.last else _columns(scan, chosen)
    launch = _launch_rows(scan, chosen) if scan.around.last else _launch_columns(scan, chosen)
    return Parts(
        kernel=kernel, fits=scan.around.fits(DTYPES), setup=scan.around.setup(),
        launch=(*scan.around.dense(), f"out = torch.empty_like({scan.around.like})", *launch,
                "return out"),
    )  # fmt: skip


def _total(scan: Scan, value: str, axis: int) -> str:
    if scan.op == "sum":
        return f"tl.sum({value}, axis={axis}, keep_dims=True)"
    return f"tl.reduce({value}, axis={axis}, combine_fn=times, keep_dims=True)"


def _loads(scan: Scan, at: str, chosen: Parameters) -> list[str]:
    evict = ', eviction_policy="evict_first"' if chosen["evict"] == "first" else ""
    return [
        f"v{n} = tl.load({text} + {at}, mask=inside, other=0{evict}).to(tl.float32)"
        for n, text in scan.inputs.items()
    ]


def _texts(scan: Scan) -> Texts:
    given = {n: f"v{n}" for n in scan.inputs} | {n: f"s{n}" for n in scan.numbers}
    return Texts(scan.nodes, given, cpp=False)


def _signature(scan: Scan, name: str, more: list[str]) -> list[str]:
    given = [*scan.inputs.values(), *more[:1], *(f"s{n}" for n in scan.numbers), *more[1:]]
    return ["@triton.jit", f"def {name}({', '.join(given)}):"]


def _rows(scan: Scan, chosen: Parameters) -> str:
    """``totals`` sums up pieces of rows where there are few; ``scan`` walks along a piece."""
    backwards = scan.reverse and chosen["backwards"] == "addresses"
    step = ["inside = there & (at < last)"]
    place = "row * length + at"
    order = ["at = start + tl.arange(0, BLOCK)[None, :]"]
    if backwards:  # the row as if it were written from its end
        place = "row * length + (length - 1 - at)"
    value = _texts(scan)
    loads = _loads(scan, place, chosen)
    before = value.lines([scan.before])
    picked = f"tl.where(inside, {value.name(scan.before)}, {_IDENTITY[scan.op]})"
    head = [
        "row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS).to(tl.int64)[:, None]",
        "there = row < outer",
    ]
    sized = ["outer", "length", "piece", "pieces"]
    constants = [f"{each}: tl.constexpr" for each in ("ROWS", "BLOCK", "PIECES")]
    totals = _signature(scan, "totals", ["partial", *sized, *constants])
    totals += [f"    {line}" for line in [
        *head,
        "number = tl.program_id(1).to(tl.int64)",
        "last = tl.minimum(length, (number + 1) * piece)",
        f"total = tl.full([ROWS, BLOCK], {_IDENTITY[scan.op]}, tl.float32)",
        "for start in range(number * piece, last, BLOCK):",
        *[f"    {line}" for line in [*order, *step, *loads, *before,
          f"total {'+' if scan.op == 'sum' else '*'}= {picked}"]],
        f"total = {_total(scan, 'total', 1)}",
        "tl.store(partial + row * pieces + number, total, mask=there)",
    ]]  # fmt: skip
    reverse = ", reverse=True" if scan.reverse and not backwards else ""
    walk = "range(number * piece, last, BLOCK)"
    if reverse:  # from the last step to the first
        walk = "range((last - 1) // BLOCK * BLOCK, number * piece - 1, -BLOCK)"
    stages = f", num_stages={chosen['stages']}" if chosen["stages"] != "1" else ""
    walk = walk.replace("range(", "tl.range(").removesuffix(")") + stages + ")"
    value = _texts(scan)
    before = value.lines([scan.before])
    if (scanned := scan.scanned) is not None:
        value.given[scanned] = "scanned"
    after = value.lines([scan.output])
    function = "cumsum" if scan.op == "sum" else "cumprod"
    # Pieces that come before this one along the scan.
    earlier = "which > number" if reverse else "which < number"
    main = _signature(scan, "scan", ["out", "partial", *sized, *constants])
    main += [f"    {line}" for line in [
        *head,
        "number = tl.program_id(1).to(tl.int64)",
        "last = tl.minimum(length, (number + 1) * piece)",
        f"carry = tl.full([ROWS, 1], {_IDENTITY[scan.op]}, tl.float32)",
        "if PIECES > 1:",
        "    which = tl.arange(0, PIECES)[None, :]",
        f"    earlier = there & (which < pieces) & ({earlier})",
        "    sums = tl.load(partial + row * pieces + which, mask=earlier, "
        f"other={_IDENTITY[scan.op]})",
        f"    carry = {_total(scan, 'sums', 1)}",
        f"for start in {walk}:",
        *[f"    {line}" for line in [
            *order, *step, *loads, *before,
            f"value = {picked}",
            f"scanned = {_JOIN[scan.op].format(f'tl.{function}(value, axis=1{reverse})')}",
            *after,
            f"tl.store(out + {place}, {value.name(scan.output)}, mask=inside)",
            f"carry = {_JOIN[scan.op].format(_total(scan, 'value', 1))}",
        ]],
    ]]  # fmt: skip
    return "\n".join([*totals, "", "", *main])


def _launch_rows(scan: Scan, chosen: Parameters) -> list[str]:
    tensors, numbers = [*scan.inputs.values()], [*scan.numbers.values()]
    block = int(chosen["block"])
    sized = f"outer, length, piece, pieces, ROWS={chosen['rows']}, BLOCK=block"
    sized += f", PIECES=triton.next_power_of_2(pieces), num_warps={chosen['warps']}"
    return [
        f"block = min({block}, max(16, triton.next_power_of_2(length)))",
        f"piece = {max(block, int(chosen['split']))} if outer < {_FEW} else length",
        "pieces = triton.cdiv(length, piece)",
        f"grid = (triton.cdiv(outer, {chosen['rows']}), pieces)",
        "partial = torch.empty("
        f"outer * pieces, dtype=torch.float32, device={scan.around.like}.device)",
        "if pieces > 1:",
        f"    totals[grid]({', '.join([*tensors, 'partial', *numbers])}, {sized})",
        f"scan[grid]({', '.join([*tensors, 'out', *numbers])}, partial, {sized})",
    ]


def _columns(scan: Scan, chosen: Parameters) -> str:
    value = _texts(scan)
    place = "first + at * inner + column"
    loads, before = _loads(scan, place, chosen), value.lines([scan.before])
    picked = f"tl.where(inside, {value.name(scan.before)}, {_IDENTITY[scan.op]})"
    if (scanned := scan.scanned) is not None:
        value.given[scanned] = "scanned"
    after = value.lines([scan.output])
    function = "cumsum" if scan.op == "sum" else "cumprod"
    stages = f", num_stages={chosen['stages']}" if chosen["stages"] != "1" else ""
    at = "step + tl.arange(0, STEPS)[:, None]"
    if scan.reverse:  # as if the column were written from its end
        at = f"length - 1 - ({at})"
    constants = [f"{each}: tl.constexpr" for each in ("STEPS", "BLOCK")]
    lines = _signature(scan, "scan", ["out", "length", "inner", "strips", *constants])
    lines += [f"    {line}" for line in [
        "number = tl.program_id(0).to(tl.int64)",
        "first = number // strips * length * inner",
        "column = number % strips * BLOCK + tl.arange(0, BLOCK)[None, :]",
        f"carry = tl.full([1, BLOCK], {_IDENTITY[scan.op]}, tl.float32)",
        f"for step in tl.range(0, length, STEPS{stages}):",
        *[f"    {line}" for line in [
            f"at = ({at}).to(tl.int64)",
            "inside = (at >= 0) & (at < length) & (column < inner)",
            *loads, *before,
            f"value = {picked}",
            f"scanned = {_JOIN[scan.op].format(f'tl.{function}(value, axis=0)')}",
            *after,
            f"tl.store(out + {place}, {value.name(scan.output)}, mask=inside)",
            f"carry = {_JOIN[scan.op].format(_total(scan, 'value', 0))}",
        ]],
    ]]  # fmt: skip
    return "\n".join(lines)


def _launch_columns(scan: Scan, chosen: Parameters) -> list[str]:
    given = ", ".join([*scan.inputs.values(), "out", *scan.numbers.values()])
    return [
        f"strips = triton.cdiv(inner, {chosen['block']})",
        f"scan[(outer * strips,)]({given}, length, inner, strips, STEPS={chosen['steps']}, "
        f"BLOCK={chosen['block']}, num_warps={chosen['warps']})",
    ]
