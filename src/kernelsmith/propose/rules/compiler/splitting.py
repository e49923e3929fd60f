"""Where the largest of a long row is: the row is cut into parts, which a second kernel joins.

The compiler cuts long sums and maxima, but not what asks for a place: ``argmax`` of a whole tensor
is one program there, 0.01 of eager's speed on an H200 (67 million elements).
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernelsmith.propose.rules.compiler.call import (
    Allocate,
    Call,
    Drop,
    Kernel,
    Launch,
    Named,
    Operand,
    Schedule,
    Step,
)
from kernelsmith.propose.rules.compiler.schedules import Hints, chosen
from kernelsmith.propose.rules.compiler.searching import (
    Search,
    Whole,
    is_load,
    needed,
    of_end,
    of_loop,
    pointers,
    read_search,
    reduces,
    stored,
)

_PROGRAMS = 512
"""Wanted of the first kernel: a few for each multiprocessor of a large GPU."""
_BUSY = 256
"""Programs that are enough without any of this."""
_LANES = 32
"""Rows that lie side by side, for one program."""
_SHORTEST = 2048
"""Elements of a row's part, at least; of rows that lie side by side, ``_LANES`` times less."""
_LEAST = 100_000
"""Elements of one program from which a second launch is worth it: reading half a megabyte takes a
multiprocessor three times as long as a launch, and short rows are done before."""
_POINTERS = {"float32": "*fp32", "float64": "*fp64", "int32": "*i32", "int64": "*i64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    rows: int
    length: int
    parts: int

    @property
    def step(self) -> int:
        """Elements of a part."""
        return -(-self.length // self.parts)

    @property
    def programs(self) -> int:
        """Parts of all rows."""
        return self.rows * self.parts

    @property
    def is_masked(self) -> bool:
        """Whether the last block of parts goes beyond them: blocks are powers of two."""
        return self.programs & (self.programs - 1) != 0

    @property
    def ends(self) -> list[str]:
        """What holds of elements of a part, where a block goes beyond it or it beyond the row."""
        whole = self.step * self.parts == self.length
        even = whole and self.step & (self.step - 1) == 0
        inside = [] if even else ["(r0_step < r0_numel)"]
        return inside if whole else [*inside, f"(r0_index < {self.length})"]


def split(call: Call) -> Call:
    """The call with its long searches cut into parts; itself where there are none."""
    taken = {each.name for each in call.kernels}
    made: dict[str, tuple[Kernel, Kernel, Search, _Sizes]] = {}
    for kernel in call.kernels:
        try:
            read = read_search(kernel)
            sizes = _sizes(kernel, read)
        except Whole:
            continue
        part = _part(kernel, read, sizes, _free(f"{kernel.name}_part", taken))
        join = _join(kernel, read, sizes, _free(f"{kernel.name}_join", taken))
        made[kernel.name] = part, join, read, sizes
    if not made:
        return call
    steps: list[Step] = []
    for number, step in enumerate(call.steps):
        if isinstance(step, Launch) and step.kernel in made:
            steps += _launched(step, number, *made[step.kernel])
        else:
            steps.append(step)
    kernels: list[Kernel] = []
    for kernel in call.kernels:
        kernels += made[kernel.name][:2] if kernel.name in made else (kernel,)
    return replace(call, kernels=tuple(kernels), steps=tuple(steps))


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _sizes(kernel: Kernel, read: Search) -> _Sizes:
    """How it is cut.

    Raises:
        Whole: There are programs enough, or too little to do.
    """
    sizes = dict(kernel.sizes)
    if set(sizes) - {"x", "r0_"} or "r0_" not in sizes or kernel.grid != "Grid1D":
        raise Whole
    rows, length = sizes.get("x", 1), sizes["r0_"]
    lanes = min(rows, _LANES) if read.is_outer else 1
    programs = -(-rows // lanes)
    parts = 1
    while 2 * parts * programs <= _PROGRAMS and lanes * length >= 2 * parts * _SHORTEST:
        parts *= 2
    if programs >= _BUSY or lanes * length < _LEAST or parts == 1 or rows * length >= 1 << 31:
        raise Whole
    return _Sizes(rows=rows, length=length, parts=parts)


def _held(read: Search) -> list[str]:
    return [f"part_ptr{number}" for number, _ in enumerate(read.kept)]


def _part(kernel: Kernel, read: Search, sizes: _Sizes, name: str) -> Kernel:
    """The kernel that looks through parts of rows, parts in turn for rows that lie side by side."""
    lines = [
        f"xnumel = {sizes.programs}",
        f"r0_numel = {sizes.step}",
        "part_index = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]",
    ]
    if sizes.rows > 1:
        lines.append(f"xindex = part_index % {sizes.rows}")
    elif "xindex" in kernel.text:
        lines.append("xindex = 0 * part_index")
    turn = "part_index" if sizes.rows == 1 else f"part_index // {sizes.rows}"
    lines.append(f"first = {turn} * r0_numel")
    head = needed(read.before, [read.loop])
    if sizes.is_masked or any("xmask" in stored(each) for each in head):
        lines.append("inside = part_index < xnumel")
    for each in head:
        lines.append("xmask = inside" if "xmask" in stored(each) else ast.unparse(each))
    lines += [ast.unparse(each) for each in read.begins]
    lines.append("for r0_offset in tl.range(0, r0_numel, R0_BLOCK):")
    lines += [f"    {each}" for each in _steps(read, sizes)]
    mask = "inside" if sizes.is_masked else "None"
    for each in read.joined:
        lines += _stored_parts(each, read, mask)
    text = _function(name, [*of_loop(read), *_held(read)], ["XBLOCK", "R0_BLOCK"], lines)
    sized = {"x": sizes.programs, "r0_": sizes.step}
    hint = "OUTER" if read.is_outer else "INNER"
    launch = chosen(Hints(schedule="reduction", sizes=sized, reduction=hint, reductions=1))
    return _made(kernel, name, text, "reduction", sized, ("XBLOCK", "R0_BLOCK"), launch,
                 (*_types(kernel, of_loop(read)), *_held_types(read)))  # fmt: skip


def _steps(read: Search, sizes: _Sizes) -> list[str]:
    """The loop's body for one part of a row."""
    carried = {each.name for each in read.kept}
    has_mask = any("r0_mask" in stored(each) for each in read.loop.body)
    ends = sizes.ends
    missing = (["inside"] if sizes.is_masked else []) + (["r0_mask"] if ends else [])
    lines = []
    for each in read.loop.body:
        text = ast.unparse(each)
        if text == "r0_index = r0_offset + r0_base":
            lines += ["r0_step = r0_offset + r0_base", "r0_index = first + r0_step"]
            if not has_mask and ends:
                lines.append(f"r0_mask = {' & '.join(ends)}")
        elif "r0_mask" in stored(each):
            lines.append(f"r0_mask = {' & '.join(ends) or 'r0_step < r0_numel'}")
        else:
            text = ast.unparse(_masked(each, missing))
            if not has_mask and ends and carried & set(stored(each)):
                (name,) = carried & set(stored(each))
                value = text.partition(" = ")[2]
                text = f"{name} = tl.where(r0_mask, {value}, {name})"
            lines.append(text)
    return lines


def _masked(node: ast.stmt, names: list[str]) -> ast.stmt:
    """The same with loads that read nothing outside."""
    made = ast.parse(ast.unparse(node)).body[0]
    for each in ast.walk(made):
        if not is_load(each) or not names:
            continue
        assert isinstance(each, ast.Call)
        given = ast.unparse(each.args[1]) if len(each.args) > 1 else "None"
        known = {n.id for n in ast.walk(ast.parse(given)) if isinstance(n, ast.Name)}
        parts = [] if given == "None" else [f"({given})"]
        parts += [name for name in names if name not in known]
        each.args[1:2] = [ast.parse(" & ".join(parts), mode="eval").body]
        if not any(keyword.arg == "other" for keyword in each.keywords):
            each.keywords.append(ast.keyword(arg="other", value=ast.Constant(value=0)))
    return made


def _stored_parts(node: ast.Assign, read: Search, mask: str) -> list[str]:
    """What a part found, by the statement that reduces it."""
    call = next(n for n in ast.walk(node) if reduces(n))
    assert isinstance(call, ast.Call)
    place = {each.name: held for each, held in zip(read.kept, _held(read), strict=True)}
    kept = [ast.unparse(each) for each in call.args[:-1]]
    lines = [f"{', '.join(f'found{each}' for each in kept)} = {ast.unparse(call)}"]
    return lines + [
        f"tl.store({place[each]} + part_index, found{each}[:, None], {mask})" for each in kept
    ]


def _join(kernel: Kernel, read: Search, sizes: _Sizes, name: str) -> Kernel:
    """The kernel that goes over what the parts found, and does what the compiler's ends with."""
    head = needed(read.before, read.after)
    own = [each for each in read.function.body if set(stored(each)) & {"xnumel"}]
    one = [each for each in read.function.body if set(stored(each)) & {"xoffset", "xindex"}]
    masked = any("xmask" in stored(each) for each in read.before)
    xmask = [each for each in read.before if "xmask" in stored(each) and each not in head]
    lines = [f"R0_BLOCK: tl.constexpr = {sizes.parts}"]
    lines += [ast.unparse(each) for each in (*own, *one, *xmask, *head)]
    along = "tl.arange(0, R0_BLOCK)[None, :]"
    lines.append(f"parts = {along}" if sizes.rows == 1 else f"parts = xindex + {sizes.rows} * "
                 f"{along}")  # fmt: skip
    for place, each in zip(_held(read), read.kept, strict=True):
        mask = "xmask" if masked else "None"
        found = f"tl.load({place} + parts, {mask})"
        lines.append(f"{each.name} = tl.broadcast_to({found}, [XBLOCK, R0_BLOCK])")
    lines += [ast.unparse(each) for each in read.after]
    text = _function(name, [*_held(read), *of_end(read)], ["XBLOCK"], lines)
    sized = {"x": sizes.rows, "r0_": sizes.parts}
    launch = chosen(Hints(schedule="persistent", sizes=sized, reduction="DEFAULT", reductions=1))
    types = (*_held_types(read), *_types(kernel, of_end(read)))
    return _made(kernel, name, text, "persistent", sized, ("XBLOCK",), launch, types)


def _function(name: str, tensors: list[str], blocks: list[str], lines: list[str]) -> str:
    given = ", ".join([*tensors, *(f"{each}: tl.constexpr" for each in blocks)])
    body = "\n".join(f"    {line}" for each in lines for line in each.splitlines())
    return ast.unparse(ast.parse(f"@triton.jit\ndef {name}({given}):\n{body}"))


def _types(kernel: Kernel, tensors: list[str]) -> list[tuple[str, str]]:
    known = dict(kernel.types)
    return [(each, known.get(each, "*fp32")) for each in tensors]


def _held_types(read: Search) -> list[tuple[str, str]]:
    kept = zip(_held(read), read.kept, strict=True)
    return [(place, _POINTERS[each.dtype]) for place, each in kept]


def _made(
    kernel: Kernel, name: str, text: str, schedule: Schedule, sizes: dict[str, int],
    blocks: tuple[str, ...], launch: dict[str, int], types: tuple[tuple[str, str], ...],
) -> Kernel:  # fmt: skip
    settings = (*blocks, "num_warps", "num_stages")
    return replace(
        kernel, name=name, text=text, schedule=schedule, sizes=tuple(sizes.items()),
        blocks=blocks, defaults=tuple((each, launch.get(each, 1)) for each in settings),
        types=(*types, *((each, "constexpr") for each in blocks)),
    )  # fmt: skip


def _launched(
    step: Launch, number: int, part: Kernel, join: Kernel, read: Search, sizes: _Sizes
) -> Iterator[Step]:
    """Memory for what parts find, and both launches."""
    # Tensors come first.
    known: dict[str, Operand] = dict(zip(pointers(read.function), step.operands, strict=False))
    held = [f"found{number}_{at}" for at, _ in enumerate(read.kept)]
    shape = (sizes.parts, sizes.rows)
    for name, each in zip(held, read.kept, strict=True):
        yield Allocate(name=name, shape=shape, stride=(sizes.rows, 1), dtype=each.dtype)
    buffers = tuple(Named(name=each) for each in held)
    first = tuple(known[each] for each in of_loop(read))
    yield Launch(kernel=part.name, operands=(*first, *buffers))
    last = tuple(known[each] for each in of_end(read))
    yield Launch(kernel=join.name, operands=(*buffers, *last))
    for name in held:
        yield Drop(name=name)
