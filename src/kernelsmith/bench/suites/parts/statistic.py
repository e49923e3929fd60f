# mypy: ignore-errors
"""For random references: what must agree in distribution."""

import torch


def statistic(outputs):
    """Mean, mean square and share of zeros of every output."""
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else outputs
    values = outputs.values() if isinstance(outputs, dict) else outputs
    rows = []
    for each in values:
        if isinstance(each, torch.Tensor):
            each = each.double()
            rows += [each.mean(), each.square().mean(), (each == 0).double().mean()]
    return torch.stack(rows)
