"""A captured call made small: kernels as trees, memory that nobody needs left out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelsmith.propose.rules.compiler.call import (
    Alias,
    Allocate,
    Call,
    Kernel,
    Launch,
    Library,
    Listed,
    Named,
    Operand,
    Part,
    Step,
    Viewed,
)
from kernelsmith.propose.rules.compiler.cpp_entries import Entry, declared, entered
from kernelsmith.propose.rules.compiler.cpp_fusion import fused
from kernelsmith.propose.rules.compiler.cpp_operands import operands_of
from kernelsmith.propose.rules.compiler.cpp_parser import parsed
from kernelsmith.propose.rules.compiler.cpp_passes import readable, simplified
from kernelsmith.propose.rules.compiler.cpp_pointers import one_pointer_each
from kernelsmith.propose.rules.compiler.cpp_reader import roots
from kernelsmith.propose.rules.compiler.cpp_samples import sampled
from kernelsmith.propose.rules.compiler.cpp_scratch import in_scratch
from kernelsmith.propose.rules.compiler.cpp_tree import (
    Function,
    stored,
)
from kernelsmith.propose.rules.graph import NotRecognised


@dataclass(frozen=True, slots=True, kw_only=True)
class Routine:
    """A kernel as it is launched in one place."""

    name: str
    function: Function
    finals: frozenset[str]
    """Pointers that only the caller reads."""
    shared: frozenset[str]
    """Pointers that may share memory."""
    own: Kernel | None = None
    """One that takes the place of a library call; it has no tree."""
    entry: Entry | None = None
    """What is passed to it, where that is not a pointer for each parameter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one call does."""

    call: Call
    """Its launches name routines, and pass no more than those need."""
    routines: tuple[Routine, ...]


def planned(call: Call) -> Plan:
    """Simplify a call.

    Raises:
        NotRecognised: It has no kernel of its own, or one that cannot be written.
    """
    if not any(isinstance(step, Launch) for step in call.steps):
        kept = [step.target for step in call.steps if isinstance(step, Library)]
        raise NotRecognised(f"the compiler leaves all of it to {', '.join(kept) or 'nobody'}")
    kernels = {each.name: each for each in call.kernels}
    known = roots(call)
    steps: list[Step] = []
    routines: list[Routine] = []
    for number, step in enumerate(call.steps):
        if not isinstance(step, Launch):
            steps.append(_followed(step, known))
            continue
        kernel = kernels[step.kernel]
        name = f"{_short(step.kernel)}_{len(routines)}"
        if kernel.schedule == "template":
            nothing = Function(parameters=(), body=())
            made = Routine(
                name=name, function=nothing, finals=frozenset(), shared=frozenset(), own=kernel
            )
            operands = tuple(_addressed(each, known) for each in step.operands)
        else:
            function = parsed(kernel.text)
            function = sampled(function) if "grid_sampler" in step.kernel else function
            made, operands = _routine(call, number, step, function, known)
        routines.append(replace(made, name=name))
        steps.append(Launch(kernel=name, operands=operands))
    changed = replace(call, steps=tuple(steps), kernels=())
    return _entered(in_scratch(_without_unused(changed, known)), routines)


def _entered(call: Call, routines: list[Routine]) -> Plan:
    """With each tensor passed once to each routine."""
    by_name = {each.name: each for each in routines}
    steps: list[Step] = []
    for step in call.steps:
        if isinstance(step, Launch):
            made = by_name[step.kernel]
            pointers = declared(made.own.text) if made.own else made.function.parameters
            entry, operands = entered(pointers, step.operands)
            by_name[made.name] = replace(made, entry=entry)
            steps.append(replace(step, operands=operands))
        else:
            steps.append(step)
    return Plan(call=replace(call, steps=tuple(steps)), routines=tuple(by_name.values()))


def _addressed(operand: Operand, known: Mapping[str, Named | Viewed]) -> Operand:
    """An operand as the memory that it lies in."""
    name, offset = _root(operand, known)
    return Viewed(name=name, shape=(), stride=(), offset=offset) if offset else Named(name=name)


def _followed(step: Step, known: Mapping[str, Named | Viewed]) -> Step:
    """The same step with every tensor under its first name."""
    match step:
        case Library(operands=operands, keywords=keywords, out=out):
            if out is not None and out in known:
                root = known[out]
                if isinstance(root, Viewed):
                    keywords, out = (*keywords, ("out", root)), None
                else:
                    out = root.name
            return replace(
                step, out=out, operands=tuple(_resolved(each, known) for each in operands),
                keywords=tuple((key, _resolved(value, known)) for key, value in keywords),
            )  # fmt: skip
        case Part(of=of):
            return replace(step, of=known[of].name) if of in known else step
    return step


def _short(kernel: str) -> str:
    name = kernel.removeprefix("cpp_").removeprefix("fused_").strip("_")
    while name and name[-1].isdigit():
        name = name[:-1]
    words = [each for each in name.strip("_").split("_") if each]
    return "_".join(words[:6]) or "kernel"


def _root(operand: Operand, known: Mapping[str, Named | Viewed]) -> tuple[str, int]:
    """The memory that an operand lies in, and from where on."""
    if not isinstance(operand, Named | Viewed):
        raise NotRecognised("the compiler passes a number to a kernel")
    base = known.get(operand.name, Named(name=operand.name))
    offset = base.offset if isinstance(base, Viewed) else 0
    return base.name, offset + (operand.offset if isinstance(operand, Viewed) else 0)


def _routine(
    call: Call, number: int, launch: Launch, function: Function,
    known: Mapping[str, Named | Viewed],
) -> tuple[Routine, tuple[Operand, ...]]:  # fmt: skip
    places = [_root(each, known) for each in launch.operands]
    if len(places) != len(function.parameters):
        raise NotRecognised("the compiler's wrapper and its kernel differ in arguments")
    named = zip(function.parameters, places, strict=True)
    function, memory = one_pointer_each(function, {name: at for (name, _), at in named})
    names = [name for name, _ in function.parameters]
    crowded = {
        name for name in names
        if sum(place[0] == memory[name][0] for place in memory.values()) > 1
    }  # fmt: skip
    given = {each.name for each in call.arguments}
    written = stored(function.body)
    later = _used_elsewhere(call, number, known)
    results = {_root(each, known)[0] for each in call.results if isinstance(each, Named | Viewed)}
    scratch = frozenset(
        name for name in names
        if memory[name][0] not in later | results | given and name not in crowded
    )  # fmt: skip
    mutated = {name for name in names if name in written and memory[name][0] in given}
    # Where two pointers lie in one tensor, nothing is known about the order of what they do.
    simple = function
    if not crowded & written:
        simple = fused(function, unsure=frozenset(mutated))
        simple = simplified(simple, scratch=scratch)
    made = readable(simple)
    finals = frozenset(n for n in names if memory[n][0] in results - later and n not in crowded)
    routine = Routine(name="", function=made, finals=finals, shared=frozenset(crowded | mutated))
    operands: list[Operand] = []
    for name, _ in made.parameters:
        place, offset = memory[name]
        operands.append(
            Viewed(name=place, shape=(), stride=(), offset=offset) if offset
            else Named(name=place)
        )  # fmt: skip
    return routine, tuple(operands)


def _used_elsewhere(call: Call, number: int, known: Mapping[str, Named | Viewed]) -> set[str]:
    """Memory that any other step touches."""
    found: set[str] = set()
    for position, step in enumerate(call.steps):
        if position == number:
            continue
        for operand in operands_of(step):
            if isinstance(operand, Named | Viewed):
                found.add(_root(operand, known)[0])
    return found


def _without_unused(call: Call, known: Mapping[str, Named | Viewed]) -> Call:
    """Without memory that nothing needs any more."""
    needed = {
        _root(each, known)[0]
        for step in call.steps for each in operands_of(step) if isinstance(each, Named | Viewed)
    }  # fmt: skip
    needed |= {_root(each, known)[0] for each in call.results if isinstance(each, Named | Viewed)}
    steps = tuple(
        step for step in call.steps
        if not (isinstance(step, Allocate) and step.name not in needed)
        and not isinstance(step, Alias)
    )  # fmt: skip
    return replace(
        call, steps=steps, results=tuple(_resolved(each, known) for each in call.results)
    )


def _resolved(operand: Operand, known: Mapping[str, Named | Viewed]) -> Operand:
    """A result by what it stands for."""
    match operand:
        case Named(name=name):
            return known.get(name, operand)
        case Viewed(name=name, offset=offset):
            base = known.get(name, Named(name=name))
            before = base.offset if isinstance(base, Viewed) else 0
            return replace(operand, name=base.name, offset=before + offset)
        case Listed(items=items):
            return Listed(items=tuple(_resolved(each, known) for each in items))
    return operand
