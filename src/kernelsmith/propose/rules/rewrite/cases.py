"""A task's model and inputs, made in the child process from its source."""

import inspect
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from kernelsmith.propose.rules.hollow import hollowed

_SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class NotTraced(Exception):
    """The task cannot be recorded as a graph; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A module or function, with inputs to call it on."""

    call: Any
    model: torch.nn.Module | None
    inputs: list[Any]
    names: list[str]
    """The arguments' names, in order."""
    init: dict[str, Any]
    """What the constructor got, by name."""


def _run(source: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "task"}
    exec(compile(source, "task.py", "exec"), space)
    return space


def _keywords(request: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in request[name].items()}


def make_case(source: str, request: dict[str, Any], dtype: str | None = None) -> Case:
    """Run a task's file and make its model and inputs as the judge would.

    Raises:
        NotTraced: It has a form that the rules do not rewrite.
    """
    space = _run(source)
    entry, to = request["entry"], dtype or request["dtype"]
    inputs = list(space["get_inputs"](**_keywords(request, "arguments")))
    model, init = None, {}
    if entry == "Model":
        given = space["get_init_inputs"](**_keywords(request, "init"))
        signature = inspect.signature(space["Model"])
        if isinstance(given, dict):
            bound = signature.bind(**given)
        elif len(given) == 2 and isinstance(given[0], list) and isinstance(given[1], dict):
            bound = signature.bind(*given[0], **given[1])
        else:
            bound = signature.bind(*given)
        model = space["Model"](*bound.args, **bound.kwargs)
        model.train(bool(request["training"]))
        bound.apply_defaults()
        # a module without a constructor takes any arguments: none were given
        several = {key for key, of in signature.parameters.items() if of.kind in _SEVERAL}
        init = {k: v for k, v in bound.arguments.items() if k not in several or v}
    call = space[entry] if model is None else model
    if to is not None:
        kind = getattr(torch, to)
        inputs = [_cast(each, kind) for each in inputs]
        if model is not None:
            model.to(kind)
    names = list(inspect.signature(call if model is None else model.forward).parameters)
    if len(inputs) > len(names):
        raise NotTraced("forward takes a variable number of arguments")
    return Case(call=call, model=model, inputs=inputs, names=names[: len(inputs)], init=init)


def hollow_case(source: str, request: dict[str, Any], mode: FakeTensorMode) -> Case:
    """The same on tensors without contents.

    A constructor may look at contents (``[rate.item() for rate in torch.linspace(...)]``): then the
    model is made in full, and its tensors lose theirs.
    """
    try:
        with mode:
            return make_case(source, request)
    except DataDependentOutputException:
        case = make_case(source, request)
    hollowed(case.model, mode.from_tensor)
    return replace(case, inputs=hollowed(case.inputs, mode.from_tensor))


def _cast(value: Any, kind: torch.dtype) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.to(kind)
    return value
