"""In the sandbox: inputs drawn, answers looked through, failed comparisons read."""

import ast
from typing import Any

import torch

from kernelsmith.corpus.inputs.repair import BOOL, INDEX, Many, Other, State, Tensor, Value


def made(value: Value) -> Any:
    """Draw one input."""
    if isinstance(value, Other):
        return eval(value.text, {"torch": torch, "nn": torch.nn})
    if isinstance(value, Many):
        drawn = [made(each) for each in value.tensors]
        return tuple(drawn) if value.is_tuple else drawn
    if value.dtype == INDEX:
        return torch.randint(0, value.high, value.shape)
    if value.dtype == BOOL:
        return torch.ones(value.shape, dtype=torch.bool)
    return torch.randn(value.shape)


def elements(state: State) -> int:
    """How many numbers the inputs hold."""
    total = 0
    for _, value in state:
        for each in value.tensors if isinstance(value, Many) else (value,):
            if isinstance(each, Tensor):
                count = 1
                for size in each.shape:
                    count *= size
                total += count
    return total


def has_tensor(value: Any) -> bool:
    """Whether a module's answer holds a tensor with something in it."""
    if isinstance(value, torch.Tensor):
        return bool(value.numel())
    if isinstance(value, dict):
        return any(has_tensor(each) for each in value.values())
    if isinstance(value, list | tuple):
        return any(has_tensor(each) for each in value)
    return any(isinstance(each, torch.Tensor) for each in getattr(value, "__dict__", {}).values())


def compared(line: str, frame: Any) -> list[tuple[int, int]]:
    """Numbers that the failing line compares: an assertion without words still says this much."""
    try:
        tree = ast.parse(line + ("\n    pass" if line.endswith(":") else ""))
    except SyntaxError:
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.comparators) == 1:
            sides = [_evaluated(each, frame) for each in (node.left, node.comparators[0])]
            if _are_numbers(*sides) and sides[0] != sides[1]:
                found.append((sides[0], sides[1]))
            elif all(isinstance(side, tuple) for side in sides):
                pairs = zip(*sides, strict=False)
                found += [(a, b) for a, b in pairs if _are_numbers(a, b) and a != b]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            left, right = _evaluated(node.left, frame), _evaluated(node.right, frame)
            if isinstance(left, int) and isinstance(right, int) and right > 0 and left % right:
                found.append((left, right * max(1, left // right)))
    return found


def _are_numbers(*values: object) -> bool:
    """Sides of a comparison may hold anything: rows of a tensor, which have no one answer."""
    return all(isinstance(each, int) for each in values)


def _evaluated(node: ast.expr, frame: Any) -> Any:
    try:
        value = eval(
            compile(ast.Expression(node), "task.py", "eval"), frame.f_globals, frame.f_locals
        )
    except BaseException:
        return None
    return tuple(value) if isinstance(value, torch.Size | list) else value
