"""The process in which torch's compiler runs: JSON in, JSON out, nothing built where possible."""

import fcntl
import gc
import json
import os
import re
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from types import ModuleType
from typing import Any

import torch

from kernelsmith.propose.rules.compiler import paths
from kernelsmith.propose.rules.compiler.exact_attention import only_exact
from kernelsmith.propose.rules.compiler.facts import Facts
from kernelsmith.propose.rules.compiler.imagined import (
    IMAGINED,
    NOT_TRIED,
    Hollow,
    imagine,
    is_here,
)
from kernelsmith.propose.rules.compiler.tuning import launched, tuned
from kernelsmith.propose.rules.compiler.turns import Turn, time_alone

Message = dict[str, Any]
_MAX_CONSTANT = 256
"""Elements of a constant that may stand in a candidate's text."""
_MODAL = re.compile(r"Dropout|BatchNorm|InstanceNorm|RReLU|LSTM|GRU|RNN|Parametrized|Spectral")


class _Enough(BaseException):
    """The text is there; what would follow is building it."""


def _too_long(number: int, frame: object) -> None:
    raise _Enough


class _Unfit(Exception):
    """Something that a stand-alone candidate cannot repeat; the text says what."""


class Capture:
    """One compilation, and what was seen of it."""

    def __init__(self, message: Message, turn: Turn, *, timed_alone: bool = False) -> None:
        self._message = message
        self._turn = turn
        self._timed_alone = timed_alone
        """Whether the compiler's own stopwatch takes the turn; else it is held all along."""
        self._device = str(message["device"])
        self._codes: list[str] = []
        self._constants: list[dict[str, object]] = []
        self._arguments: list[dict[str, object]] = []
        self._outputs: list[torch.Tensor] = []
        self._graphs = 0
        self._scope: dict[str, object] = {}
        self._made_with: list[tuple[str, str]] = []
        self._launched: list[Any] = []
        self._left = float(message["measure_s"])
        self._hollow = self._imagined()
        self._measures = self._left > 0 and self._hollow is None

    def run(self) -> Message:
        """Compile the task and say what came out."""
        module = self._module()
        with self._turn.held(alone=False):
            function, model = self._target(module)
            args, keywords = self._inputs(module)
            _finish(self._device)
        bound = paths.bound(function, args, keywords)
        self._scope = {"self": model, **bound}
        before = _state(model)
        found = self._compile(function, args, keywords)
        after = _state(model)
        changed = sorted(k for k in {**before, **after} if before.get(k) != after.get(k))
        assigned = [(paths.dotted(k, model), self._assigned(model, k, bound)) for k in changed]
        if self._graphs != 1 or not self._codes:
            raise _Unfit("forward holds nothing for torch's compiler")
        numbers = list(paths.numbers(bound))
        return {
            "code": self._codes[-1],
            "arguments": self._arguments,
            "numbers": numbers,
            "tree": paths.template(found, self._outputs, bound),
            "outputs": len(self._outputs),
            "training": model.training if _modal(model, str(self._message["source"])) else None,
            "made_with": self._made_with,
            "assigned": assigned,
            "constants": self._constants,
            "tuned": tuned(self._launched),
            "torch": torch.__version__,
        }

    def _imagined(self) -> Hollow | None:
        """Where tensors are made for a GPU that is not here; none where there is one."""
        if self._device == "cpu" or is_here():
            return None
        gpu = self._message["gpu"]
        if gpu is None:
            raise _Unfit("there is no GPU here to compile for")
        if self._message["settings"].get("max_autotune"):
            raise _Unfit("there is no GPU here to try the compiler's templates on")
        imagine(Facts(**gpu))
        self._device = IMAGINED
        return Hollow()

    def _assigned(self, model: Any, name: str, bound: dict[str, object]) -> str:
        """A tensor that forward leaves in the module, by the result that it is."""
        *owner, last = name.split(".")
        value = vars(model.get_submodule(".".join(owner))).get(last)
        if not isinstance(value, torch.Tensor):
            raise _Unfit(f"forward changes self.{name}")
        return paths.template(value, self._outputs, bound)

    def _module(self) -> ModuleType:
        source = str(self._message["source"])
        with open("task.py", "w") as file:
            file.write(source)
        module = sys.modules["task"] = ModuleType("task")
        module.__file__ = os.path.abspath("task.py")
        exec(compile(source, module.__file__, "exec"), module.__dict__)
        return module

    def _target(self, module: ModuleType) -> tuple[Callable[..., object], Any]:
        """What is compiled, in the judge's way: constructed on the device, cast, in its mode."""
        target = getattr(module, str(self._message["entry"]))
        if self._message["entry"] != "Model":
            return target, None
        torch.manual_seed(0)
        values: Any = getattr(module, "get_init_inputs", list)(**self._message["init"])
        self._made_with = paths.given(target, values)
        torch.manual_seed(0)
        model = self._made(
            lambda: target(**values) if isinstance(values, dict) else target(*values)
        )
        dtype = getattr(torch, self._message["dtype"]) if self._message["dtype"] else None
        if self._hollow is None:
            model = model.to(self._device, dtype)
        elif dtype is not None:
            model = self._hollow.cast(model, dtype)
        model.train(bool(self._message["training"]))
        if model._forward_hooks or model._forward_pre_hooks:
            raise _Unfit("the module has hooks")
        return model.forward, model

    def _inputs(self, module: ModuleType) -> tuple[list[Any], dict[str, Any]]:
        torch.manual_seed(1)
        values = self._made(lambda: module.get_inputs(**self._message["arguments"]))
        dtype = self._message["dtype"]

        def own(value: object) -> object:
            if not isinstance(value, torch.Tensor):
                return value
            leaf = value.detach().to(self._device)
            if dtype and leaf.is_floating_point():
                leaf = leaf.to(getattr(torch, dtype))
            dense = leaf.is_contiguous() or leaf.dim() >= 4
            kept = torch.preserve_format if dense else torch.contiguous_format
            return leaf.clone(memory_format=kept)

        values = paths.mapped(own, values)
        if isinstance(values, dict):
            return [], values
        return (list(values), {}) if isinstance(values, list | tuple) else ([values], {})

    def _made(self, make: Callable[[], Any]) -> Any:
        """A model or inputs, on the device."""
        if self._hollow is not None:
            return self._hollow.made(make)
        with nullcontext() if self._device == "cpu" else torch.device(self._device):
            return make()

    def _compile(self, function: Any, args: list[Any], keywords: dict[str, Any]) -> object:
        from torch._inductor.graph import GraphLowering

        GraphLowering.save_output_code = staticmethod(self._save)
        with ExitStack() as stack:
            tried = {} if self._hollow is None else NOT_TRIED
            for patch in _settings({**self._message["settings"], **tried}):
                stack.enter_context(patch)
            stack.enter_context(torch.no_grad())
            if self._hollow is not None:
                stack.enter_context(self._hollow.mode)
            if self._message["settings"].get("max_autotune") and not self._timed_alone:
                stack.enter_context(self._turn.held(alone=True))
            compiled = torch.compile(function, backend=self._backend, fullgraph=True, dynamic=False)
            return compiled(*args, **keywords)

    def _save(self, code: str) -> None:
        self._codes.append(code)
        self._constants = list(_constants())
        if not self._measures:
            raise _Enough
        self._arm()

    def _backend(self, graph: Any, examples: list[Any]) -> Callable[..., object]:
        """Let Inductor write its text; answer with tensors that can be told apart later."""
        from torch._inductor.compile_fx import compile_fx

        self._graphs += 1
        holders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._arguments = [
            self._argument(number, node, example)
            for number, (node, example) in enumerate(zip(holders, examples, strict=True))
        ]
        ends = next(node for node in graph.graph.nodes if node.op == "output").args[0]
        compiled: Any = None
        try:
            compiled = compile_fx(graph, examples)
        except _Enough:
            pass
        except BaseException:  # after the text is there, nothing that goes wrong matters
            if not self._codes:
                raise
        finally:
            left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
            self._left = max(left, 5.0)
        likes: list[Any] = [paths.example(node) for node in ends]
        if not all(isinstance(like, torch.Tensor) for like in likes):
            raise _Unfit("forward returns a number that depends on its inputs")

        def run(*given: Any) -> object:
            made = self._measured(compiled, given) if compiled is not None else None
            if made is None:
                made = [torch.empty_strided(like.shape, like.stride(), dtype=like.dtype,
                                            device=self._device) for like in likes]  # fmt: skip
            self._outputs = made
            return tuple(made)

        return run

    def _arm(self) -> None:
        """From here on, time is short."""
        signal.signal(signal.SIGALRM, _too_long)
        signal.setitimer(signal.ITIMER_REAL, self._left)

    def _measured(self, compiled: Any, given: tuple[Any, ...]) -> list[torch.Tensor] | None:
        """Run for real, so that the compiler chooses among its configurations."""
        with nullcontext() if self._timed_alone and self._turn.counts else _only_one():
            self._arm()
            try:
                alone = nullcontext() if self._timed_alone else self._turn.held(alone=True)
                with alone, launched() as self._launched:
                    return list(compiled(*given))
            except BaseException:  # the text is good all the same; only the choice is not known
                return None
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                if self._device != "cpu":
                    torch.cuda.empty_cache()  # a library's scratch may be most of the device

    def _argument(self, number: int, node: Any, example: Any) -> dict[str, object]:
        if not isinstance(example, torch.Tensor):
            raise _Unfit(f"the compiler keeps the number {node.name} open")
        path = paths.of(node, example, self._scope)
        if path is None:
            raise _Unfit(f"the tensor {node.name} is neither an input nor part of the module")
        return {
            "name": f"arg{number}_1", "path": path, "shape": list(example.shape),
            "stride": list(example.stride()), "dtype": str(example.dtype).removeprefix("torch."),
        }  # fmt: skip


