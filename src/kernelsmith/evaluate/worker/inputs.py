"""Input sets from the task's own recipe, and the variants that the recipe does not draw."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from kernelsmith.evaluate.worker.trees import flatten


@dataclass(slots=True)
class InputSet:
    """Arguments of one launch: a tree and its tensors."""

    tree: object
    leaves: list[torch.Tensor]
    keywords: bool


def make(
    recipe: Callable[..., object],
    arguments: dict[str, object],
    dtype: torch.dtype | None,
    seed: int,
    variant: str,
    device: str = "cpu",
) -> InputSet | None:
    """Draw one set, or return ``None`` where the variant does not apply to these inputs.

    The recipe runs on the device itself where it lets torch choose one: ten seconds become
    five milliseconds for a large tensor.
    """
    torch.manual_seed(seed)
    drawn = plain(recipe, arguments, dtype, device)
    generator = torch.Generator(device).manual_seed(seed ^ 0xFACE)
    changed = _VARIANTS[variant](drawn.leaves, generator)
    return None if changed is None else InputSet(drawn.tree, changed, drawn.keywords)


def plain(
    recipe: Callable[..., object],
    arguments: dict[str, object],
    dtype: torch.dtype | None,
    device: str,
) -> InputSet:
    """Draw one set as the recipe has it."""
    with torch.device(device) if device != "cpu" else nullcontext():
        values = recipe(**arguments)
    keywords = isinstance(values, dict)
    if not isinstance(values, dict | list | tuple):
        values = [values]
    leaves: list[torch.Tensor] = []
    tree = flatten([values] if keywords else list(values), leaves)  # type: ignore[arg-type]
    # A recipe may hand out the same tensor twice or a view of a larger one: give each its own.
    return InputSet(tree, [_own(leaf.to(device), dtype) for leaf in leaves], keywords)


def reshaped(drawn: InputSet, form: str) -> InputSet | None:
    """The same set in one of ``FORMS``, or ``None`` where that does not apply to it."""
    changed = _VARIANTS[form](drawn.leaves, torch.Generator())
    return None if changed is None else InputSet(drawn.tree, changed, drawn.keywords)


def draw(
    recipe: Callable[..., object], arguments: dict[str, object], seed: int
) -> list[torch.Tensor]:
    """The tensors of one plain set on the current device, to be copied elsewhere at once.

    The same seed gives ``make`` the same values. Unlike its tensors, these may share memory.
    """
    torch.default_generator.manual_seed(seed)
    torch.cuda.default_generators[torch.cuda.current_device()].manual_seed(seed)
    values = recipe(**arguments)
    leaves: list[torch.Tensor] = []
    whole = [values] if isinstance(values, dict) or not isinstance(values, list | tuple) else values
    flatten(list(whole), leaves)
    return leaves


def _own(leaf: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    leaf = leaf.detach()
    if dtype is not None and leaf.is_floating_point():
        leaf = leaf.to(dtype)
    dense = leaf.is_contiguous() or leaf.dim() >= 4
    return leaf.clone(memory_format=torch.preserve_format if dense else torch.contiguous_format)


Variant = Callable[[list[torch.Tensor], torch.Generator], list[torch.Tensor] | None]


Change = Callable[[torch.Tensor, torch.Generator], torch.Tensor]
_BLOCK = 1 << 26
_LARGE = 1e30
"""Above this, noise is drawn in float64."""
_DOTS = 16
"""Values that are changed where hardly any are: enough that both signs are among them."""


def _elementwise(change: Change) -> Variant:
    def apply(leaves: list[torch.Tensor], generator: torch.Generator) -> list[torch.Tensor] | None:
        if not any(leaf.is_floating_point() for leaf in leaves):
            return None
        return [_changed(leaf, change, generator) for leaf in leaves]

    return apply


def _changed(leaf: torch.Tensor, change: Change, generator: torch.Generator) -> torch.Tensor:
    """Change one tensor in float64, a large one block by block: the recipe's may fill a device."""
    if not leaf.is_floating_point():
        return leaf
    if leaf.numel() <= _BLOCK or not leaf.is_contiguous():
        return change(leaf.double(), generator).to(leaf.dtype)
    changed = torch.empty_like(leaf)
    for into, part in zip(changed.view(-1).split(_BLOCK), leaf.view(-1).split(_BLOCK), strict=True):
        into.copy_(change(part.double(), generator))
    return changed


