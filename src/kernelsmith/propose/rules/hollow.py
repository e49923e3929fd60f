"""Tensors without contents, in the places of a model's own and of its inputs."""

from collections.abc import Callable
from typing import Any

import torch

_TABLES = ("_parameters", "_buffers", "_modules")
"""Of a module, which are gone through by themselves."""


def hollowed(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same with every tensor changed; a model in place, one tensor everywhere by one."""
    known: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def one(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in known:
            changed = change(tensor)
            # Both are kept, so that their numbers stay their own; none is changed twice.
            known[id(tensor)], known[id(changed)] = (tensor, changed), (changed, changed)
        return known[id(tensor)][1]

    def each(found: Any) -> Any:
        if isinstance(found, torch.Tensor):
            return one(found)
        if type(found) in (list, tuple):
            return type(found)(each(inner) for inner in found)
        if type(found) is dict:
            return {key: each(inner) for key, inner in found.items()}
        return found

    if not isinstance(value, torch.nn.Module):
        return each(value)
    for module in value.modules():
        for held in (module._parameters, module._buffers, vars(module)):
            held.update({k: each(v) for k, v in held.items() if k not in _TABLES})
    return value
