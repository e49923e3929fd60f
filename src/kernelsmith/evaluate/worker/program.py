"""The candidate's side of the boundary: turn inputs into outputs, say where they lie."""

import gc
import linecache
import random
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import ModuleType

import torch

from kernelsmith.evaluate.sandbox.channel import receive, send
from kernelsmith.evaluate.worker import builds
from kernelsmith.evaluate.worker.arena import Arena
from kernelsmith.evaluate.worker.trees import describe, flatten, unflatten

FILE = "candidate.py"
Message = dict[str, object]
Verb = Callable[[Message, list[int]], Message]
_COMPILATION = (
    "CompilationError", "CompileTimeAssertionFailure", "PTXASError",
    "UnsupportedLanguageConstruct", "OutOfResources",
)  # fmt: skip
"""How Triton says that a kernel does not build; it is not imported here to be asked."""


class Program:
    """One loaded candidate (or baseline: the same code serves both sides)."""

    device = "cpu"

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._model: torch.nn.Module | None = None
        self._forward: Callable[..., object]
        self._state: dict[str, torch.Tensor] = {}
        self._calls: list[tuple[list[object], dict[str, object]]] = []
        self._outputs: list[object] = []

    def load(self, message: Message, fds: list[int]) -> Message:
        """Run the source and construct what it defines."""
        source, entry = str(message["source"]), str(message["entry"])
        torch.set_num_threads(int(str(message["threads"])))
        builds.install(self._control, source)
        module = execute(source)
        if not hasattr(module, entry):
            return {"missing": entry}
        target = getattr(module, entry)
        if message["function"]:
            self._forward = target
            return {"state": [], "prepare": False}
        _reseed(int(str(message["seed"])))
        leaves = _leaves(message["leaves"], fds)
        arguments = unflatten(message["init"], leaves)
        assert isinstance(arguments, list)
        with torch.device(self.device) if self.device != "cpu" else nullcontext():
            model = target(**arguments[0]) if message["keywords"] else target(*arguments)
        if self.device != "cpu":
            model = model.to(self.device)
        if dtype := message["dtype"]:
            model = model.to(getattr(torch, str(dtype)))
        model.train(bool(message["training"]))
        self._model, self._forward = model, model
        return {"state": self._describe_state(), "prepare": hasattr(model, "prepare")}

    def weights(self, message: Message, fds: list[int]) -> Message:
        """Take the reference's values, in place. Only the first time do loading hooks run."""
        assert self._model is not None
        tensors = _leaves(message["leaves"], fds)
        keys = message["keys"]
        assert isinstance(keys, list)
        state = dict(zip(keys, tensors, strict=True))
        with torch.no_grad():
            if message["first"]:
                self._model.load_state_dict(state, strict=True)
            else:
                for key, tensor in self._state.items():
                    tensor.copy_(state[key])
            if message["prepare"]:
                self._model.prepare()  # type: ignore[operator]
        return {"state": self._describe_state()}

    def arrange(self, message: Message, fds: list[int]) -> Message:
        """Lay each slot's arguments over the shared memory; contents come and go there."""
        arena = Arena(fds[0])
        self._calls = []
        slots = message["slots"]
        assert isinstance(slots, list)
        for slot in slots:
            leaves = [arena.tensor(leaf) for leaf in slot["leaves"]]
            arguments = unflatten(slot["tree"], leaves)
            assert isinstance(arguments, list)
            self._calls.append((arguments, {}))
            if slot["keywords"]:
                self._calls[-1] = ([], arguments[0])
        return {}

    def run(self, message: Message, _: list[int]) -> Message:
        """Launch once per slot, then say where every output lies. This is what is timed."""
        slots = message["slots"]
        assert isinstance(slots, list)
        calls = [self._calls[slot] for slot in slots]
        outputs: list[object] = []
        keep, forward = outputs.append, self._forward
        with torch.no_grad():
            for arguments, keywords in calls:
                keep(forward(*arguments, **keywords))
        self._outputs = outputs
        return placed(outputs)

    def release(self, _: Message, __: list[int]) -> Message:
        """Let go of the last outputs; the judge has read them and written over them."""
        self._outputs.clear()
        return {"state": self._describe_state()}

    def modules(self, _: Message, __: list[int]) -> Message:
        """Name what is loaded. Its word can convict a candidate, never acquit it."""
        return {"modules": [name for name in sys.modules if name.startswith("torch._")]}

    def _describe_state(self) -> list[object]:
        if self._model is None:
            return []
        self._state = dict(self._model.state_dict(keep_vars=False))
        return [[key, describe(tensor)] for key, tensor in self._state.items()]


def serve(control: socket.socket, fds: list[int]) -> None:
    """Answer the judge until it hangs up."""
    del fds
    program = Program(control)
    gc.disable()  # a collection in the middle of a sample would be charged to its side
    verbs: dict[str, Verb] = {
        "load": program.load,
        "weights": program.weights,
        "arrange": program.arrange,
        "run": program.run,
        "release": program.release,
        "modules": program.modules,
    }
    answer(control, verbs)


def answer(control: socket.socket, verbs: Mapping[str, Verb]) -> None:
    """Turn each message into a reply, whatever the candidate does meanwhile."""
    while True:
        message, passed = receive(control)
        try:
            reply = verbs[str(message["do"])](message, passed)
        except builds.BuildRefused as error:
            reply = {"refused_build": str(error)}
        except BaseException as error:  # whatever the candidate raises is its own doing
            reply = {"error": explain(error), "compiling": _is_compilation(error)}
        send(control, reply)


def _is_compilation(error: BaseException | None) -> bool:
    """Whether Triton's compiler said no, here or on the way."""
    while error is not None:
        if type(error).__name__ in _COMPILATION:
            return True
        error = error.__cause__ or error.__context__
    return False


def placed(outputs: list[object]) -> Message:
    """Say where every output lies, and what the first launch's look like."""
    first: list[torch.Tensor] = []
    tree = flatten(outputs[0], first, by_key=True) if outputs else None
    return {
        "addresses": _addresses(outputs),
        "tree": tree,
        "leaves": [describe(leaf) for leaf in first],
    }


def execute(source: str) -> ModuleType:
    """Run a source as the module that candidates are."""
    module = ModuleType("candidate")
    sys.modules["candidate"] = module
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    exec(compile(source, FILE, "exec"), module.__dict__)
    return module


def _addresses(outputs: list[object]) -> list[list[int]]:
    address = torch.Tensor.data_ptr
    found = []
    for output in outputs:
        if type(output) is torch.Tensor:
            found.append([address(output)])
            continue
        leaves: list[torch.Tensor] = []
        flatten(output, leaves, by_key=True)
        found.append([address(leaf) if leaf.layout is torch.strided else 0 for leaf in leaves])
    return found


def _leaves(leaves: object, fds: list[int]) -> list[torch.Tensor]:
    assert isinstance(leaves, list)
    if not leaves:
        return []
    arena = Arena(fds[0])
    return [arena.tensor(leaf).clone() for leaf in leaves]


def _reseed(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)


def explain(error: BaseException) -> str:
    """The traceback from the candidate's own lines on; our frames say nothing to a proposer."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == FILE]
    start = frames.index(own[0]) if own else max(0, len(frames) - 3)
    lines = traceback.format_list(frames[start:][-12:])
    return "".join([*lines, *traceback.format_exception_only(error)])[-6000:]
