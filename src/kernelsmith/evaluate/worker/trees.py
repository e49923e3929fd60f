"""Arguments and results as JSON: nested containers with tensors replaced by leaf numbers."""

import math
from collections.abc import Sequence

import torch

Tree = object
"""JSON: scalars and lists as they are; everything else as a one-key object with a tag."""


class Unsupported(TypeError):
    """A value that cannot cross the process boundary."""


def flatten(value: object, leaves: list[torch.Tensor], *, by_key: bool = False) -> Tree:
    """Turn ``value`` into JSON, appending its tensors to ``leaves``.

    With ``by_key``, dicts are taken in the order of their keys: equal results become equal trees.
    """
    if isinstance(value, torch.Tensor):
        leaves.append(value)
        return {"t": len(leaves) - 1}
    if isinstance(value, float) and not math.isfinite(value):
        return {"f": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [flatten(item, leaves, by_key=by_key) for item in value]
    if isinstance(value, tuple | torch.Size):
        return {"()": [flatten(item, leaves, by_key=by_key) for item in value]}
    if isinstance(value, dict):
        items = sorted(value.items(), key=lambda item: repr(item[0])) if by_key else value.items()
        return {"{}": [[flatten(k, leaves), flatten(v, leaves, by_key=by_key)] for k, v in items]}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    raise Unsupported(f"a {type(value).__name__} cannot be handed between processes")


def unflatten(tree: Tree, leaves: Sequence[torch.Tensor]) -> object:
    """Rebuild what ``flatten`` took apart."""
    if isinstance(tree, list):
        return [unflatten(item, leaves) for item in tree]
    if not isinstance(tree, dict):
        return tree
    ((tag, body),) = tree.items()
    match tag:
        case "t":
            return leaves[body]
        case "f":
            return float(body)
        case "()":
            return tuple(unflatten(item, leaves) for item in body)
        case "{}":
            return {unflatten(k, leaves): unflatten(v, leaves) for k, v in body}
        case "dtype":
            return getattr(torch, body)
        case "device":
            return torch.device(body)
    raise Unsupported(f"unknown tag {tag!r}")


def describe(tensor: torch.Tensor) -> dict[str, object]:
    """Say where a tensor's values lie in this process, for the judge to read them."""
    if tensor.layout is not torch.strided or tensor.device.type == "meta":
        return {"layout": f"{tensor.layout} on {tensor.device}".removeprefix("torch.")}
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "strides": list(tensor.stride()),
        "address": torch.Tensor.data_ptr(tensor),
    }


def paths(tree: Tree, prefix: str) -> list[str]:
    """Name each leaf of a tree the way a person would write it, in leaf order."""
    found: list[tuple[int, str]] = []

    def walk(node: Tree, path: str) -> None:
        if isinstance(node, list):
            for index, item in enumerate(node):
                walk(item, f"{path}[{index}]")
        elif isinstance(node, dict):
            ((tag, body),) = node.items()
            if tag == "t":
                found.append((body, path))
            elif tag == "()":
                for index, item in enumerate(body):
                    walk(item, f"{path}[{index}]")
            elif tag == "{}":
                for key, item in body:
                    walk(item, f"{path}[{key!r}]")

    walk(tree, prefix)
    return [path for _, path in sorted(found)]
