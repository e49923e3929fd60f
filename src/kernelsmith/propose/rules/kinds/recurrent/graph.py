"""Recurrent layers as a task calls them."""

import ast

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds.straight import Cut, Place, Seen

MODES = {"nn.LSTM": "LSTM", "nn.GRU": "GRU", "nn.RNN": "RNN"}
_PACKING = ("pack_padded_sequence", "pack_sequence", "PackedSequence")


def find(place: Place) -> list[tuple[Cut, str]]:
    """Every call of a recurrent layer in a ``forward``, with its mode.

    Layers of packed sequences stay as they are written: kernels know plain tensors.
    """
    found: list[tuple[Cut, str]] = []
    for at, statement in enumerate(place.body):
        if not isinstance(statement, ast.Assign | ast.Return | ast.Expr):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and (called := place.called(node)) is not None:
                name, args, keywords = called
                if name not in MODES or _is_packed(place, args, at):
                    continue
                if not 1 <= len(args) <= 2 or keywords:
                    raise NotRecognised("rules know recurrent layers of a sequence and a state")
                found.append((_cut(place, node, args, at, len(found)), MODES[name]))
    return found


def _is_packed(place: Place, args: list[ast.expr], at: int) -> bool:
    """Whether a sequence comes out of one of torch's functions that pack."""
    called = place.called(place.seen(args[0], at).node) if args else None
    return called is not None and called[0] in _PACKING


def _cut(place: Place, node: ast.Call, args: list[ast.expr], at: int, number: int) -> Cut:
    name = f"sequence_{number + 1}"
    texts = [place.text(Seen(each, at), at) for each in args]
    lines = (
        f"{name} = sequence({ast.unparse(node.func)}, {', '.join(texts)})",
        f"if {name} is None:\n    {name} = {ast.unparse(node)}",
    )
    return Cut(at=at, node=node, name=name, lines=lines)
