"""New weights for a constructed module, so that nothing computed at construction stays true."""

import torch

_STATISTICS = ("running_mean", "running_var")


_FEW = 4
"""Elements of each tensor that change where only a few do."""


def randomise(model: torch.nn.Module, seed: int, *, few: bool = False) -> None:
    """Redraw every floating parameter, and normalisation statistics, in place.

    Scale and sign are kept close to what construction chose: constant positive values stay
    positive, zeros become small, random values are shuffled and stretched. Other buffers
    (masks, tables) are the module's own constants and stay as they are.
    """
    generators: dict[torch.device, torch.Generator] = {}
    chosen = [tensor for _, tensor in model.named_parameters()]
    chosen += [t for name, t in model.named_buffers() if name.rsplit(".", 1)[-1] in _STATISTICS]
    with torch.no_grad():
        for tensor in chosen:
            if tensor.device not in generators:
                fresh = torch.Generator(tensor.device).manual_seed(seed ^ 0x5EED)
                generators[tensor.device] = fresh
            _redraw(tensor, generators[tensor.device], few=few)


def _redraw(tensor: torch.Tensor, generator: torch.Generator, *, few: bool) -> None:
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return
    values = tensor.detach().double()
    on = values.device
    noise = torch.randn(tensor.shape, generator=generator, dtype=torch.float64, device=on)
    low, high = values.min().item(), values.max().item()
    if low == high == 0.0:
        fresh = 0.1 * noise
    elif low >= 0.0:
        fresh = values * torch.exp(0.2 * noise)
    else:
        order = torch.randperm(values.numel(), generator=generator, device=on)
        fresh = values.flatten()[order].view_as(values) * torch.exp(0.1 * noise)
    if few:
        chosen = torch.randint(0, values.numel(), (_FEW,), generator=generator, device=on)
        flat = values.flatten()
        flat[chosen] = fresh.flatten()[chosen]
        fresh = flat.view_as(values)
    tensor.copy_(fresh.to(tensor.dtype))
