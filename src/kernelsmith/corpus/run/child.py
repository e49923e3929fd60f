"""In the sandbox: one extracted module, from its source to a checked task file or a reason."""

import re
import socket
import sys
import warnings
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

import torch

from kernelsmith.corpus.inputs.merge import merged
from kernelsmith.corpus.inputs.recipe import Recipe, write
from kernelsmith.corpus.inputs.repair import (
    BOOL,
    FLOAT,
    INDEX,
    LENGTH,
    SIDE,
    Other,
    State,
    Tensor,
    Value,
)
from kernelsmith.corpus.run import checks
from kernelsmith.corpus.run.attempt import attempted, works
from kernelsmith.corpus.run.find import FILE, Finder, Job, NotFound, why
from kernelsmith.corpus.run.idle import busy
from kernelsmith.corpus.run.settle import settled
from kernelsmith.corpus.run.stretch import stretched
from kernelsmith.evaluate.sandbox.channel import receive, send

Message = dict[str, object]


def serve(control: socket.socket, fds: list[int]) -> None:
    """Answer one request: a job in, a finding out."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(700)
    message, _ = receive(control)
    fields: Any = message
    try:
        if "check" in fields:
            answer = recheck(fields["check"])
        elif "graph" in fields:
            answer = {
                "reason": "",
                "code": "",
                "graph": checks.graph_without_memory(fields["graph"]),
            }
        else:
            answer = examine(Job(**fields["job"]))
    except MemoryError:
        answer = {"reason": "too large", "detail": "memory ran out"}
    except BaseException as error:  # harvested code may raise anything, SystemExit too
        large = "allocate memory" in str(error)
        reason = "too large" if large else "fails in an unforeseen way"
        answer = {"reason": reason, "detail": why(error)}
    send(control, answer)


def recheck(text: str) -> Message:
    """Check a task file that is finished already: an expert's, or one composed of others."""
    try:
        module = checks.load(text)
        listed = module.get_workloads() if hasattr(module, "get_workloads") else []
        sizes = [dict(each["inputs"]) for each in listed if each.get("inputs")]
        return {"reason": "", "code": text, **_facts(checks.check(text, sizes)),
                "workloads": max(1, len(listed))}  # fmt: skip
    except checks.Unfit as error:
        return {"reason": error.reason, "detail": error.detail}


def examine(job: Job) -> Message:
    """Find out how a module is used, write its task file, and check that."""
    space = ModuleType("task").__dict__
    space["__name__"] = "task"
    try:
        exec(compile(job.source, FILE, "exec"), space)
    except BaseException as error:
        return {"reason": "does not load", "detail": why(error)}
    finder = Finder(job, space)
    try:
        recipe, model, state, how = _found(finder)
    except NotFound as error:
        return {"reason": error.reason, "detail": error.detail}
    return _finished(finder, recipe, model, state, how)


def _found(finder: Finder) -> tuple[Recipe, torch.nn.Module, State, str]:
    """Try the beginnings in turn; the first error of the last one is reported."""
    failed = NotFound("cannot be constructed", "")
    beginnings = finder.recipes()
    for index, beginning in enumerate(beginnings):
        authors = index < len(beginnings) - (2 if finder.job.config else 1)
        how = "authors' constructor" if authors else "found"
        try:
            recipe, model = finder.constructed(beginning)
        except NotFound as error:
            failed = error
            continue
        try:
            return recipe, model, finder.inputs(model, recipe), how
        except NotFound as error:
            failed = error
        for other in _widened(finder, recipe, failed.detail):
            try:
                again = finder.construct(other)
                return other, again, finder.inputs(again, other), how
            except (KeyboardInterrupt, MemoryError):
                raise
            except BaseException:  # it was only worth a try
                continue
        example = finder.job.examples[index] if authors else None
        if example is not None and example["called"]:
            state = authors_state(finder, example)
            if state and _runs(finder, model, state):
                return recipe, model, state, "authors' call"
    raise failed


def _widened(finder: Finder, recipe: Recipe, detail: str) -> list[Recipe]:
    """Other widths for the constructor where two widths in the module do not meet."""
    numbers = [n for n in re.findall(r"\d+", detail) if 1 < int(n) < 4096]
    found = []
    for name, text in recipe.init.items():
        if re.fullmatch(r"[1-9]\d*", text):
            for number in dict.fromkeys(numbers):
                if number != text and int(number) % int(text) == 0:
                    found.append(replace(recipe, init={**recipe.init, name: number}))
    return found[:3]


def _runs(finder: Finder, model: torch.nn.Module, state: State) -> bool:
    return works(lambda: finder.call(model, state))


