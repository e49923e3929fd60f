"""Library convolutions of one channel a group, done by a kernel of our own.

Where such a convolution stands alone, on an H200 a window kernel was 2.8 to 5.5 times as fast as
the library's (level 1 / 82, 83 and 85): it is traffic of memory, and the library is slow at it in
float32. Outputs are numbered in the order of their memory, whatever the layout, so that planes of
seven by seven fill programs as well as large ones.
"""

from collections.abc import Set
from dataclasses import dataclass, replace
from math import prod
from zlib import crc32

from kernelsmith.propose.rules.compiler.call import Call, Library, Verbatim
from kernelsmith.propose.rules.convolutions.library import (
    DTYPES,
    library_convolutions,
    listed,
    three,
)
from kernelsmith.propose.rules.products.factors import dense
from kernelsmith.propose.rules.products.tensors import Tensor, Tensors
from kernelsmith.propose.rules.space import Parameter, Parameters, Seed

OWN, LIBRARY = "windows", "library"
_MOST_TAPS = 81
_BLOCK = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What the kernel's text depends on; rows first, one for lines."""

    size: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    step: tuple[int, int]
    many: int
    """Outputs of each channel."""

    @property
    def name(self) -> str:
        """The same in every call of a candidate, which share their texts."""
        return f"depthwise_{crc32(repr(self).encode()):08x}"


def depthwise_sites(call: Call) -> dict[int, Window]:
    """Steps that could be done here."""
    # What a library has laid out may lie otherwise when it runs.
    given = {each.name for each in call.arguments} | {each.name for each in call.constants}
    found = {at: _window(step, tensors, given) for at, step, tensors in library_convolutions(call)}
    return {at: window for at, window in found.items() if window is not None}


def _window(step: Library, tensors: Tensors, weights: Set[str]) -> Window | None:
    given = dict(step.keywords)
    if len(step.operands) != 2 or given.get("bias") is not None or given["transposed"] is not False:
        return None
    x, weight = (tensors.of(each) for each in step.operands)
    if x is None or weight is None or step.shape is None or step.stride is None:
        return None
    ndim = len(x.shape) - 2
    if not 1 <= ndim <= 2 or given["groups"] != x.shape[1] or weight.shape[1] != 1:
        return None
    if any(len(listed(given[name])) != ndim for name in ("stride", "padding", "dilation")):
        return None
    if x.dtype not in DTYPES or weight.dtype != x.dtype:
        return None
    if weight.root not in weights or not _in_order(weight):
        return None
    if prod(step.shape) >= 2**31 or prod(weight.shape[2:]) > _MOST_TAPS:
        return None
    if max(_extent(x.shape, x.stride), _extent(step.shape, step.stride)) >= 2**31:
        return None
    return Window(
        size=_two(weight.shape[2:], 1), stride=_two(listed(given["stride"]), 1),
        padding=_two(listed(given["padding"]), 0), step=_two(listed(given["dilation"]), 1),
        many=step.shape[1] // x.shape[1],
    )  # fmt: skip