@contextmanager
def _only_one() -> Iterator[None]:
    """Keep out other compilers, whose kernels would spoil the choice."""
    path = os.path.join(tempfile.gettempdir(), f"kernelsmith-{os.getuid()}-tried")
    with open(path, "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def one_each() -> None:
    """Let each tensor of a concatenation, or of a list, have a kernel of its own.

    The compiler joins them into one that asks which of them it is, launched on a grid of its own
    kind; nothing is gained by that where launches are captured.
    """
    try:
        from torch._inductor.codegen.common import BackendFeature
        from torch._inductor.codegen.triton import TritonScheduling
    except ImportError:  # a version that has them elsewhere
        return
    features: Any = getattr(TritonScheduling, "backend_features", None)
    if features is not None and hasattr(BackendFeature, "FOREACH"):
        features.discard(BackendFeature.FOREACH)


def _finish(device: str) -> None:
    """Wait for what was started on a GPU, while the turn is still held."""
    if device != "cpu":
        torch.cuda.synchronize()


def _settings(wanted: dict[str, object]) -> Iterator[Any]:
    """Configurations of dynamo and Inductor; versions differ in what they know."""
    import torch._dynamo.config as dynamo
    import torch._inductor.config as inductor

    usual = {
        "force_disable_caches": True, "compile_threads": 1, "assert_indirect_indexing": False,
        "graph_partition": False, "memory_planning": False, "triton.cudagraphs": False,
        "triton.mix_order_reduction": False, "triton.cooperative_reductions": False,
        "cpp.vec_isa_ok": True,  # else a dozen test programs are built first
        "dynamo.specialize_float": True,
    }  # fmt: skip
    asked = {**usual, **wanted}
    tracing = {k.removeprefix("dynamo."): v for k, v in asked.items() if k.startswith("dynamo.")}
    yield inductor.patch({k: v for k, v in asked.items() if _knows(inductor, k)})
    yield dynamo.patch({k: v for k, v in tracing.items() if _knows(dynamo, k)})


def _knows(config: Any, name: str) -> bool:
    for part in name.split("."):
        if not hasattr(config, part):
            return False
        config = getattr(config, part)
    return True


def _constants() -> Iterator[dict[str, object]]:
    """Tensors that the generated module carries with it."""
    from torch._inductor.virtualized import V

    for name, tensor in getattr(V.graph, "constants", {}).items():
        if tensor.numel() > _MAX_CONSTANT or tensor.is_complex():
            raise _Unfit(f"the compiler keeps a constant of {tensor.numel()} elements")
        yield {
            "name": name, "shape": list(tensor.shape), "stride": list(tensor.stride()),
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "values": tensor.detach().cpu().flatten().tolist(),
        }  # fmt: skip


def _modal(model: Any, source: str) -> bool:
    if model is None:
        return False
    return ".training" in source or any(
        # A hook may look at it, as spectral norm's does.
        _MODAL.search(type(m).__name__) or m._forward_pre_hooks or m._forward_hooks
        for m in model.modules()
    )


def _state(model: Any) -> dict[str, object]:
    """What a module holds besides the contents of its tensors, to see whether it changes."""
    found: dict[str, object] = {}
    for name, module in model.named_modules() if model is not None else ():
        for key, value in vars(module).items():
            if key in _TORCHS or (key.startswith("_") and isinstance(value, list | set | dict)):
                continue
            found[f"{name}.{key}".lstrip(".")] = _held(value)
        for kind in (module._parameters, module._buffers):
            found |= {f"{name}.{key}".lstrip("."): id(value) for key, value in kind.items()}
    return found


_TORCHS = set(vars(torch.nn.Module()))
_DEEP = 4


def _held(value: object, depth: int = 0) -> object:
    """Numbers and texts as they are, what holds some by its contents, tensors by who they are."""
    if isinstance(value, int | float | str | None):
        return value
    if isinstance(value, dict) and depth < _DEEP:
        return [(_held(k, depth + 1), _held(v, depth + 1)) for k, v in value.items()]
    if isinstance(value, list | tuple) and depth < _DEEP:
        return [_held(each, depth + 1) for each in value]
    if isinstance(value, torch.Tensor):
        return id(value)
    return len(value) if isinstance(value, set) else type(value).__name__


def _line(error: BaseException) -> str:
    """An error of the task or of torch in one line."""
    text = "".join(traceback.format_exception_only(error)).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    why = next((line for line in lines if line.startswith("Explanation:")), "")
    return " ".join([lines[0], why])[:300].strip() if lines else type(error).__name__


def answer(message: Message, turn: Turn, *, timed_alone: bool = False) -> Message:
    """One request; whatever happens, there is a reply."""
    try:
        return Capture(message, turn, timed_alone=timed_alone).run()
    except _Unfit as error:
        return {"skipped": str(error)}
    except BaseException as error:  # a task's source may raise anything; the caller is told
        inner = getattr(error, "inner_exception", None) or error.__cause__ or error
        return {"skipped": str(inner) if isinstance(inner, _Unfit) else _line(inner)}


def _times_alone(turn: Turn) -> bool:
    try:
        from torch._inductor.runtime import benchmarking
    except ImportError:  # a version that times elsewhere
        return False
    return time_alone(benchmarking, turn)


def _silent(*args: object, **keywords: object) -> None:
    """In the place of ``warnings.warn``, which the compiler cannot follow: nobody reads it here."""


def main() -> None:
    """Answer requests line by line; what the task prints goes to the other stream."""
    import torch._dynamo

    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    messages = json.loads(sys.stdin.read())
    turn = Turn(next((each["lock"] for each in messages if each.get("lock")), None))
    timed_alone = _times_alone(turn)
    only_exact()
    one_each()
    warnings.warn = _silent
    for message in messages:
        torch.set_num_threads(int(message["threads"] or torch.get_num_threads()))
        replies.write(json.dumps(answer(message, turn, timed_alone=timed_alone)) + "\n")
        replies.flush()
        torch._dynamo.reset()
        gc.collect()
        if message["device"] != "cpu" and is_here():
            torch.cuda.empty_cache()
    os._exit(0)  # torch's helpers need not wind down


if __name__ == "__main__":
    main()
