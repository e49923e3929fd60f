"""What torch's compiler begins and the rules go on with: forms, own products, launches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest

from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.chip import H200, Chip
from kernelsmith.propose.rules.compiler.call import Call, Library
from kernelsmith.propose.rules.compiler.capture import (
    AS_GIVEN,
    AUTOTUNE,
    CHANNELS_LAST,
    DEFAULT,
    UNFUSED,
    Capture,
    Captured,
    Options,
    Request,
    Skipped,
)
from kernelsmith.propose.rules.compiler.compiled import (
    CompiledFamily,
    compiled_family,
    on_gpu,
)
from kernelsmith.propose.rules.compiler.cpp_family import cpp_compiled_family, on_cpu
from kernelsmith.propose.rules.convolutions.depthwise import (
    depthwise_parameters,
    depthwise_seeds,
    windowed,
)
from kernelsmith.propose.rules.convolutions.replace import (
    convolution_parameters,
    convolution_seeds,
    convolved,
)
from kernelsmith.propose.rules.family import Family
from kernelsmith.propose.rules.forms import Form
from kernelsmith.propose.rules.products.replace import (
    library_share,
    product_parameters,
    product_seeds,
    replaced,
)
from kernelsmith.propose.rules.space import Parameter, Parameters, Seed, Space

OPTIONS = (
    DEFAULT,
    AUTOTUNE,
    UNFUSED,
    CHANNELS_LAST,
    AS_GIVEN,
)
DECOY = 0.97
"""Share of the library's products in a call's time above which the judge calls the rest a decoy (at
98 % it does), by an estimate."""


class Captures:
    """Asks the compiler once for everything; closed, it asks no more.

    Whatever would be asked later would run while candidates are timed.
    """

    def __init__(self, ask: Capture) -> None:
        self._ask = ask
        self._kept: dict[Request, Captured | Skipped] = {}
        self._open = True

    def __call__(self, task: Task, requests: Sequence[Request]) -> list[Captured | Skipped]:
        """What the compiler says, or said."""
        missing = [each for each in dict.fromkeys(requests) if each not in self._kept]
        if missing and self._open:
            self._kept.update(zip(missing, self._ask(task, missing), strict=True))
        late = Skipped(reason="the compiler was not asked for this before timing began")
        return [self._kept.get(each, late) for each in requests]

    def close(self) -> None:
        """Answer from what is known from now on."""
        self._open = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reseeded:
    """A family that begins in another order."""

    family: Family
    space: Space
    is_late: bool = False
    """Whether others begin several times before it does: it can hardly be ahead of eager."""

    def source(self, chosen: Parameters) -> str:
        """As the family writes it."""
        return self.family.source(chosen)

    def words(self, chosen: Parameters) -> str:
        """As the family says it."""
        return self.family.words(chosen)


def ordered(forms: Sequence[Form]) -> tuple[Form, ...]:
    """By what the cost model expects; the written form stands for what it has no number for."""
    written = next((each.cost_us for each in forms if each.name == "written"), None)
    if written is None:
        return tuple(forms)
    return tuple(
        sorted(forms, key=lambda each: each.cost_us if each.cost_us is not None else written)
    )


def expected_gain(forms: Sequence[Form]) -> float:
    """How much faster the cheapest form should be than the written one."""
    costs = {each.name: each.cost_us for each in forms if each.cost_us is not None}
    if "written" not in costs:
        return 1.0
    return costs["written"] / min(costs.values())


def from_compiler(
    task: Task, backend: str, forms: Sequence[Form], *,
    options: Sequence[Options] = OPTIONS, capture: Capture | None = None, chip: Chip = H200,
) -> tuple[Family, ...]:  # fmt: skip
    """The family that goes on from the compiler's kernels; asks it now, and not later.

    Raises:
        NotRecognised: Nothing that it generates can stand alone; the text says why.
    """
    forms = ordered(forms)
    if backend == "cpu":
        return (cpp_compiled_family(task, forms, capture=capture or on_cpu),)
    captures = Captures(capture or on_gpu)
    try:
        return (_with_products(task, forms, options, captures, chip),)
    finally:
        captures.close()


def _with_products(
    task: Task, forms: Sequence[Form], options: Sequence[Options], captures: Captures, chip: Chip
) -> Family:
    probe = CompiledFamily(task, forms, options, captures, None, ())
    probe.ask([(form.name, options[0].name) for form in forms])
    calls: list[Call] = []
    for form in forms:
        if (form.name, options[0].name) not in probe.reasons():
            calls += probe.calls(form.name, options[0].name)
    parameters: dict[str, Parameter] = {}
    for call in calls:
        theirs = (*convolution_parameters(call), *depthwise_parameters(call))
        for each in (*product_parameters(call, chip), *theirs):
            parameters.setdefault(each.name, each)
    family = compiled_family(
        task, "triton", forms, capture=captures, options=options,
        transform=partial(own_work, chip=chip) if parameters else None,
        parameters=tuple(parameters.values()),
    )  # fmt: skip
    lone = bool(calls) and only_convolves(calls[0])
    if not parameters:
        return Reseeded(family=family, space=family.space, is_late=True) if lone else family
    own = [seed for call in calls[:1] for seed in product_seeds(call, chip) if seed]
    last = [seed for call in calls[:1] for seed in convolution_seeds(call)]
    soon = [seed for call in calls[:1] for seed in depthwise_seeds(call)]
    decoy = bool(calls) and library_share(calls[0], chip) > DECOY
    space = reseeded(family.space, own, last, soon=soon, decoy=decoy)
    return Reseeded(family=family, space=space, is_late=lone)


def only_convolves(call: Call) -> bool:
    """Whether it is eager's own convolution, with copies into another layout around it.

    On an H200 such a one took 1.05 times eager's time, a convolution of ours 0.89 (level 1 / 62).
    """
    libraries = [step.target for step in call.steps if isinstance(step, Library)]
    fused = {each for kernel in call.kernels for each in kernel.operators}
    return libraries == ["torch.convolution"] and fused <= {"aten.convolution"}


def own_work(call: Call, chosen: Parameters, chip: Chip = H200) -> Call:
    """A call with its products and convolutions as chosen.

    Raises:
        NotRecognised: The choices do not go together, or fit none of its products.
    """
    call = replaced(call, chosen, chip) if "product" in chosen else call
    call = windowed(call, chosen) if "depthwise" in chosen else call
    return convolved(call, chosen) if "convolution" in chosen else call


def reseeded(
    space: Space, own: Sequence[Seed], last: Sequence[Seed] = (), *, soon: Sequence[Seed] = (),
    decoy: bool = False,
) -> Space:  # fmt: skip
    """The library's products and what comes ``soon``; then forms, options and products in turn.

    Own convolutions come last: on an H200 they took 1.2 and 2 times the library's time. So do the
    library's products where hardly anything else is left to do (``decoy``): the judge refuses that.
    """
    forms, others = _parted(space.seeds)
    options, launches = _parted(others, "option")
    library: list[Seed] = []
    if any(each.name == "product" for each in space.parameters):
        library = [(("product", "library"),)]
    mixed = _in_turns(forms, own, options)
    early = [] if decoy else library
    wanted = [(), *early, *soon, *mixed, *launches, *last, *library]
    known = {each.name: each.choices for each in space.parameters}
    kept = [each for each in wanted if all(value in known.get(name, ()) for name, value in each)]
    return replace(space, seeds=tuple(dict.fromkeys(kept)))


def _parted(seeds: Sequence[Seed], name: str = "form") -> tuple[list[Seed], list[Seed]]:
    """Those that change this parameter first, and the rest."""
    first = [each for each in seeds if each and each[0][0] == name]
    return first, [each for each in seeds if each and each not in first]


def _in_turns(*lists: Sequence[Seed]) -> Iterator[Seed]:
    for rank in zip_longest(*lists):
        yield from (each for each in rank if each is not None)