def _extent(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """How far its last element lies behind its first one."""
    return sum((n - 1) * far for n, far in zip(shape, stride, strict=True))


def _in_order(weight: Tensor) -> bool:
    """Whether taps lie one after the other, channel by channel."""
    layout = zip(weight.shape, weight.stride, dense(weight.shape), strict=True)
    return all(size == 1 or stride == wanted for size, stride, wanted in layout)


def _two(values: tuple[int, ...], missing: int) -> tuple[int, int]:
    _, y, x = three(values, missing)
    return y, x


def depthwise_parameters(call: Call) -> tuple[Parameter, ...]:
    """What can be chosen about a call's convolutions of one channel a group."""
    if not depthwise_sites(call):
        return ()
    return (
        Parameter(name="depthwise", choices=(OWN, LIBRARY), default=OWN, ordered=False,
                  why="whose convolutions of one channel a group"),
    )  # fmt: skip


def depthwise_seeds(call: Call) -> tuple[Seed, ...]:
    """What differs from the defaults, best guess first."""
    return ((("depthwise", LIBRARY),),) if depthwise_sites(call) else ()


def windowed(call: Call, chosen: Parameters) -> Call:
    """The call with these convolutions as chosen; itself where they are left to the library."""
    sites = depthwise_sites(call) if chosen["depthwise"] == OWN else {}
    if not sites:
        return call
    steps = list(call.steps)
    for at, window in sites.items():
        step = steps[at]
        assert isinstance(step, Library)
        given = [Verbatim(text=repr(step.shape)), Verbatim(text=repr(step.stride))]
        operands = (*step.operands[:2], *given)
        steps[at] = replace(step, target=window.name, operands=operands, keywords=())
    texts = [text for each in dict.fromkeys(sites.values()) for text in _texts(each)]
    prelude = "\n\n\n".join([*([call.prelude] if call.prelude else []), *texts])
    return replace(call, steps=tuple(steps), prelude=prelude)


def _texts(window: Window) -> list[str]:
    name = window.name
    kernel = [
        "@triton.jit",
        f"def {name}_kernel(",
        "    x, weight, out, count, channels, height, width, heights, widths, from_n, from_c,",
        "    from_y, from_x, to_n, to_c, to_y, to_x, LAST: tl.constexpr, BLOCK: tl.constexpr,",
        "):",
        *(f"    {line}" for line in _body(window)),
    ]
    function = [
        f"def {name}(x, weight, shape, stride):",
        '    """Each channel by taps of its own."""',
        "    out = torch.empty_strided(shape, stride, dtype=x.dtype, device=x.device)",
        "    ones, places = (1,) * (4 - x.dim()), (0,) * (4 - x.dim())",
        "    count, sizes = out.numel(), (*ones, *x.shape[2:], *ones, *shape[2:])",
        "    near = (*x.stride()[:2], *places, *x.stride()[2:])",
        "    far = (*stride[:2], *places, *stride[2:])",
        f"    {name}_kernel[(triton.cdiv(count, {_BLOCK}),)](",
        "        x, weight, out, count, shape[1], *sizes, *near, *far,",
        f"        LAST=stride[1] == 1, BLOCK={_BLOCK}, num_warps=4,",
        "    )",
        "    return out",
    ]
    return ["\n".join(kernel), "\n".join(function)]


def _body(window: Window) -> list[str]:
    (_, wide), (down, right) = window.size, window.stride
    lines = [
        "spot = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
        "there = spot < count",
        "if LAST:",
        "    channel, rest = spot % channels, spot // channels",
        "    cx, rest = rest % widths, rest // widths",
        "    cy, number = rest % heights, rest // heights",
        "else:",
        "    cx, rest = spot % widths, spot // widths",
        "    cy, rest = rest % heights, rest // heights",
        "    channel, number = rest % channels, rest // channels",
        f"start = x + number * from_n + {_over('channel', window.many)} * from_c",
        f"taps = weight + channel * {prod(window.size)}",
        "value = tl.zeros([BLOCK], tl.float32)",
    ]
    for ky in range(window.size[0]):
        y = ky * window.step[0] - window.padding[0]
        lines.append(f"at_y = cy * {down} + {y}" if y >= 0 else f"at_y = cy * {down} - {-y}")
        lines.append("row = there & (at_y >= 0) & (at_y < height)")
        for kx in range(wide):
            x = kx * window.step[1] - window.padding[1]
            lines += [
                f"at_x = cx * {right} + {x}" if x >= 0 else f"at_x = cx * {right} - {-x}",
                "inside = row & (at_x >= 0) & (at_x < width)",
                "v = tl.load(start + at_y * from_y + at_x * from_x, mask=inside, other=0.0)",
                f"w = tl.load(taps + {ky * wide + kx})",
                "value += v.to(tl.float32) * w.to(tl.float32)",
            ]
    place = "out + number * to_n + channel * to_c + cy * to_y + cx * to_x"
    return [*lines, f"tl.store({place}, value, mask=there)"]


def _over(name: str, many: int) -> str:
    return name if many == 1 else f"({name} // {many})"
