"""What torch makes of truth values, whole numbers and floats that meet in one expression.

The templates compute with floats alone and write the inputs' dtype; torch's may be another one.
"""

import re
from collections.abc import Sequence
from enum import StrEnum

from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.graph import COMPARED, Kind, Node, NotRecognised, Shape

_EXACT = {"neg", "abs", "floor", "sign", "or_zero"}
"""Unary operators that leave whole numbers what they are."""
_OTHER = re.compile(r"float16|float64|half|double")


class Of(StrEnum):
    """What a value is made of."""

    TRUTH = "truth"
    WHOLE = "whole"
    PYTHON = "python"
    """A number without a tensor: it never decides the dtype among floats."""
    UNSURE = "unsure"
    """What Python's numbers make of truth values or choose: whole or not, as they were written."""
    LIKE = "like"
    """A float of the inputs' dtype."""
    DEFAULT = "default"
    """A float of torch's default dtype, whatever the inputs have."""


_FLOATS = (Of.LIKE, Of.DEFAULT)


def made_of(nodes: Sequence[Node]) -> list[Of]:
    """What every value is made of, in order."""
    found: list[Of] = []
    for node in nodes:
        found.append(_made_of(node, nodes, found))
    return found


def check_types(nodes: Sequence[Node], output: int, *, single: bool) -> None:
    """Insist that a result has a dtype that the templates write.

    Args:
        nodes: In order, arguments first.
        output: Number of the result.
        single: Whether all inputs have torch's default dtype.

    Raises:
        NotRecognised: It is a count or a truth value, or float32 whatever the inputs are.
    """
    found = made_of(nodes)[output]
    if found not in _FLOATS:
        raise NotRecognised("rules write results of the inputs' dtype, not counts or truth values")
    if found is Of.DEFAULT and not single:
        raise NotRecognised(
            "rules write results of the inputs' dtype; of truth values, counts and Python's "
            "numbers torch makes float32"
        )


def is_single(task: Task) -> bool:
    """Whether no workload and nothing in the file speaks of a dtype besides torch's default."""
    dtypes = {each.dtype for each in task.workloads}
    return dtypes <= {None, "float32"} and not _OTHER.search(task.source)


def _made_of(node: Node, nodes: Sequence[Node], found: Sequence[Of]) -> Of:
    given = [found[each] for each in node.args]
    match node.kind:
        case Kind.INPUT | Kind.PARAMETER:
            return Of.LIKE
        case Kind.NUMBER | Kind.CONSTANT | Kind.COUNT:
            return Of.PYTHON
        case Kind.UNARY if node.op not in _EXACT:
            return given[0] if given[0] in (Of.LIKE, Of.PYTHON) else Of.DEFAULT
        case Kind.REDUCE | Kind.TOTAL if given[0] is Of.TRUTH and node.op not in ("max", "min"):
            return Of.WHOLE
        case Kind.UNARY | Kind.VIEW | Kind.REDUCE | Kind.TOTAL:
            return given[0]
        case Kind.BINARY if node.op in COMPARED:
            return Of.TRUTH
    values = node.args[1:] if node.kind is Kind.SELECT else node.args
    wide = {found[each] for each in values if nodes[each].shape is not Shape.SCALAR}
    made = _together({found[each] for each in values}, wide)
    if made is Of.PYTHON and node.kind is Kind.SELECT:
        return Of.UNSURE
    if node.op == "div" and made not in (Of.LIKE, Of.PYTHON):
        return Of.DEFAULT
    if made is Of.TRUTH and node.op not in ("mul", "max", "min", "where"):
        return Of.WHOLE
    return made


def _together(all_of: set[Of], wide: set[Of]) -> Of:
    """What values become that meet; ``wide`` are those with dimensions, which outweigh others."""
    if Of.LIKE in all_of:
        return Of.DEFAULT if wide & {Of.DEFAULT, Of.UNSURE} else Of.LIKE
    if Of.DEFAULT in all_of:
        return Of.DEFAULT
    if all_of == {Of.PYTHON}:
        return Of.PYTHON
    if all_of & {Of.PYTHON, Of.UNSURE}:
        return Of.UNSURE
    return Of.WHOLE if Of.WHOLE in all_of else Of.TRUTH