def _on(like: torch.Tensor, generator: torch.Generator) -> dict[str, Any]:
    return {"generator": generator, "device": like.device}


def _signs(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """One byte each: of a large input, what is moved for its variants is most of their time."""
    drawn = torch.randint(0, 2, like.shape, dtype=torch.int8, **_on(like, generator))
    return drawn.mul_(2).sub_(1)


def _negative(leaf: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return leaf * _signs(leaf, generator)


def _wide(leaf: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    exponent = torch.rand(leaf.shape, dtype=torch.float32, **_on(leaf, generator))
    factor = torch.pow(10.0, exponent.mul_(4).sub_(2)).mul_(_signs(leaf, generator))
    return leaf * factor


def _speckled(leaf: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A few values of either sign anywhere: what holds for a sample of elements fails for them."""
    scale = _scale(leaf)
    dtype = torch.float32 if scale < _LARGE else leaf.dtype
    noise = torch.randn(leaf.shape, dtype=dtype, **_on(leaf, generator)).mul_(scale)
    chosen = torch.rand(leaf.shape, dtype=torch.float32, **_on(leaf, generator)) < 1 / 512
    return torch.where(chosen, noise, leaf)


def _dotted(leaf: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """The same, so few of them that even a large sample of a large tensor misses them all."""
    if leaf.numel() == 0:
        return leaf
    changed = leaf.clone()  # dense, in the order of its strides
    noise = torch.randn(_DOTS, dtype=leaf.dtype, **_on(leaf, generator)) * _scale(leaf)
    where = torch.randint(0, leaf.numel(), (_DOTS,), **_on(leaf, generator))
    changed.as_strided((leaf.numel(),), (1,))[where] = noise
    return changed


def _scale(leaf: torch.Tensor) -> float:
    """The root mean square of what is finite, or 1."""
    norm = float(torch.linalg.vector_norm(leaf))
    if math.isfinite(norm) and leaf.numel():
        return norm / math.sqrt(leaf.numel()) or 1.0
    finite = leaf[torch.isfinite(leaf)]
    return (float(finite.square().mean().sqrt()) if finite.numel() else 1.0) or 1.0


def _extreme(leaf: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    pick = torch.randint(0, 8, leaf.shape, **_on(leaf, generator))
    out = torch.where(pick == 0, 0.0, leaf)
    out = torch.where(pick == 1, leaf * 1e4, out)
    out = torch.where(pick == 2, leaf * -1e4, out)
    return torch.where(pick == 3, leaf * 1e-30, out)


def _strided(leaves: list[torch.Tensor], _: torch.Generator) -> list[torch.Tensor] | None:
    """The same values in every second column of a wider tensor, or transposed."""
    changed, done = [], False
    for leaf in leaves:
        if leaf.dim() >= 1 and leaf.numel() > 1:
            wide = leaf.new_zeros((*leaf.shape[:-1], leaf.shape[-1] * 2))
            view = wide[..., ::2]
            view.copy_(leaf)
            changed.append(view)
            done = True
        else:
            changed.append(leaf)
    return changed if done else None


def _batch(size: int) -> Variant:
    def apply(leaves: list[torch.Tensor], _: torch.Generator) -> list[torch.Tensor] | None:
        if not leaves or leaves[0].dim() == 0 or leaves[0].shape[0] <= size:
            return None
        batch = leaves[0].shape[0]
        return [
            leaf[:size].clone() if leaf.dim() and leaf.shape[0] == batch else leaf
            for leaf in leaves
        ]

    return apply


_VARIANTS: dict[str, Variant] = {
    "plain": lambda leaves, _: leaves,
    "negative": _elementwise(_negative),
    "wide": _elementwise(_wide),
    "speckled": _elementwise(_speckled),
    "dotted": _elementwise(_dotted),
    "extreme": _elementwise(_extreme),
    "strided": _strided,
    "one": _batch(1),
    "empty": _batch(0),
}
FORMS = ("one", "strided", "empty")
"""Variants in which shapes or strides differ, whatever the values."""
