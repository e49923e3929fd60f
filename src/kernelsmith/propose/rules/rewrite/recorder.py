"""Records which public functions a task's forward calls, on tensors without contents."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode, resolve_name

from kernelsmith.propose.rules.rewrite.cases import Case, NotTraced, hollow_case

_RANDOM = ("rand", "bernoulli", "multinomial", "normal_", "poisson", "rrelu", "exponential_")
_LIMIT = 4000


def trace(request: dict[str, Any]) -> dict[str, Any]:
    """Answer with the calls of one forward pass, their shapes, and where tensors come from.

    Raises:
        NotTraced: Something happens that a list of calls does not tell.
    """
    mode = FakeTensorMode()
    with torch.no_grad():
        case = hollow_case(request["source"], request, mode)
    with mode, torch.no_grad():
        recorder = _Recorder(case)
        before = _attributes(case.model)
        with recorder:
            result = case.call(*case.inputs)
        if _attributes(case.model) != before:
            raise NotTraced("forward changes attributes of the module")
        return recorder.reply(case, result)


def _attributes(model: torch.nn.Module | None) -> list[tuple[int, str, int]]:
    modules = [] if model is None else list(model.modules())
    return [(id(m), key, id(value)) for m in modules for key, value in vars(m).items()]


def _tensors(model: torch.nn.Module | None) -> Iterator[tuple[str, torch.Tensor]]:
    """Everything that the module holds, with the expression that reads it."""
    if model is None:
        return
    for path, module in model.named_modules():
        holder = "self" + "".join(_step(model, path))
        for name, value in [
            *module._parameters.items(), *module._buffers.items(), *vars(module).items(),
        ]:  # fmt: skip
            if isinstance(value, torch.Tensor):
                reads = f".{name}" if name.isidentifier() else None
                yield (f"{holder}{reads}" if reads else f"getattr({holder}, {name!r})"), value
            if isinstance(value, list | tuple):
                for number, each in enumerate(value):
                    if isinstance(each, torch.Tensor):
                        yield f"{holder}.{name}[{number}]", each


def _step(model: torch.nn.Module, path: str) -> Iterator[str]:
    module: Any = model
    for part in path.split(".") if path else []:
        parent, module = module, module._modules[part]
        if part.isidentifier():
            yield f".{part}"
        elif isinstance(parent, torch.nn.Sequential | torch.nn.ModuleList) and part.isdigit():
            yield f"[{part}]"
        else:
            yield f"._modules[{part!r}]"


class _Recorder(TorchFunctionMode):  # type: ignore[misc]
    """Notes every call that makes tensors; equal Python objects are equal values."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self._case = case
        self._numbers: dict[int, int] = {}
        self._alive: list[torch.Tensor] = []
        self._shapes: list[dict[str, Any]] = []
        self._calls: list[dict[str, Any]] = []
        self._sharing: dict[int, set[int]] = {}
        """For each storage, the tensors seen on it."""
        self._kept: set[int] = set()
        """Storages of inputs and weights: they must not be written to."""
        for position, value in enumerate(case.inputs):
            if isinstance(value, torch.Tensor):
                self._enter(value, {"input": case.names[position]})
                self._kept.add(_storage(value))
        for path, value in _tensors(case.model):
            if id(value) not in self._numbers:
                self._enter(value, {"weight": path})
                self._kept.add(_storage(value))

    def _enter(self, tensor: torch.Tensor, where: dict[str, Any] | None = None) -> int:
        number = len(self._shapes)
        self._numbers[id(tensor)] = number
        self._alive.append(tensor)
        self._sharing.setdefault(_storage(tensor), set()).add(id(tensor))
        self._shapes.append(
            {"shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch."),
             **(where or {})}
        )  # fmt: skip
        return number

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = resolve_name(func) or ""
        if len(self._calls) > _LIMIT:
            raise NotTraced(f"forward makes more than {_LIMIT} calls")
        given = None
        if not name.endswith(".__get__") or name.endswith((".T.__get__", ".mT.__get__")):
            given = ([self._told(a) for a in args], {k: self._told(v) for k, v in kwargs.items()})
        versions = [(each, each._version) for each in _found([args, kwargs])]
        result = func(*args, **kwargs)
        written = [each for each, version in versions if each._version != version]
        made = list(_found(result))
        if not made and not written:
            return result
        if given is None or (random := _is_random(name, kwargs)):
            raise NotTraced(f"forward calls {name}" + (", which is random" if given else ""))
        assert not random
        if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            raise NotTraced("forward changes precision by autocast")
        self._refuse_aliases(name, written, made)
        for each in {id(t): t for t in made}.values():
            self._enter(each)
        self._calls.append(
            {"name": name, "args": given[0], "kwargs": given[1], "out": self._told(result)}
        )
        return result

    def _refuse_aliases(
        self, name: str, written: list[torch.Tensor], made: list[torch.Tensor]
    ) -> None:
        """In place is fine where the tensor is the only name of its memory and is returned."""
        returned = {id(each) for each in made}
        for each in written:
            storage = _storage(each)
            if storage in self._kept:
                raise NotTraced(f"forward changes an input or a weight in place ({name})")
            if len(self._sharing.get(storage, ())) > 1 or id(each) not in returned:
                raise NotTraced(f"forward changes a tensor under two names in place ({name})")

    def _told(self, value: Any) -> Any:
        match value:
            case torch.Tensor():
                if id(value) not in self._numbers:
                    raise NotTraced("forward uses a tensor that comes from nowhere")
                return {"ref": self._numbers[id(value)]}
            case bool() | int() | str() | None:
                return value
            case float():
                return value if math.isfinite(value) else {"float": repr(value)}
            case tuple():
                return {"tuple": [self._told(each) for each in value]}
            case list():
                return {"list": [self._told(each) for each in value]}
            case slice():
                return {"slice": [self._told(v) for v in (value.start, value.stop, value.step)]}
            case torch.dtype():
                return {"dtype": str(value).removeprefix("torch.")}
            case torch.device():
                return {"device": None}
            case torch.memory_format():
                return {"layout": str(value).removeprefix("torch.")}
        if value is Ellipsis:
            return {"ellipsis": None}
        raise NotTraced(f"forward passes a {type(value).__name__} to a function")

    def reply(self, case: Case, result: Any) -> dict[str, Any]:
        """All that was seen, as plain values."""
        if not isinstance(result, torch.Tensor | tuple | list):
            raise NotTraced(f"forward returns a {type(result).__name__}")
        outputs = [result] if isinstance(result, torch.Tensor) else list(result)
        if not all(isinstance(each, torch.Tensor) for each in outputs):
            raise NotTraced("forward returns other things than tensors")
        return {
            "tensors": self._shapes,
            "calls": self._calls,
            "arguments": [
                [name, self._told(value)]
                for name, value in zip(case.names, case.inputs, strict=True)
            ],
            "init": [[name, self._told(value)] for name, value in case.init.items()],
            "outputs": [self._told(each)["ref"] for each in outputs],
            "returns": type(result).__name__ if outputs[0] is not result else "Tensor",
        }


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _found(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _found(each)
    elif isinstance(value, dict):
        yield from _found(list(value.values()))


def _is_random(name: str, kwargs: dict[str, Any]) -> bool:
    last = name.rpartition(".")[2]
    if "dropout" in last:
        return bool(kwargs.get("training", True))
    return any(each in last for each in _RANDOM)
