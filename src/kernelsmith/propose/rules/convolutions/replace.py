"""Library convolutions of a call: replaced by kernels of the kind ``packed``, or asked for float32.

Convolutions of one form share their kernels; sizes and layouts are passed. Where a call has too
many forms to be compiled in reasonable time, the largest are taken.

Both the library and ``packed`` compute float32 convolutions in TF32, as torch allows by default.
Whether the library does so depends on sizes and layouts, and the layout is what the compiler
changes: a task can be exact where its compiled form is not. Then the library is asked for float32,
and our own kernels split it into parts: ``packed_bf16x6``, ``packed_tf32x3``.
"""

from dataclasses import dataclass, replace
from math import prod
from zlib import crc32

from kernelsmith.propose.rules.compiler.call import Call, Library, Operand, Verbatim
from kernelsmith.propose.rules.convolutions.library import (
    DTYPES,
    library_convolutions,
    listed,
    three,
)
from kernelsmith.propose.rules.graph import Kind, Node, NotRecognised, Shape
from kernelsmith.propose.rules.kinds.neighbours.graph import Chain, Convolution
from kernelsmith.propose.rules.kinds.packed.phases import phases_of
from kernelsmith.propose.rules.kinds.packed.tiles import EXACT, ROUNDING, rounds
from kernelsmith.propose.rules.kinds.packed.triton import helpers_of, kernels_of, launch_of
from kernelsmith.propose.rules.products.tensors import Tensor, Tensors
from kernelsmith.propose.rules.space import Parameter, Parameters, Seed

