"""What tiles added up, put together per image, and all that needs no pixels."""

from kernelsmith.propose.rules.kinds.neighbours.triton import wrapped
from kernelsmith.propose.rules.kinds.packed import sums
from kernelsmith.propose.rules.kinds.packed.parts import (
    extent_of,
    kernel,
    numbers_of,
    tensors_of,
    values_of,
)
from kernelsmith.propose.rules.kinds.packed.stages import MOMENTS, Stages

LEAST = 16
"""Shares that are added side by side, at least."""


def _moments(stages: Stages, stage: int) -> dict[int, tuple[int, str]]:
    """Moments that a stage finishes: by node, the argument and the number of groups."""
    nodes = stages.reduced.nodes
    return {
        n: (nodes[n].args[0], nodes[n].text)
        for n in stages.summed(stage - 1)
        if nodes[n].op in MOMENTS
    }


def moments_launch(stages: Stages, stage: int) -> list[str]:
    """Lines of Python that join the moments of pieces."""
    lines: list[str] = []
    done: set[tuple[int, str]] = set()
    for n, (arg, groups) in _moments(stages, stage).items():
        if (arg, groups) in done:
            continue
        done.add((arg, groups))
        channels = "channels" if "c" in stages.reduced.layouts[arg] else "1"
        lines += [
            f"parts = {groups}",
            f"t{n} = torch.empty((2, batch * parts), dtype=torch.float32, device=x.device)",
            f"BG = triton.next_power_of_2({channels} // parts)",
            *wrapped("joined[(batch, parts)](", [
                f"a{arg}", f"m{arg}", "lengths", f"t{n}[0]", f"t{n}[1]", channels, "parts",
                "pieces", extent_of(stages, arg), f"BLOCK=max({LEAST}, 4096 // BG)", "BG=BG",
                "num_warps=4",
            ]),
        ]  # fmt: skip
    return lines


def _finish_names(stages: Stages, stage: int) -> dict[str, str]:
    nodes = stages.finish_nodes(stage)
    moments = _moments(stages, stage)
    tensors = tensors_of(stages, nodes, stages.loads(nodes, stage - 1))
    numbers = numbers_of(stages, nodes)
    for n in stages.summed(stage - 1):
        if n not in nodes:
            continue
        if n in moments:
            holder = next(k for k, key in moments.items() if key == moments[n])
            which = MOMENTS.index(stages.reduced.nodes[n].op)
            tensors[f"m{n}"] = f"t{holder}[{which}]"
            if "c" in stages.reduced.layouts[n]:
                numbers[f"g{n}"] = moments[n][1]
        else:
            tensors[f"a{n}"] = f"a{n}"
    for n in stages.finish_wants(stage):
        name = "out" if n == stages.reduced.output else f"e{n}"
        tensors[f"to{n}"] = name
    counts = {"channels": "channels", "pixels": "space", "pieces": "pieces"}
    if stages.reduced.window is not None:
        counts["windows"] = "windows"
    return tensors | counts | numbers


def finish(stages: Stages, stage: int) -> str:
    """What tiles added up, and all that needs no pixels."""
    reduced, nodes = stages.reduced, stages.finish_nodes(stage)
    texts, loads = values_of(stages, nodes, loaded=stages.loads(nodes, stage - 1))
    moments = _moments(stages, stage)
    lines = [
        "image = tl.program_id(0).to(tl.int64)",
        "co = tl.program_id(1) * BC + tl.arange(0, BC)",
        "known = co < channels",
        *loads,
    ]
    for n in stages.summed(stage - 1):
        if n not in nodes:
            continue
        if n not in moments:
            lines += sums.finished(stages, n)
        elif "c" in reduced.layouts[n]:
            at = f"m{n} + image * g{n} + co // (channels // g{n})"
            lines.append(f"v{n} = tl.load({at}, mask=known, other=0.0)[None, :]")
        else:
            lines.append(f"v{n} = tl.load(m{n} + image)")
        texts.given[n] = f"v{n}"
    lines += sums.computed(stages, texts, nodes)
    for n in stages.finish_wants(stage):
        value = texts.name(n)
        if "c" in reduced.layouts[n]:
            at = f"to{n} + (image * channels + co)[None, :]"
            lines.append(f"tl.store({at}, {value}, mask=known[None, :])")
        else:
            lines.append(f"tl.store(to{n} + image + tl.zeros([1, 1], tl.int64), {value})")
    names = list(_finish_names(stages, stage))
    return kernel(f"finish{stage}", names, ["BLOCK", "BC"], lines)


def finish_launch(stages: Stages, stage: int) -> list[str]:
    """Lines of Python that finish a stage."""
    reduced, lines = stages.reduced, []
    for n in stages.finish_wants(stage):
        if n != reduced.output:
            size = "batch" + " * channels" * ("c" in reduced.layouts[n])
            lines.append(f"e{n} = torch.empty({size}, dtype=torch.float32, device=x.device)")
    whole = stages.whole_finish(stage)
    wide = "triton.next_power_of_2(channels)"
    lines += [
        f"BC = {wide}" if whole else f"BC = min(32, {wide})",
        "grid = (batch, triton.cdiv(channels, BC))",
    ]
    given = list(_finish_names(stages, stage).values())
    block = f"BLOCK=max({LEAST}, 4096 // BC)"
    tail = [block, "BC=BC", f"num_warps={8 if whole else 4}"]
    return [*lines, *wrapped(f"finish{stage}[grid](", [*given, *tail])]
