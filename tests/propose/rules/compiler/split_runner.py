"""Where the largest is, by a candidate and by its reference; run where Triton interprets."""

import torch
from triton_interpreter import HEAD, loaded

SPECIAL = {
    "plain": lambda x: x,
    "equals": lambda x: torch.round(2 * x),
    "nothing": lambda x: torch.full_like(x, -torch.inf),
    "no number": lambda x: torch.where(torch.arange(x.numel()).view(x.shape) % 2111 == 7,
                                       torch.nan, x),
}  # fmt: skip


def agree(source: str, reference: str, special: str) -> bool:
    """Whether both give the same, bit by bit."""
    ours, theirs = loaded(HEAD + source), loaded(HEAD + reference)
    torch.manual_seed(0)
    inputs = [SPECIAL[special](each) for each in theirs.get_inputs()]
    found, wanted = ours.ModelNew()(*inputs), theirs.Model()(*inputs)
    if isinstance(wanted, torch.Tensor):
        found, wanted = (found,), (wanted,)
    return all(
        a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.isnan(), b.isnan())
        and torch.equal(a.nan_to_num(), b.nan_to_num())
        for a, b in zip(found, wanted, strict=True)
    )  # fmt: skip