FLOAT32 = "float32"
_OWN = {"packed": ROUNDING} | {f"packed_{each}": each for each in EXACT[:2]}
"""Kernels of our own, and what they multiply float32 in; plain float32 is left to the library."""
_SPLIT = next(name for name, precision in _OWN.items() if precision == EXACT[0])
_SMALLER: Seed = (("convolution_tile", "128x64"), ("convolution_stages", "3"))
"""What kernels that split float32 begin with; see ``packed.tiles``."""
_MOST_FORMS = 6
_FEW = 16
"""Channels on either side below which tensor cores would be mostly idle, unless neighbours along a
row count as channels."""
_TILES = ("128x128", "128x256", "128x64", "256x64", "64x64")
_LISTS = ("stride", "padding", "dilation", "output_padding")
_ITSELF = Chain(nodes=(Node(kind=Kind.INPUT, text="<x>", shape=Shape.FULL),), made=0, output=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A convolution in a call."""

    at: int
    form: Convolution
    flop: int


def convolution_sites(call: Call) -> tuple[Site, ...]:
    """All that could be done here, of at most so many forms, the most work first among forms."""
    found = (_site(at, step, tensors) for at, step, tensors in library_convolutions(call))
    sites = [each for each in found if each is not None]
    work: dict[Convolution, int] = {}
    for each in sites:
        work[each.form] = work.get(each.form, 0) + each.flop
    taken = sorted(work, key=lambda form: -work[form])[:_MOST_FORMS]
    return tuple(each for each in sites if each.form in taken)


def exact_sites(call: Call) -> tuple[int, ...]:
    """Steps that the library may compute in TF32, and could compute in float32."""
    sites = []
    for at, step, tensors in library_convolutions(call):
        x = tensors.of(step.operands[0]) if len(step.operands) == 2 else None
        given = dict(step.keywords)
        plain = given.get("bias") is None and isinstance(given.get("transposed"), bool)
        # Those of one channel a group are not the library's that knows TF32.
        if x is not None and x.dtype == "float32" and plain and given["groups"] != x.shape[1]:
            sites.append(at)
    return tuple(sites)


def convolution_parameters(call: Call) -> tuple[Parameter, ...]:
    """What can be chosen about a call's convolutions; empty where it has none."""
    sites, exact = convolution_sites(call), exact_sites(call)
    if not sites and not exact:
        return ()
    own = (tuple(_OWN) if exact else ("packed",)) if sites else ()
    choices = ("library", *own, *((FLOAT32,) if exact else ()))
    split = (("packed", (("convolution", _SPLIT), *_SMALLER)),) if sites else ()
    chosen = Parameter(
        name="convolution", choices=choices, default="library", ordered=False,
        safe=FLOAT32 if exact else None,
        rounded=(("library", (("convolution", FLOAT32),)), *split) if exact else (),
        why="whose convolutions: the library's, or products over copies with channels side by side",
    )  # fmt: skip
    if not sites:
        return (chosen,)
    return (
        chosen,
        Parameter(name="convolution_tile", choices=_TILES, default=_TILES[0],
                  why="pixels by channels of a program", ordered=False),
        Parameter(name="convolution_stages", choices=("2", "3", "4", "5"), default="4",
                  why="tiles in flight"),
    )  # fmt: skip


def convolution_seeds(call: Call) -> tuple[Seed, ...]:
    """What differs from the defaults, best guess first; not only kernels that may be too coarse."""
    if not convolution_sites(call):
        return ()
    own = ("convolution", "packed")
    rounded, large = (own,), (own, ("convolution_tile", "128x256"), ("convolution_stages", "3"))
    if not exact_sites(call):
        return (rounded, large)
    split = [(("convolution", name), *_SMALLER) for name in _OWN if name != "packed"]
    return (rounded, split[0], large, *split[1:])


def convolved(call: Call, chosen: Parameters) -> Call:
    """The call with its convolutions as chosen; itself where they are left to the library."""
    if chosen["convolution"] == FLOAT32:
        return _in_float32(call)
    sites = convolution_sites(call) if chosen["convolution"] in _OWN else ()
    if not sites:
        return call
    # By what they are: the same in every call of a candidate, which share their texts.
    names = {each.form: f"_{crc32(repr(each.form).encode()):08x}" for each in sites}
    steps = list(call.steps)
    for site in sites:
        step = steps[site.at]
        assert isinstance(step, Library)
        given: list[Operand] = [Verbatim(text=repr(step.shape)), Verbatim(text=repr(step.stride))]
        target = f"convolution{names[site.form]}"
        operands = (*step.operands[:2], *given)
        steps[site.at] = replace(step, target=target, operands=operands, keywords=())
    schedule = _schedule(chosen)
    texts = helpers_of(schedule)
    for form, name in names.items():
        texts += [*kernels_of(form, schedule, name), _function(form, schedule, name)]
    prelude = "\n\n\n".join([*([call.prelude] if call.prelude else []), *texts])
    allowed = [("torch.backends.cudnn.allow_tf32", "True")] if rounds(schedule) else []
    conditions = (*call.conditions, *allowed)
    return replace(call, steps=tuple(steps), prelude=prelude, conditions=conditions)


def _in_float32(call: Call) -> Call:
    """The same convolutions of the library, without leave to round what they multiply."""
    steps = list(call.steps)
    for at in exact_sites(call):
        step = steps[at]
        assert isinstance(step, Library)
        given = dict(step.keywords)
        turned = given["transposed"] is True
        names = ["padding", *(["output_padding"] if turned else []), "stride", "dilation", "groups"]
        # Last: no measuring of variants, any order of sums, and no TF32.
        operands = (*step.operands, *(given[name] for name in names), False, False, False)
        target = f"torch.ops.aten.cudnn_convolution{'_transpose' if turned else ''}.default"
        steps[at] = replace(step, target=target, operands=operands, keywords=())
    return replace(call, steps=tuple(steps))


def _schedule(chosen: Parameters) -> dict[str, str]:
    """The choices as the kind ``packed`` has them."""
    pixels, channels = chosen["convolution_tile"].split("x")
    precision = _OWN[chosen["convolution"]]
    # Parts of factors take the registers of more warps.
    few = 64 * 64 if precision in EXACT else 128 * 64
    return {
        "precision": precision, "pixels": pixels, "channels": channels, "depth": "32",
        "warps": "4" if int(pixels) * int(channels) <= few else "8",
        "stages": chosen["convolution_stages"],
    }  # fmt: skip


def _function(form: Convolution, schedule: Parameters, name: str) -> str:
    """Three launches behind one call."""
    lines = [
        f"def convolution{name}(x, weight, shape, stride):",
        f"    ones = (1,) * {3 - form.ndim}",
        "    sizes, outs = (*ones, *x.shape[2:]), (*ones, *shape[2:])",
        f"    channels, groups = shape[1], {_groups(form)}",
        "    out = torch.empty_strided(shape, stride, dtype=x.dtype, device=x.device)",
        *(f"    {line}" for line in launch_of(form, schedule, name)),
        "    return out",
    ]
    return "\n".join(lines)


def _groups(form: Convolution) -> str:
    if not form.grouped:
        return "1"
    return "shape[1] // weight.shape[1]" if form.turned else "x.shape[1] // weight.shape[1]"


def _site(at: int, step: Library, tensors: Tensors) -> Site | None:
    given = dict(step.keywords)
    if len(step.operands) != 2 or given.get("bias") is not None or step.shape is None:
        return None
    x, weight = (tensors.of(each) for each in step.operands)
    if x is None or weight is None or step.stride is None:
        return None
    ndim, turned, groups = len(x.shape) - 2, given["transposed"], given["groups"]
    if not isinstance(turned, bool) or not isinstance(groups, int) or not 1 <= ndim <= 3:
        return None
    if any(len(listed(given[name])) != ndim for name in _LISTS):
        return None
    into, out = x.shape[1] // groups, step.shape[1] // groups
    size, far = weight.shape[2:], listed(given["dilation"])
    few = into < _FEW and groups == 1 and not turned and far[-1] == 1
    if x.dtype not in DTYPES or out < _FEW or into * (size[-1] if few else 1) < _FEW // 2:
        return None
    form = Convolution(
        ndim=ndim, x="x", path="", turned=turned, size=three(size, 1),
        stride=three(listed(given["stride"]), 1), padding=three(listed(given["padding"]), 0),
        more=three(listed(given["output_padding"]), 0),
        step=three(far, 1), direct=False, thin=False, few=few, grouped=groups != 1,
        bias=False, before=_ITSELF, after=_ITSELF, plain="", evaluated=(),
    )  # fmt: skip
    if not _fits(form, x, step.shape):
        return None
    pixels = x if turned else Tensor(shape=step.shape, stride=(), dtype="", root="")
    flop = 2 * prod(pixels.shape) // pixels.shape[1] * into * groups * out * prod(size)
    return Site(at=at, form=form, flop=flop)


def _fits(form: Convolution, x: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether places fit into 32 bits, and its phases are known."""
    try:
        phases_of(form)
    except NotRecognised:
        return False
    pixels = max(prod(each) // each[1] for each in (x.shape, shape))
    return pixels < 2**29 and max(prod(x.shape[1:]), prod(shape[1:])) < 2**31
