"""In the sandbox: arguments that construct a module and inputs it runs on, by trial and error."""

import heapq
import inspect
import re
import time
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from kernelsmith.corpus.inputs.guesses import (
    CONFIG_VALUES,
    completed,
    config_guess,
    fewer_heads,
    init_guesses,
    input_kind,
    shrunk,
)
from kernelsmith.corpus.inputs.recipe import Recipe
from kernelsmith.corpus.inputs.repair import (
    BATCH,
    BOOL,
    FLOAT,
    INDEX,
    LENGTH,
    SIDE,
    Many,
    Other,
    State,
    Tensor,
    Value,
    edits,
)
from kernelsmith.corpus.run.drawing import compared, elements, has_tensor, made
from kernelsmith.corpus.run.layouts import layouts
from kernelsmith.corpus.run.settle import BATCHES

FILE = "task.py"
MOST_PARAMETERS = 60_000_000
_INIT_TRIES, _INPUT_TRIES = 40, 80
_INIT_S, _INPUT_S = 1.2, 1.5
_NAMED_RANKS = (
    (r"3[dD]|[Vv]ideo|[Vv]olume", 5),
    (r"1[dD]|[Ww]aveform", 3),
    (r"2[dD]|[Ii]mages?\b|[Ii]mg|R[gG][bB]|H[sS][vV]|[Pp]atch", 4),
)
"""What a name says about the rank of a batch, where nothing else says it."""


class NotFound(Exception):
    """Nothing that was tried works; the reason and the first error."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


@dataclass(slots=True)
class Job:
    """One extracted module, with all that is known about its arguments."""

    source: str
    root: str
    init: Mapping[str, str] = field(default_factory=dict)
    forward: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, list[str]] = field(default_factory=dict)
    config: str = ""
    config_values: Mapping[str, str] = field(default_factory=dict)
    examples: list[dict[str, Any]] = field(default_factory=list)
    about: str = ""


class _Recorded(types.SimpleNamespace):
    """A config that remembers what was asked of it."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if not name.startswith("__"):
            super().__getattribute__("__dict__").setdefault("__asked__", set()).add(name)
        return value

    def to_dict(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "__asked__"}


