"""Compiler seeds for the processor: what torch's compiler generates, as plain C++."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kernelsmith.domain.task import Task, Workload
from kernelsmith.propose.rules.compiler.call import Kernel, Launch
from kernelsmith.propose.rules.compiler.capture import (
    Capture,
    Captured,
    Options,
    Request,
    Skipped,
    capture_all,
)
from kernelsmith.propose.rules.compiler.cpp_entries import with_entry
from kernelsmith.propose.rules.compiler.cpp_library import checked, helpers, own_text, replaced
from kernelsmith.propose.rules.compiler.cpp_module import constant, run_function
from kernelsmith.propose.rules.compiler.cpp_plan import Plan, Routine, planned
from kernelsmith.propose.rules.compiler.cpp_preamble import preamble
from kernelsmith.propose.rules.compiler.cpp_reader import cpp_call
from kernelsmith.propose.rules.compiler.cpp_tree import (
    Check,
    Function,
    Statement,
    expressions,
    walk,
)
from kernelsmith.propose.rules.compiler.cpp_writer import Writer
from kernelsmith.propose.rules.compiler.module_text import Part, candidate_text
from kernelsmith.propose.rules.forms import Form
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.space import Parameter, Parameters, Space

TEMPLATE = "cpp_compiled"
SCALAR = Options(
    name="scalar", threads=1,
    settings=(("cpp.simdlen", 1), ("cpp.threads", 1), ("assert_indirect_indexing", True),
              # Variance as a mean and a sum of squares: two sweeps in lanes, no Welford chain.
              ("cpp.use_two_step_variance_threshold", 1 << 40)),
    words="one element at a time on one thread; lanes and threads are ours to add",
)  # fmt: skip
LAYOUTS = {
    "as_given": replace(
        SCALAR, name="as_given", settings=(*SCALAR.settings, ("layout_optimization", False)),
        words=f"{SCALAR.words}; convolutions in the layout that the inputs have",
    ),
    "channels_last": replace(
        SCALAR, name="channels_last",
        settings=(*SCALAR.settings, ("force_layout_optimization", True)),
        words=f"{SCALAR.words}; convolutions with channels last",
    ),
}  # fmt: skip
"""Where channels lie, where the compiler's own choice (``chosen``) is not taken."""

