"""Runs the steps of a call in Triton's interpreter, in a process of its own."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from triton_interpreter import HEAD, loaded

from kernelsmith.propose.rules.compiler.call import (
    Alias,
    Allocate,
    Drop,
    Kernel,
    Launch,
    Library,
    Named,
    Operand,
    Step,
    Viewed,
)

HEADER = HEAD.rstrip() + "\nfrom triton.language.extra import libdevice\n\n\n"


def run(
    kernels: tuple[Kernel, ...], steps: tuple[Step, ...], given: Mapping[str, np.ndarray],
    wanted: str, prelude: str = "",
) -> np.ndarray:  # fmt: skip
    """What a tensor holds after the steps; memory begins as NaN, so nothing unset goes unseen."""
    import torch

    module = _module("\n\n\n".join([prelude, *(each.text for each in kernels)]))
    fixed = {each.name: dict(each.defaults) for each in kernels}
    known: dict[str, Any] = {name: torch.from_numpy(each.copy()) for name, each in given.items()}
    with np.errstate(all="ignore"):
        for step in steps:
            _step(step, module, fixed, known)
    found: np.ndarray = known[wanted].float().numpy()
    return found


def _module(text: str) -> Any:
    # The interpreter cannot multiply bfloat16, and knows nothing finer than float32: those products
    # are exact in float32, and Triton's own schemes stand for it.
    text = re.sub(r'input_precision="bf16x[36]"', 'input_precision="ieee"', text)
    text = re.sub(
        r"tl\.dot\((\w+), (\w+)\.T", r"tl.dot(\1.to(tl.float32), \2.T.to(tl.float32)", text
    )
    return loaded(HEADER + text)


def _step(step: Step, module: Any, fixed: dict[str, dict[str, int]], known: dict[str, Any]) -> None:
    import torch

    match step:
        case Allocate():
            dtype = getattr(torch, step.dtype)
            made = torch.empty_strided(step.shape, step.stride, dtype=dtype)
            known[step.name] = made.fill_(float("nan") if dtype.is_floating_point else 1)
        case Alias():
            known[step.name] = _operand(step.of, known)
        case Drop():
            del known[step.name]
        case Launch():
            function = getattr(module, step.kernel)
            count = len(function.arg_names)
            operands = [_operand(each, known) for each in step.operands]
            function[tuple(operands[count:])](*operands[:count], **fixed[step.kernel])
        case Library(target="triton.set_allocator"):
            pass
        case Library(out=str() as out):
            operands = [_operand(each, known) for each in step.operands]
            called = getattr(torch, step.target.removeprefix("torch."))
            known[out].copy_(called(*operands, **dict(step.keywords)))
        case _:
            raise AssertionError(step)


def _operand(operand: Operand, known: dict[str, Any]) -> Any:
    match operand:
        case Named(name=name):
            return known[name]
        case Viewed():
            base = known[operand.name]
            offset = base.storage_offset() + operand.offset
            return base.as_strided(operand.shape, operand.stride, offset)
    return operand