def why(error: BaseException) -> str:
    """An error in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


class Finder:
    """Tries one module until it runs, within a budget of tries and of processor time."""

    def __init__(self, job: Job, space: dict[str, Any]) -> None:
        self.job, self.space = job, space
        self.lines = job.source.splitlines()
        self.kind = space[job.root]
        self._configs: list[_Recorded] = []
        self.as_dict = False

    @property
    def asked(self) -> set[str]:
        """What was asked of all configs so far."""
        return {n for each in self._configs for n in each.__dict__.get("__asked__", ())}

    # -- construction ---------------------------------------------------------------------------

    def parameters(self) -> list[inspect.Parameter]:
        """Of the constructor, without ``self``."""
        if self.kind.__init__ is torch.nn.Module.__init__:
            return []
        return list(inspect.signature(self.kind.__init__).parameters.values())[1:]

    def construct(self, recipe: Recipe, device: str = "cpu") -> torch.nn.Module:
        """Make the module; whatever it raises is raised."""
        here = {"torch": torch, "nn": torch.nn, **self.space}
        given = {name: eval(text, here) for name, text in recipe.init.items()}
        if recipe.config:
            values = {name: eval(text, here) for name, text in recipe.values.items()}
            given[recipe.config] = values if recipe.as_dict else _Recorded(**values)
        extra = [eval(text, here) for text in recipe.extra]
        torch.manual_seed(0)
        with torch.device(device):
            model: torch.nn.Module = self.kind(*extra, **given)
        if recipe.config and not recipe.as_dict:
            self._configs.append(given[recipe.config])
        return model.eval()

    def recipes(self) -> list[Recipe]:
        """Ways to begin: the authors' own, then by name, a config's values shrunk twice."""
        found = []
        parameters = self.parameters()
        names = [
            p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        for example in self.job.examples:
            given = dict(zip(names, example["init"], strict=False))
            given |= {name: text for name, text in example["init_named"]}
            if len(example["init"]) <= len(names) and not self.job.config:
                found.append(Recipe(self.job.root, init=given))
        required = [
            p for p in parameters
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]  # fmt: skip
        init = {p.name: init_guesses(p.name, self.job.init.get(p.name, ""))[0]
                for p in required if p.name != self.job.config}  # fmt: skip
        if self.job.config:
            values = dict(self.job.config_values)
            for name in CONFIG_VALUES:
                if re.search(rf"\b{name}\b", self.job.source):
                    values.setdefault(name, CONFIG_VALUES[name])
            values |= {n: CONFIG_VALUES[n] for n in ("_attn_implementation", "use_cache")
                       if n in values}  # fmt: skip
            values = completed(values)
            for each in (shrunk(values), shrunk(values, 64)):
                found.append(Recipe(self.job.root, init=dict(init), config=self.job.config,
                                    values=dict(each)))  # fmt: skip
        else:
            found.append(Recipe(self.job.root, init=fewer_heads(init)))
        return found

    def constructed(self, recipe: Recipe) -> tuple[Recipe, torch.nn.Module]:
        """Search from one beginning until the constructor works.

        Raises:
            NotFound: It never did.
        """
        deadline = time.process_time() + _INIT_S
        queue: list[tuple[int, int, Recipe]] = [(0, 0, recipe)]
        seen = {_key(recipe)}
        first, count = "", 0
        while queue and count < _INIT_TRIES and time.process_time() < deadline:
            cost, _, now = heapq.heappop(queue)
            count += 1
            try:
                self._affordable(now)
                return now, self.construct(now)
            except NotFound:
                raise
            except (KeyboardInterrupt, MemoryError):
                raise
            except BaseException as error:
                first = first or why(error)
                if isinstance(error, NotImplementedError) and "needs " in str(error):
                    raise NotFound("needs what is not here", str(error)[:200]) from None
                for index, each in enumerate(self._construction_edits(now, error)):
                    key = _key(each)
                    if key not in seen:
                        seen.add(key)
                        fixed = each.values != now.values or each.as_dict != now.as_dict
                        heapq.heappush(
                            queue, (cost + (0 if fixed else 1 + index // 4), len(seen), each)
                        )
        raise NotFound("cannot be constructed", first)

    def _affordable(self, recipe: Recipe) -> None:
        """Count parameters without memory first, where there may be many."""
        numbers = [int(n) for text in (*recipe.init.values(), *recipe.values.values())
                   for n in re.findall(r"\d+", text)]  # fmt: skip
        defaults = [p.default for p in self.parameters() if isinstance(p.default, int)]
        deep = len(self.lines) > 120 or any("depth" in p.name or "layers" in p.name
                                            for p in self.parameters())  # fmt: skip
        if max([0, *numbers, *map(int, defaults)]) < 400 and not deep:
            return
        try:
            model = self.construct(recipe, "meta")
        except BaseException:
            return
        count = sum(p.numel() for p in model.parameters()) + sum(b.numel() for b in model.buffers())
        if count > MOST_PARAMETERS:
            raise NotFound("too large", f"{count} parameters")

    def _construction_edits(self, recipe: Recipe, error: BaseException) -> list[Recipe]:
        text = str(error)
        if recipe.config:
            match = re.search(
                r"'(?:_Recorded|SimpleNamespace)' object has no attribute '(\w+)'", text
            )
            if match:
                value = config_guess(match[1], recipe.values)
                return [_with(recipe, values={**recipe.values, match[1]: value})]
            if (
                "not subscriptable" in text
                or "is not a mapping" in text
                or ("has no attribute 'get'" in text)
            ):
                return [_with(recipe, as_dict=True)]
            if isinstance(error, KeyError) and recipe.as_dict:
                name = str(error.args[0])
                return [
                    _with(recipe, values={**recipe.values, name: config_guess(name, recipe.values)})
                ]
        line, _ = self._where(error, "__init__")
        offered = (
            [repr(each) for each in re.findall(r"'(\w+)'", text)][:6]
            if (re.search(r"one of|must be|should be|[Ee]xpected|support|[Uu]nknown|choose", text))
            else []
        )
        parameters = [p for p in self.parameters() if p.name != recipe.config]
        words = set(re.findall(r"\w+", line))
        named = [p for p in parameters if p.name in words]
        rest = [p for p in parameters if p.name not in words and p.name in recipe.init]
        found = []
        for parameter in [*named, *rest]:
            if parameter.kind is parameter.VAR_KEYWORD:
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                if not recipe.extra:
                    found.append(_with(recipe, extra=["nn.Identity()", "nn.Identity()"]))
                continue
            if parameter.name not in recipe.init and parameter not in named:
                continue
            options = init_guesses(parameter.name, self.job.init.get(parameter.name, ""))
            now = recipe.init.get(parameter.name, repr(parameter.default))
            most = 8 if parameter in named else 3
            if now.startswith("'") or parameter in named:
                options = [*offered, *options]
            for option in [each for each in options if each != now][:most]:
                found.append(_with(recipe, init={**recipe.init, parameter.name: option}))
        return found

    def _where(self, error: BaseException, function: str = "") -> tuple[str, Any]:
        """The line of the task that raised, and its frame: of one function, or the innermost."""
        line, frame = "", None
        trace = error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if code.co_filename == FILE and (not function or code.co_name == function):
                number = trace.tb_lineno - 1
                line = self.lines[number] if 0 <= number < len(self.lines) else ""
                frame = trace.tb_frame
                if function:
                    break
            trace = trace.tb_next
        return line.strip(), frame

    # -- inputs ---------------------------------------------------------------------------------

    def inputs(self, model: torch.nn.Module, recipe: Recipe) -> State:
        """Search for inputs that the module runs on.

        Raises:
            NotFound: Nothing did.
        """
        deadline = time.process_time() + _INPUT_S
        queue: list[tuple[int, int, State]] = []
        seen: set[State] = set()
        for index, state in enumerate(self._beginnings(model, recipe)):
            if state not in seen:
                seen.add(state)
                queue.append((index // 2, len(seen), state))
        heapq.heapify(queue)
        first, count = "", 0
        while queue and count < _INPUT_TRIES and time.process_time() < deadline:
            cost, _, state = heapq.heappop(queue)
            count += 1
            try:
                found = self.call(model, state)
            except (KeyboardInterrupt, MemoryError):
                raise
            except BaseException as error:
                first = first or why(error)
                if "needs " in str(error) and isinstance(error, NotImplementedError):
                    raise NotFound("needs what is not here", str(error)[:200]) from None
                for index, each in enumerate(self._input_edits(state, error)):
                    if each not in seen and elements(each) < 1 << 23:
                        seen.add(each)
                        heapq.heappush(queue, (cost + 1 + index // 3, len(seen), each))
                continue
            if has_tensor(found):
                return state
            first = first or f"returns a {type(found).__name__} without a tensor"
        raise NotFound("no inputs found", first)

    def call(self, model: torch.nn.Module, state: State) -> Any:
        """Run the module once on freshly drawn inputs."""
        torch.manual_seed(1)
        with torch.no_grad():
            return model(**{name: made(value) for name, value in state})

    def _input_edits(self, state: State, error: BaseException) -> list[State]:
        line, frame = self._where(error)
        pairs = compared(line, frame) if frame is not None else []
        found = edits(str(error), type(error).__name__, line, state, pairs)
        # An optional argument that the failing line uses may be needed after all.
        for parameter in self._forward():
            name = parameter.name
            used = re.search(rf"\b{re.escape(name)}\b", line)
            if parameter.default is None and used and name not in dict(state):
                first = next((v for _, v in state if isinstance(v, Tensor)), None)
                if first is not None:
                    for value in self._options(name, first, 64)[:2]:
                        found.insert(0, (*state, (name, value)))
        return found

    def _forward(self) -> list[inspect.Parameter]:
        return [
            p for p in list(inspect.signature(self.kind.forward).parameters.values())[1:]
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]  # fmt: skip

    def _beginnings(self, model: torch.nn.Module, recipe: Recipe) -> list[State]:
        parameters = self._forward()
        required = [p for p in parameters if p.default is p.empty]
        if not required:
            required = parameters[:1]
        if not required:
            variadic = inspect.signature(self.kind.forward).parameters
            raise NotFound("takes no inputs" if len(variadic) == 1 else "takes any inputs", "")
        found: list[State] = []
        for value in layouts(model, recipe, self._ranks()):
            width = value.shape[-1] if len(value.shape) != 4 else value.shape[1]
            options = [(p.name, self._options(p.name, value, width)) for p in required]
            base = tuple((name, each[0]) for name, each in options)
            found.append(base)
            # One other choice for one argument at a time.
            if len(found) <= 6:
                for index, (name, each) in enumerate(options):
                    for other in each[1:3]:
                        found.append((*base[:index], (name, other), *base[index + 1 :]))
        return found

    def _ranks(self) -> list[int]:
        for name in (
            "x",
            "input",
            "inputs",
            "hidden_states",
            "img",
            "image",
            "images",
            *self.job.forward,
        ):
            if name in self.job.shapes:
                return [len(self.job.shapes[name])]
        words = " ".join((self.job.root, *self.job.forward))
        return [rank for pattern, rank in _NAMED_RANKS if re.search(pattern, words)][:1]

    def _options(self, name: str, like: Tensor, width: int) -> list[Value]:
        """What one argument may be, where the main input looks like this."""
        kind = input_kind(name, self.job.forward.get(name, ""))
        batch = like.shape[0] if like.shape else BATCH
        length = like.shape[1] if len(like.shape) == 3 else LENGTH
        plain = Tensor(like.shape, FLOAT)
        match kind:
            case "index":
                if like.dtype == INDEX:
                    return [like, plain]
                return [Tensor((batch, length), INDEX, 8), Tensor((batch,), INDEX, 8), plain]
            case "mask":
                return [
                    Other("None"),
                    Tensor((batch, length), BOOL),
                    Tensor((batch, length)),
                    plain,
                ]
            case "lengths":
                full = like.shape[1] if len(like.shape) > 1 else LENGTH
                return [Other(f"torch.full(({batch},), {full})"), Other("None")]
            case "time":
                return [Tensor((batch,)), Tensor((batch,), INDEX, 8), plain]
            case "edges":
                return [Tensor((2, 64), INDEX, batch), Tensor((batch, batch))]
            case "side":
                side = next((s for s in (4, 8, 16) if s * s == length), SIDE)
                return [Other(str(side)), Other("8")]
            case "sides":
                side = next((s for s in (4, 8, 16) if s * s == length), SIDE)
                return [Other(f"({side}, {side})"), Other("(8, 8)")]
            case "rotary":
                small = Tensor((batch, length, 64))
                return [Many((small, small), is_tuple=True), small]
            case "list":
                return [Many((plain, plain)), plain]
            case "flag":
                return [Other("False"), Other("True")]
            case "number":
                # A batch of all of axis 0 would leave one frame or one part to each of it.
                return [Other("1"), Other("2")] if name in BATCHES else [Other("2"), Other("1")]
            case "float":
                return [Other("1.0")]
            case "text":
                return [Other("'mean'"), Other("'none'")]
            case "square":
                return [Tensor((batch, length, length)), Tensor((length, length)), plain]
            case "vector":
                return [plain, Tensor((batch, width)), Tensor((batch, width, 1, 1))]
        if like.dtype == INDEX:
            return [like]
        return [plain, Tensor((batch, width)), Tensor((batch, length, width))]


def _key(recipe: Recipe) -> str:
    return repr((recipe.init, recipe.values, recipe.extra, recipe.as_dict))


def _with(recipe: Recipe, **changes: Any) -> Recipe:
    kept: dict[str, Any] = {name: getattr(recipe, name) for name in (
        "root", "init", "extra", "config", "values", "as_dict")}  # fmt: skip
    return Recipe(**{**kept, **changes})


Search = Callable[[Job], Recipe]