def authors_state(finder: Finder, example: dict[str, Any]) -> State:
    """The inputs of the authors' own call, as tensors to be drawn; empty where one is no tensor."""
    names = [p.name for p in finder._forward()]
    texts = list(zip(names, example["inputs"], strict=False))
    texts += [(name, text) for name, text in example["inputs_named"]]
    found: list[tuple[str, Value]] = []
    for name, text in texts:
        try:
            value = eval(text, {"torch": torch, "nn": torch.nn})
        except Exception_:
            return ()
        if isinstance(value, torch.Tensor):
            kind = (
                FLOAT if value.is_floating_point() else BOOL if value.dtype is torch.bool else INDEX
            )
            high = int(value.max()) + 1 if kind == INDEX and value.numel() else 8
            found.append((name, Tensor(tuple(value.shape), kind, max(high, 1))))
        else:
            found.append((name, Other(text)))
    return tuple(found)


Exception_ = (TypeError, ValueError, RuntimeError, NameError, AttributeError, IndexError, KeyError)


def _finished(
    finder: Finder, recipe: Recipe, model: torch.nn.Module, state: State, how: str
) -> Message:
    job = finder.job

    def make() -> torch.nn.Module:
        return finder.construct(recipe)

    model, state, notes = settled(model, state, finder.call, make)
    agreement, theirs = _agreement(finder, recipe, state)
    shapes = [value.shape for _, value in theirs if isinstance(value, Tensor)]
    if agreement not in ("", "yes") and any(len(shape) > 1 for shape in shapes):
        for other in (_larger(theirs), theirs):
            if _runs(finder, model, other):
                state, notes, how = other, [], "authors' call"
                break
    accepted = finder._forward()
    optional = [p.name for p in accepted if p.default is not p.empty]
    state, idle = busy(make, state, optional)
    stretched(state, lambda each: finder.call(model, each), recipe)
    given = [name for name, _ in state]
    recipe.named = given != [p.name for p in accepted][: len(given)] or any(
        p.kind is p.KEYWORD_ONLY and p.name in given for p in accepted
    )
    if recipe.config and not recipe.as_dict:
        asked = {name for name in finder.asked if name in recipe.values}
        recipe.values = {name: text for name, text in recipe.values.items() if name in asked}
    output = finder.call(model, state)
    recipe.unpack = not isinstance(output, torch.Tensor | list | tuple | dict)
    if isinstance(output, dict) and type(output) is not dict:
        recipe.unpack = True
    failed = checks.Unfit("")
    for draw in ("randn", "rand"):
        recipe.draw = draw
        text = merged(write(job.source, recipe, job.about))
        try:
            facts = checks.check(text, recipe.workloads)
        except checks.Unfit as error:
            failed = error
            if error.reason == "not finite":
                continue
            break
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            return {"reason": "its task file fails", "detail": why(error)}
        facts.notes = [*notes, *idle, *facts.notes]
        return {
            "reason": "", "code": text, "how": how, "agreement": agreement, **_facts(facts),
            "workloads": 1 + len(recipe.workloads), "config": bool(recipe.config),
        }  # fmt: skip
    return {"reason": failed.reason, "detail": failed.detail}


def _facts(facts: checks.Facts) -> Message:
    return {
        "random": facts.random, "stateful": facts.stateful, "exact": facts.exact,
        "parameters": facts.parameters, "seconds": round(facts.seconds, 5),
        "ops": dict(facts.ops), "graph": facts.graph, "notes": facts.notes[:8],
        "inputs": facts.inputs, "outputs": facts.outputs[:16],
    }  # fmt: skip


def _larger(state: State) -> State:
    """Authors test on images of four by five: the same ranks at sizes that somebody would time."""

    def grown(value: Value) -> Value:
        if not isinstance(value, Tensor) or len(value.shape) < 3 or value.dtype != FLOAT:
            return value
        sides = (SIDE, SIDE) if len(value.shape) > 3 else (LENGTH,)
        return replace(value, shape=(*value.shape[: -len(sides)], *sides))

    return tuple((name, grown(value)) for name, value in state)


def _agreement(finder: Finder, recipe: Recipe, state: State) -> tuple[str, State]:
    """Whether inputs that were found agree in number, rank and type with the authors' own."""
    for example in finder.job.examples:
        if not example["called"]:
            continue
        theirs = authors_state(finder, example)
        tensors = [v for _, v in theirs if isinstance(v, Tensor)]
        if not tensors:
            continue
        own = Recipe(recipe.root, init=_example_init(finder, example))
        other = attempted(partial(finder.construct, own))
        if other is None or not _runs(finder, other, theirs):
            continue  # the example may be of another class of this name
        ours = [v for _, v in state if isinstance(v, Tensor)]
        if len(ours) != len(tensors):
            return "number", theirs
        if any(len(a.shape) != len(b.shape) for a, b in zip(ours, tensors, strict=True)):
            return "rank", theirs
        if any(a.dtype != b.dtype for a, b in zip(ours, tensors, strict=True)):
            return "type", theirs
        return "yes", theirs
    return "", ()


def _example_init(finder: Finder, example: dict[str, Any]) -> dict[str, str]:
    names = [p.name for p in finder.parameters()
             if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    given = dict(zip(names, example["init"], strict=False))
    return given | {name: text for name, text in example["init_named"]}
