"""One more pass over the pixels that a convolution kept, once sums over all of them are known."""

from math import prod

from kernelsmith.propose.rules.kinds.neighbours.triton import wrapped
from kernelsmith.propose.rules.kinds.packed import sums
from kernelsmith.propose.rules.kinds.packed.parts import (
    extent_of,
    kept_in,
    kernel,
    numbers_of,
    room_for,
    shares,
    tensors_of,
    values_of,
)
from kernelsmith.propose.rules.kinds.packed.stages import Stages
from kernelsmith.propose.rules.kinds.sizes import Three

AGAIN = 8192
"""Elements of a tile that holds all channels."""


def _again_names(stages: Stages, stage: int) -> dict[str, str]:
    nodes = stages.tile_nodes(stage)
    tensors = {"kept": kept_in(stages)} | tensors_of(stages, nodes, stages.loads(nodes, stage))
    tensors |= shares(stages, stage)
    if stage == stages.last:
        tensors["out"] = "out"
    assert stages.kept is not None
    numbers = {"channels": "channels", "pixels": extent_of(stages, stages.kept)}
    if stages.windowed(stage):
        numbers |= {f"n{a}": f"outs[{i}]" for i, a in enumerate("zyx")}
    return tensors | numbers | numbers_of(stages, nodes)


def again(stages: Stages, stage: int) -> str:
    """One more pass over what was kept."""
    reduced, nodes = stages.reduced, stages.tile_nodes(stage)
    assert stages.kept is not None
    texts, loads = values_of(stages, nodes, loaded=stages.loads(nodes, stage))
    window = reduced.window if stages.windowed(stage) else None

    def place(n: int, plane: str, pixel: str) -> tuple[str, str]:
        if "c" in reduced.layouts[n]:
            return (f"((image * channels + co) * {plane})[None, :] + {pixel}[:, None]",
                    "exists[:, None] & known[None, :]")  # fmt: skip
        return f"(image * {plane} + {pixel})[:, None]", "exists[:, None]"

    at, there = place(stages.kept, *(("plane", "spot") if window else ("pixels", "pixel")))
    lines = [
        *(_trimmed(window) if window else []),
        "pieces = tl.cdiv(pixels, BP)",
        "first = 0",
        "block = tl.program_id(0) % pieces",
        "image = (tl.program_id(0) // pieces).to(tl.int64)",
        "pixel = block * BP + tl.arange(0, BP)",
        "exists = pixel < pixels",
        *([*sums.by_window(window), "spot = (jz * rows + jy) * line + jx"] if window else []),
        "co = tl.program_id(1) * BC + tl.arange(0, BC)",
        "known = co < channels",
        f"value = tl.load(kept + {at}, mask={there}, other=0.0).to(tl.float32)",
        *loads,
    ]
    texts.given[stages.kept] = "value"
    lines += sums.computed(stages, texts, nodes)
    lines += sums.of_windows(window) if window else []
    lines += sums.pieces(stages, texts, stage)
    if stage == stages.last:
        at, there = place(reduced.output, "pixels", "pixel")
        lines.append(f"tl.store(out + {at}, {texts.name(reduced.output)}, mask={there})")
    names = list(_again_names(stages, stage))
    return kernel(f"again{stage}", names, ["BP", "BC"], lines)


def _trimmed(window: Three) -> list[str]:
    """Lines that leave out what lies beside windows; it still lies in memory."""
    return [
        "plane, rows, line = pixels, ny, nx",
        *(f"n{a} = n{a} // {size} * {size}" for a, size in zip("zyx", window, strict=True)),
        "pixels = nz * ny * nx",
    ]


def again_launch(stages: Stages, stage: int) -> list[str]:
    """Lines of Python that make the pass."""
    whole = stages.whole(stage)
    layouts = stages.reduced.layouts
    wide = any("c" in layouts[n] for n in stages.tile_nodes(stage) if stages.spatial(n))
    across = "channels" if wide and not whole else "1"
    assert stages.kept is not None
    space = extent_of(stages, stages.kept)
    if stages.windowed(stage):
        space = f"windows * {prod(stages.reduced.window or ())}"
    lines = [
        "BC = triton.next_power_of_2(channels)" if whole else "BC = 1",
        f"BP = {AGAIN} // BC" if whole else f"BP = min(1024, triton.next_power_of_2({space}))",
        f"pieces = triton.cdiv({space}, BP)",
        *room_for(stages, stage),
        f"grid = (batch * pieces, {across})",
    ]
    given = list(_again_names(stages, stage).values())
    return [
        *lines, *wrapped(f"again{stage}[grid](", [*given, "BP=BP", "BC=BC", "num_warps=4"]),
    ]  # fmt: skip
