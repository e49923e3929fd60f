"""What graphs compute in float64, and whether two of them compute the same."""

import torch

from kernelsmith.propose.rules.rewrite.read import Traced
from kernelsmith.propose.rules.rewrite.write import statements

FINITE = ("normal", "large", "tiny", "zeros", "some zeros", "whole", "wide", "near")
INFINITE = ("infinities", "one infinity", "one nan")
KINDS = FINITE + INFINITE
_ODD = (torch.inf, -torch.inf, torch.nan)


def values_of(shape, kind, generator):
    """Inputs of one kind: finite ones of many sizes, and such with infinities or NaN."""

    def pick(high, size=shape):
        return torch.randint(0, high, size, generator=generator)

    drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
    match kind:
        case "large":
            return drawn * 1e3
        case "tiny":
            return drawn * 1e-3
        case "zeros":
            return drawn * 0
        case "some zeros":
            return drawn * (pick(2) > 0)
        case "whole":
            return drawn.round()
        case "wide":
            return drawn * 10 ** (torch.rand(shape, generator=generator) * 4 - 2)
        case "near":  # close together: where a function has a jump, both sides of it
            return drawn * 0.1 + pick(5, ()) - 1
        case "infinities":
            chosen = pick(12)
            for number, value in enumerate(_ODD[:2]):
                drawn = torch.where(chosen == number, value, drawn)
        case "one infinity" | "one nan":
            value = _ODD[int(pick(2, ()))] if kind == "one infinity" else torch.nan
            if drawn.numel():
                drawn.view(-1)[int(pick(drawn.numel(), ()))] = value
    return drawn


def _weights_of(name, shape, kind, generator):
    """Finite always: a form is tried with the weights that the constructor makes."""
    drawn = values_of(shape, "some zeros" if kind == "some zeros" else "normal", generator)
    if "var" in name:
        return drawn.abs() + (0.0 if kind == "some zeros" else 0.1)
    return drawn


class Holder:
    """Stands for ``self`` in printed statements."""


class Program:
    """The printed statements of a graph, ready to run on any kind of values."""

    def __init__(self, arena, roots):
        nodes = [node for node in arena.nodes if node.op in ("input", "weight")]
        self._inputs = {str(n.attr("name")): n.shape for n in nodes if n.op == "input"}
        self._weights = {str(n.attr("path")).removeprefix("self."): n.shape for n in nodes
                         if n.op == "weight"}  # fmt: skip
        arguments = tuple((name, None, shape, "float64") for name, shape in self._inputs.items())
        traced = Traced(roots=roots, returns="tuple", arguments=arguments, init=())
        *lines, last = statements(arena, traced, roots)
        body = "\n".join(f"    {line}" for line in lines)
        space = {"torch": torch}
        exec(f"def f({', '.join(('self', *self._inputs))}):\n{body}\n"
             f"    return {last.removeprefix('return ')}, locals()", space)  # fmt: skip
        self._call = space["f"]

    def __call__(self, kind="normal", seed=0):
        """Its results, and everything on the way."""
        generator, holder = torch.Generator().manual_seed(seed), Holder()
        given = [values_of(shape, kind, generator) for shape in self._inputs.values()]
        for name, shape in self._weights.items():
            setattr(holder, name, _weights_of(name, shape, kind, generator))
        results, seen = self._call(holder, *given)
        inside = (*seen.values(), *results, *vars(holder).values())
        return results, [each for each in inside if isinstance(each, torch.Tensor)]


def is_finite(tensors):
    return all(bool(torch.isfinite(each).all()) for each in tensors)


def largest(tensors):
    """The largest finite magnitude, at least one."""
    found = [each.abs()[torch.isfinite(each)] for each in tensors]
    return max([1.0, *(float(each.max()) for each in found if each.numel())])


def agree(found, want, scale):
    """NaN and infinities at the same places, and the others near."""
    for f, w in zip(found, want, strict=True):
        if f.shape != w.shape or not torch.equal(_classes(f), _classes(w)):
            return False
        finite = torch.isfinite(w)
        if not bool(((f - w).abs() <= 1e-9 * (scale + w.abs()))[finite].all()):
            return False
    return True


def _classes(x):
    return torch.nan_to_num(
        torch.where(torch.isfinite(x), 0.0, x), nan=2.0, posinf=1.0, neginf=-1.0
    )


def holds(arena, before, after, *, seed=0, kinds=FINITE, finite=False):
    """Whether two graphs compute the same, on how many kinds of inputs that could be seen.

    With ``finite`` only where everything on the way is finite.
    """
    times = 0
    written, rewritten = Program(arena, before), Program(arena, after)
    for kind in kinds:
        try:
            want, inside = written(kind, seed)
        except (ValueError, RuntimeError):
            return times  # torch refuses what was drawn (a group norm of one value in all)
        if finite and not is_finite(inside):
            continue
        found, _ = rewritten(kind, seed)
        assert agree(found, want, largest(inside)), f"not equal ({kind}): {found}, {want}"
        times += 1
    return times
