"""Who sees what ``name += ...`` does to a tensor: whoever else stands for the same memory."""

from collections.abc import Collection, Mapping

from kernelsmith.propose.rules.graph import Builder, Kind, NotRecognised
from kernelsmith.propose.rules.values import Extreme, Tensor, Value


def check_own(
    name: str, names: Mapping[str, Value], build: Builder, *, made: Collection[str]
) -> None:
    """Insist that nobody but this name sees its tensor change.

    Args:
        name: What is changed.
        names: What every name stands for just now.
        build: The graph so far.
        made: Inputs of the kernel that ``forward`` computes itself, by a library.

    Raises:
        NotRecognised: It is an input, or another name may stand for the same memory.
    """
    value = names.get(name)
    if not isinstance(value, Tensor):
        return
    held = _memory(value, build)
    if held is None or _is_given(held, build, made):
        raise NotRecognised(f"rules do not know a task that changes its input {name!r}")
    for other, each in names.items():
        tensor = each.values if isinstance(each, Extreme) else each
        if other != name and isinstance(tensor, Tensor) and _memory(tensor, build) == held:
            raise NotRecognised(
                f"rules do not know `{name}` changed in place where {other!r} may be the same"
            )


def _memory(tensor: Tensor, build: Builder) -> int | None:
    """The node whose memory a tensor may share; none where it was not computed by the graph."""
    number = tensor.node
    while number is not None and build.nodes[number].kind is Kind.VIEW:
        number = build.nodes[number].args[0]
    return number


def _is_given(number: int, build: Builder, made: Collection[str]) -> bool:
    node = build.nodes[number]
    return node.kind in (Kind.INPUT, Kind.PARAMETER) and node.text not in made