_BLOCK = '''\
lib = cpp(
    r"""
{kernels}""",
    flags=[{flags}],
)


{runs}
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """One form of the task as the compiler sees it, for every workload."""

    form: Form
    library: str
    """Who does what the compiler leaves to the library: ``torch``, or kernels of our own."""
    layout: str = "chosen"
    """Where channels lie around convolutions."""
    cases: tuple[tuple[str, Plan], ...]
    """By workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CppCompiledFamily:
    """Writes what was captured, with any choice of threads, lanes and functions."""

    task: Task
    compiled: tuple[Compiled, ...]
    space: Space
    skipped: tuple[tuple[str, str], ...] = ()
    """Forms that cannot be written, and why."""

    def source(self, chosen: Parameters) -> str:
        """A stand-alone candidate; the same choice gives the same text."""
        compiled = self._compiled(chosen)
        text, plans = kernels_text(compiled, chosen)
        constants: list[str] = []
        runs: list[str] = []
        parts: list[Part] = []
        for number, ((label, _), plan) in enumerate(zip(compiled.cases, plans, strict=True), 1):
            name = f"run_{number}" if len(plans) > 1 else "run"
            checks = frozenset(r.name for r in plan.routines if _checks(r))
            constants += [constant(each) for each in plan.call.constants]
            runs.append(run_function(name, plan, checks=checks))
            parts.append(Part(call=plan.call, function=name, label=label))
        flags = ["-fno-math-errno", "-fno-trapping-math",
                 f"-mprefer-vector-width={chosen['width']}"]  # fmt: skip
        block = _BLOCK.format(
            kernels=text, flags=", ".join(f'"{each}"' for each in flags),
            runs="\n\n".join(["\n".join(constants) + "\n", *runs] if constants else runs),
        )  # fmt: skip
        header = [self.space.header(chosen), compiled.form.claim]
        return candidate_text(
            self.task, parts, header="\n".join(filter(None, header)), words=_described(compiled),
            imports=["from kernelsmith.kernels import cpp"], block=block,
        )  # fmt: skip

    def words(self, chosen: Parameters) -> str:
        """What this choice tries and why it may be faster."""
        compiled = self._compiled(chosen)
        count = max(len(plan.routines) for _, plan in compiled.cases)
        kernels = "one fused kernel" if count == 1 else f"{count} kernels"
        differs = [
            f"{each.name}={chosen[each.name]} ({each.why})" for each in self.space.parameters
            if each.name != "form" and chosen[each.name] != each.default
        ]  # fmt: skip
        how = f", with {', '.join(differs)}" if differs else ""
        form = "" if compiled.form.name == "written" else f" of the form {compiled.form.name}"
        return (
            f"{kernels} as torch's compiler fuses the task{form}, in plain C++ with our own "
            f"threads, lanes and functions{how}"
        )

    def _compiled(self, chosen: Parameters) -> Compiled:
        name = chosen.get("form", self.compiled[0].form.name)
        fitting = [each for each in self.compiled if each.form.name == name]
        for key in ("layout", "library"):
            wanted = [each for each in fitting if getattr(each, key) == chosen.get(key)]
            fitting = wanted or fitting
        if fitting:
            return fitting[0]
        raise NotRecognised(f"rules have no form {name!r} of {self.task.name}")


def on_cpu(
    task: Task, requests: Sequence[Request], *, timeout_s: float = 300.0
) -> list[Captured | Skipped]:
    """Compile for this machine's processor."""
    return capture_all(task, requests, device="cpu", timeout_s=timeout_s)


def cpp_compiled_family(
    task: Task, forms: Sequence[Form] = (), *, capture: Capture = on_cpu
) -> CppCompiledFamily:
    """Capture a task on the processor, in all its forms.

    Args:
        task: What to compute; its held-out workloads are not looked at.
        forms: What to compile; the task as it is written where there are none.
        capture: How the compiler is run.

    Raises:
        NotRecognised: No form has kernels that can be written; the text says why.
    """
    asked = list(forms) or [Form(name="written", source=task.source)]
    workloads = _workloads(task)
    requests = [
        Request(source=form.source, workload=workload, options=SCALAR)
        for form in asked for workload in workloads
    ]  # fmt: skip
    layouts = LAYOUTS if "conv" in asked[0].source.lower() else {}
    requests += [
        Request(source=asked[0].source, workload=workload, options=options)
        for options in layouts.values() for workload in workloads
    ]  # fmt: skip
    found = list(capture(task, requests))
    labels = [each.name for each in workloads]
    size = len(labels)
    parts = [
        list(zip(labels, found[at : at + size], strict=True)) for at in range(0, len(found), size)
    ]
    return family_of(
        task, list(zip(asked, parts, strict=False)),
        layouts=dict(zip(layouts, parts[len(asked) :], strict=True)),
    )  # fmt: skip


def family_of(
    task: Task, found: Sequence[tuple[Form, Sequence[tuple[str, Captured | Skipped]]]], *,
    layouts: Mapping[str, Sequence[tuple[str, Captured | Skipped]]] | None = None,
) -> CppCompiledFamily:  # fmt: skip
    """The family of what was captured: forms, each with its workloads by name.

    Args:
        task: What to compute.
        found: What the compiler said, by form and workload.
        layouts: What it said of the first form where it was told where channels lie.

    Raises:
        NotRecognised: No form has kernels that can be written; the text says why.
    """
    compiled: list[Compiled] = []
    skipped: list[tuple[str, str]] = []
    asked = [("chosen", form, captured) for form, captured in found]
    asked[1:1] = [(layout, found[0][0], captured) for layout, captured in (layouts or {}).items()]
    for layout, form, captured in asked:
        for library in ("own", "torch"):
            try:
                made = replace(_of_form(task, form, library, captured), layout=layout)
            except NotRecognised as error:
                where = "" if layout == "chosen" else f", layout={layout}"
                skipped.append((f"{form.name}, library={library}{where}", str(error)))
                continue
            same = [each for each in compiled if each.form == form and each.cases == made.cases]
            if not same:
                compiled.append(made)
            elif layout != "chosen" and same[0].layout == "chosen":
                compiled[compiled.index(same[0])] = replace(same[0], layout=layout)
    forms = [form for form, _ in found]
    compiled.sort(key=lambda each: (forms.index(each.form), *_last(each)))
    if not compiled:
        raise NotRecognised(f"no compiler seed for {task.name}: {skipped[0][1]}")
    return CppCompiledFamily(
        task=task, compiled=tuple(compiled), space=cpp_compiled_space(compiled),
        skipped=tuple(skipped),
    )  # fmt: skip


def _last(compiled: Compiled) -> tuple[bool, bool]:
    """What goes behind others: a convolution left to the library, and inputs laid out anew.

    Channels moved last and back cost more than they gain at sizes that fit a processor's caches.
    """
    own = [r.own for _, plan in compiled.cases for r in plan.routines if r.own is not None]
    left = all(dict(each.fixed)["kind"] != "convolution" for each in own)
    return left, compiled.layout != "as_given"


def _workloads(task: Task) -> list[Workload]:
    """Those that are shown and meant for a processor."""
    shown = [each for each in task.workloads if not each.held_out]
    return [each for each in shown if not each.name.startswith("gpu:")] or shown


def _of_form(
    task: Task, form: Form, library: str, found: Sequence[tuple[str, Captured | Skipped]]
) -> Compiled:
    cases = []
    seen = set()
    for label, each in found:
        if isinstance(each, Skipped):
            raise NotRecognised(each.reason)
        call = cpp_call(each)
        plan = planned(replaced(call) if library == "own" else call)
        call = plan.call
        key = (call.arguments, call.conditions, call.made_with)
        if key not in seen:
            seen.add(key)
            cases.append((label, plan))
    if not cases:
        raise NotRecognised("there is no workload to compile for")
    compiled = Compiled(form=form, library=library, cases=tuple(cases))
    probe = CppCompiledFamily(task=task, compiled=(compiled,), space=cpp_compiled_space([compiled]))
    probe.source(probe.space.defaults)  # says now what could not be written later
    return compiled


def _statements(compiled: Sequence[Compiled]) -> list[Statement]:
    return [
        each for one in compiled for _, plan in one.cases for routine in plan.routines
        for each in walk(routine.function.body)
    ]  # fmt: skip


def cpp_compiled_space(compiled: Sequence[Compiled]) -> Space:
    """What can be varied in the candidates for captured forms, as far as it changes their text."""
    statements = _statements(compiled)
    texts = "\n".join(text for each in statements for text in expressions(each))
    costly = re.search(r"fn::", texts) is not None
    own = any(r.own for one in compiled for _, plan in one.cases for r in plan.routines)
    made = [
        Parameter(name="threads", choices=("1", "all"), default="all",
                  why="one thread starts at once"),
        Parameter(name="serial_below", choices=("0", "4096", "16384", "65536", "262144"),
                  default="16384" if costly or own else "65536",
                  why="small loops are not worth waking threads for"),
        Parameter(name="schedule", choices=("static", "dynamic", "guided"), default="static",
                  why="how threads share the rows", ordered=False),
        Parameter(name="lanes", choices=("16", "32", "64", "128"), default="64",
                  why="elements in flight hide latency"),
        Parameter(name="block", choices=("2", "4", "8", "16", "32", "64"), default="16",
                  why="KiB elements of a flat loop per task"),
        Parameter(name="stores", choices=("plain", "stream"), default="plain", ordered=False,
                  why="outputs that nobody reads soon need no cache"),
        Parameter(name="math", choices=("poly", "libm"), default="poly", safe="libm",
                  why="polynomials run in vectors", ordered=False),
        Parameter(name="accumulate", choices=("lanes", "double"), default="lanes", safe="double",
                  why="how partial sums are kept", ordered=False),
    ]  # fmt: skip
    defaults = {each.name: each.default for each in made}
    kept = [few for each in made if (few := _telling(each, compiled, defaults)) is not None]
    kept.append(
        Parameter(name="width", choices=("128", "256", "512"), default="512", why="bits per vector")
    )
    if {each.library for each in compiled} == {"own", "torch"}:
        kept.insert(0, Parameter(name="library", choices=("own", "torch"), default="own",
                                 ordered=False, why="who computes products, scans and the like",
                                 ))  # fmt: skip
    where = tuple(dict.fromkeys(each.layout for each in compiled))
    if len(where) > 1:
        kept.insert(0, Parameter(name="layout", choices=where, default=where[0], ordered=False,
                                 why="where channels lie decides what a convolution reads at once",
                                 ))  # fmt: skip
    names = tuple(dict.fromkeys(each.form.name for each in compiled))
    if len(names) > 1:
        kept.insert(0, Parameter(name="form", choices=names, default=names[0], ordered=False,
                                 why="another way to compute the same"))  # fmt: skip
    return Space(template=TEMPLATE, parameters=tuple(kept), seeds=_seeds(kept))


def _telling(
    parameter: Parameter, compiled: Sequence[Compiled], defaults: Parameters
) -> Parameter | None:
    """A parameter with the choices that make a difference here; none where none does."""
    seen: dict[str, str] = {}
    ordered = [parameter.default, *(c for c in parameter.choices if c != parameter.default)]
    for choice in ordered:
        chosen = {**defaults, parameter.name: choice}
        text = "\n".join(kernels_text(each, chosen)[0] for each in compiled)
        seen.setdefault(text, choice)
    choices = tuple(each for each in parameter.choices if each in seen.values())
    return replace(parameter, choices=choices) if len(choices) > 1 else None


def kernels_text(compiled: Compiled, chosen: Parameters) -> tuple[str, list[Plan]]:
    """All C++ of a form, and its plans under the names that the C++ has."""
    kernels: list[str] = []
    functions: list[Function] = []
    own: list[Kernel] = []
    plans: list[Plan] = []
    for number, (_, plan) in enumerate(compiled.cases, 1):
        named = _suffixed(plan, f"_{number}" if len(compiled.cases) > 1 else "")
        plans.append(named)
        for each in named.routines:
            kernels.append(_kernel(each, chosen))
            functions.append(each.function)
            own += [each.own] if each.own is not None else []
    text = preamble(functions, {**_ABSENT, **chosen}) + helpers(own)
    return "\n".join([text, *kernels, ""]), plans


_ABSENT = {
    "threads": "all", "serial_below": "16384", "schedule": "static", "lanes": "64", "block": "16",
}  # fmt: skip
"""What holds where a choice makes no difference."""


_SEEDS: tuple[dict[str, str], ...] = (
    {},
    {"layout": "channels_last"},
    {"layout": "as_given"},
    {"layout": "chosen"},
    {"stores": "stream"},
    {"lanes": "32"},
    {"lanes": "128", "stores": "stream"},
    {"width": "256"},
    {"serial_below": "0", "block": "4"},
    {"library": "torch"},
    {"library": "torch", "layout": "channels_last"},
)


def _seeds(parameters: list[Parameter]) -> tuple[tuple[tuple[str, str], ...], ...]:
    """The first choices, for every form; a choice that changes nothing here is none."""
    defaults = {each.name: each.default for each in parameters}
    choices = {each.name: each.choices for each in parameters}
    forms = next((each.choices for each in parameters if each.name == "form"), ("",))
    found = []
    for each in _SEEDS:
        for form in forms:
            wanted = {**each, **({"form": form} if form else {})}
            kept = tuple(
                (k, v) for k, v in wanted.items() if v in choices.get(k, ()) and defaults[k] != v
            )
            if kept not in found:
                found.append(kept)
    return tuple(found)


def _checks(routine: Routine) -> bool:
    if routine.own is not None:
        return checked(routine.own)
    return any(isinstance(each, Check) for each in walk(routine.function.body))


def _suffixed(plan: Plan, suffix: str) -> Plan:
    """The same with names of its own for one of several workloads."""
    if not suffix:
        return plan
    steps = tuple(
        replace(step, kernel=step.kernel + suffix) if isinstance(step, Launch) else step
        for step in plan.call.steps
    )
    routines = tuple(replace(each, name=each.name + suffix) for each in plan.routines)
    return Plan(call=replace(plan.call, steps=steps), routines=routines)


def _kernel(routine: Routine, chosen: Parameters) -> str:
    chosen = {**_ABSENT, **chosen}
    if routine.own is not None:
        text = own_text(routine.name, routine.own, chosen)
    else:
        text = Writer(
            name=routine.name, function=routine.function, parameters=chosen,
            finals=routine.finals, shared=routine.shared,
        ).text()  # fmt: skip
    return text if routine.entry is None else with_entry(text, routine.entry)


def _described(compiled: Compiled) -> str:
    """What the file holds, for its reader."""
    count = max(len(plan.routines) for _, plan in compiled.cases)
    kernels = "One fused kernel" if count == 1 else f"{count} kernels"
    text = (
        f"{kernels} in plain C++, for the shapes below; all others go through the reference's own"
    )
    lines = _wrapped(f"{text} forward.") + (_wrapped(compiled.form.words))
    return "\n".join(each for each in lines if each)


def _wrapped(text: str) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) + 1 > 96:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
