"""Torch's compiler sees attention only where it is: dimensions are held against its pattern too.

Inductor's patterns of attention are stored with every whole number left open, and nothing looks at
those numbers afterwards. So a softmax over the queries, or heads that are permuted otherwise, were
taken for attention over the keys, and all that came out was wrong.
"""

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

_OVER = {"amax", "sum", "any", "_softmax", "_safe_softmax"}
"""Operators of a softmax whose second argument says over what."""
_INCOMPARABLE = (RuntimeError, LookupError, ValueError, TypeError, AttributeError, AssertionError)
"""What tracing a pattern with other shapes than it was written for raises."""


def only_exact() -> bool:
    """Let attention be found only where the numbers agree; whether this torch has such a search.

    To be called before the first compilation: patterns are registered once.
    """
    try:
        from torch._inductor.fx_passes import fuse_attention
    except ImportError:  # a version that finds attention elsewhere, or not at all
        return False
    module: Any = fuse_attention
    register = getattr(module, "gen_register_replacement", None)
    if register is None:
        return False

    def strict(name: str, **given: Any) -> None:
        register(name, **{**given, "extra_check": _checked(given)})

    module.gen_register_replacement = strict
    return True


def _checked(given: dict[str, Any]) -> Callable[[Any], bool]:
    """The compiler's own check of a match, and ours."""
    theirs = given.get("extra_check", lambda match: True)

    def check(match: Any) -> bool:
        if not theirs(match):
            return False
        try:
            return _agrees(match, given)
        except _INCOMPARABLE:  # left as it was written, which is right
            return False

    return check


def _agrees(match: Any, given: dict[str, Any]) -> bool:
    """Trace the pattern for the tensors that were found, and compare number by number."""
    from torch._dynamo.utils import detect_fake_mode
    from torch._inductor.pattern_matcher import fx_to_pattern, is_match

    names = [*inspect.signature(given["search_fn"]).parameters]
    open_numbers = given.get("scalar_workaround") or {}
    found = [_value(match.kwargs.get(name, open_numbers.get(name))) for name in names]
    with detect_fake_mode(found) or nullcontext():  # tensors without memory
        traced = given["trace_fn"](given["search_fn"], [_like(each) for each in found])
    exact = fx_to_pattern(
        traced, argnames=names, scalar_workaround=given.get("scalar_workaround"),
        exclusive_arg_names=given.get("exclusive_arg_names", ()),
    )  # fmt: skip
    for node in match.nodes:
        _count_from_the_end(node)
    return bool(is_match(exact.match(match.output_nodes()[0])))


def _value(found: Any) -> Any:
    """What a node of the graph stands for; numbers are what they are."""
    return found.meta["val"] if isinstance(found, torch.fx.Node) else found


def _like(value: Any) -> Any:
    """A tensor of the same layout; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=value.device)


def _count_from_the_end(node: Any) -> None:
    """Patterns say ``-1``; a task may say ``3`` and mean the same."""
    packet = getattr(node.target, "_overloadpacket", None)
    if getattr(packet, "__name__", None) not in _OVER or len(node.args) < 2:
        return
    rank, over = node.args[0].meta["val"].dim(), node.args[1]
    if isinstance(over, int):
        node.update_arg(1, over % rank - rank)
    elif isinstance(over, list | tuple):
        node.update_arg(1, [each % rank - rank for each in over])
