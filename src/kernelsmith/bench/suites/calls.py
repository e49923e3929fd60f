"""Function-style suites: a reference, a line of ``#``, tests that call it; sizes in another file.

KernelBench-X and both halves of TritonBench are written so. Their tests become held-out workloads
and their timing sizes become timed ones, so that what is timed is also checked, which their own
harnesses do not do. Arguments are taken from the scripts themselves: the script runs with a
stand-in for the function, up to the call that is wanted.
"""

import ast
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

from kernelsmith.bench.beginning import begun_with
from kernelsmith.bench.suites.rewriting import (
    anywhere,
    as_function,
    defined,
    imported_as,
    read_names,
    without_paths,
)
from kernelsmith.bench.suites.survey import Calls, Case, Surveyor
from kernelsmith.domain.task import Task, Tolerance, Workload
from kernelsmith.errors import UsageError

RULER = "#" * 146
"""What these suites put between a reference and its tests."""

_PARTS = Path(__file__).with_name("parts")
_SMALL_BYTES = 8 << 20
_QUICK_S = 0.5
_LARGE_BYTES = 512 << 20
_HELD_OUT = 6


_SHOWN = '''

import torch


def _here():
    """The device that inputs are drawn on: the one that torch defaults to."""
    return torch.get_default_device()


{timing}def get_inputs(case="test", index=0):
    """Draw the arguments of one call of the suite's own tests or timings."""
    return get_workloads(case, index)
'''
_HIDDEN = '''

def get_workloads(case="", index=0, survey=None):
    """Play the suite's own tests and timings; prompts leave this function out."""
{recording}
{play}

    if survey is not None:
        return survey({entry}, play, {draw}, _bound)
    if case == "timing":
        return {timed}
    return _arguments(play, {entry}, index) if case == "test" else []
'''


class Unusable(ValueError):
    """A file from which no task can be made; the text is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One task as these suites store it."""

    name: str
    text: str
    """Reference, ruler, tests."""
    timing: str | None = None
    """The timing script, where there is one."""
    helpers: str = ""
    """Source of helper functions that tests import from elsewhere."""
    foreign: frozenset[str] = frozenset()
    """Modules of the suite itself, which a task must do without."""
    run: bool = True
    """Whether the reference runs on a processor, so that its calls can be tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A task and what was seen while making it."""

    task: Task
    dtype: str
    dtypes: frozenset[str]
    notes: tuple[str, ...]


def make(script: Script, surveyor: Surveyor, tolerance: dict[str, float]) -> Made:
    """Turn a script into a task, with workloads chosen among the calls that can be judged.

    ``tolerance`` is the suite's own bound by dtype; the widest among the chosen workloads holds.

    Raises:
        Unusable: It cannot be had; the text says why.
    """
    reference, tests = _halves(script)
    entry = _entry(script, reference, tests)
    source = _source(script, entry, tests)
    bare = Task(name=script.name, source=source, entry=entry)
    calls = _survey(bare, surveyor, run=script.run)
    timed, held_out = _choose(calls)
    chosen = timed + held_out
    notes = []
    if any(each.case.random for each in chosen):
        source = f"{source}\n\n{part('statistic')}"
        notes.append("random: outputs are compared by distribution")
    if all(each.kind == "test" for each in timed):
        notes.append(
            "timed on its largest test: its timing script gives nothing that can be judged"
        )
    dtypes = frozenset(each.case.dtype for each in chosen if each.case.dtype)
    widest = max((tolerance[each] for each in dtypes if each in tolerance), default=None)
    task = replace(bare, source=source, workloads=_workloads(timed, held_out))
    if widest is not None:
        task = replace(task, tolerance=Tolerance(atol=widest, rtol=widest))
    return Made(task=task, dtype=timed[0].case.dtype, dtypes=dtypes, notes=tuple(notes))


def _halves(script: Script) -> tuple[str, list[ast.stmt]]:
    reference, ruler, tests = script.text.partition(RULER)
    if not ruler:
        raise Unusable("the file has no line that ends the reference and begins the tests")
    try:
        ast.parse(reference)
        return reference.strip() + "\n", ast.parse(tests).body
    except SyntaxError as error:
        raise Unusable(f"the file is not Python: line {error.lineno}: {error.msg}") from error


def _entry(script: Script, reference: str, tests: list[ast.stmt]) -> str:
    """The one thing that the reference defines and the tests use."""
    own = defined(ast.parse(reference).body)
    used = sorted(own.keys() & (read_names(tests) - defined(tests).keys()))
    if script.name in used:
        used = [script.name]
    elif len(used) > 1 and len(timed := _timed_names(script) & set(used)) == 1:
        used = [*timed]  # others that its tests call prepare its arguments
    if not used:
        raise Unusable("its tests call nothing that it defines")
    if len(used) > 1:
        raise Unusable(f"its tests call {len(used)} functions ({', '.join(used)}); a task has one")
    found = own[used[0]]
    if isinstance(found, ast.ClassDef):
        raise Unusable(f"its tests use the class {used[0]}; a task is a module or a function")
    if isinstance(found, ast.FunctionDef) and any(
        "triton." in ast.unparse(each) for each in found.decorator_list
    ):
        raise Unusable(f"its tests launch the kernel {used[0]} without a function around it")
    return used[0]


def _timed_names(script: Script) -> set[str]:
    """What the timing script's ``call_op`` calls."""
    try:
        tree = ast.parse(script.timing or "")
    except SyntaxError:
        return set()
    calls = [
        node for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "call_op"
    ]  # fmt: skip
    return read_names([*calls])


def _source(script: Script, entry: str, tests: list[ast.stmt]) -> str:
    reference = script.text.partition(RULER)[0].strip()
    # what comes from the future holds for files, and these become functions
    foreign = {*script.foreign, script.name, "__future__"}
    helpers = ast.parse(script.helpers).body if script.helpers else []
    body = anywhere(without_paths([*helpers, *tests], foreign))
    play = as_function("play", [entry], body)
    timing = _timing(script, entry, foreign)
    timed = f"_timed(_timing_script, {entry}, index)"
    hidden = _HIDDEN.format(
        recording=textwrap.indent(part("recording"), "    "),
        play=textwrap.indent(play, "    "),
        entry=entry,
        timed=timed if timing else "[]",
        draw=f"lambda index: {timed}" if timing else "None",
    )
    return f"{reference}\n{_SHOWN.format(timing=timing)}{hidden}"


def _timing(script: Script, entry: str, foreign: set[str]) -> str:
    """The timing script as a function of what it times and what its class inherits from."""
    if script.timing is None:
        return ""
    try:
        body = ast.parse(script.timing).body
    except SyntaxError:
        return ""
    called = imported_as(body, entry)
    kept = [node for node in without_paths(body, {*foreign, "performance_utils", "json"})]
    for node in kept:
        if isinstance(node, ast.ClassDef):
            node.body = [each for each in node.body if _is_needed(each)]
    if called is None or "performance_metrics" not in defined(kept):
        return ""
    if "triton" not in read_names(kept) | _annotations(kept):
        kept = without_paths(kept, {"triton"})
    text = as_function(
        "_timing_script", [called, "Performance_Metrics"], anywhere(kept),
        returns="performance_metrics",
    )  # fmt: skip
    return f"{text}\n\n\n"


def _is_needed(node: ast.stmt) -> bool:
    wanted = {"__init__", "get_input_tensors", "to_cuda", "call_op"}
    others = {"get_gbps", "get_tflops", "run_benchmark", "get_do_bench_config", "get_runtime"}
    if isinstance(node, ast.FunctionDef):
        return node.name in wanted or node.name not in others
    return True


def _annotations(body: list[ast.stmt]) -> set[str]:
    return (
        {"triton"}
        if "triton." in "\n".join(map(ast.unparse, body)).replace("import triton.language", "")
        else set()
    )


def part(name: str) -> str:
    """Read the code of one of the ``parts``, without its first sentence."""
    text = (_PARTS / f"{name}.py").read_text()
    first = ast.parse(text).body[0]
    return "\n".join(text.split("\n")[first.end_lineno or 0 :]).strip() + "\n"


def _survey(bare: Task, surveyor: Surveyor, *, run: bool) -> Calls:
    # In names of its own: a reference may be called `sum`.
    before = "" if run else f"exec({part('without_gpu')!r}, {{}})\n\n"
    text = begun_with(before, bare.source)
    survey = (
        f"{text}\n\n_names = {{}}\nexec({part('survey')!r}, _names)\n\n\n"
        "def get_workloads(play=get_workloads):\n"
        f"    return play(survey=lambda *asked: _names['survey'](*asked, run={run}))\n"
    )
    try:
        return surveyor.calls(replace(bare, source=survey))
    except UsageError as error:
        raise Unusable(str(error)) from error


@dataclass(frozen=True, slots=True)
class _Chosen:
    """One call of one of the scripts, and the hardware that it is for."""

    kind: str
    index: int
    case: Case
    where: str = ""

    @property
    def form(self) -> tuple[str, str]:
        return self.case.said, self.case.dtype


def _choose(calls: Calls) -> tuple[list[_Chosen], list[_Chosen]]:
    """Choose what is timed: one size for a processor, two for a GPU; and what is only checked."""
    sizes = [
        _Chosen("timing", index, case)
        for index, case in enumerate(calls.timings)
        if _is_fine(case) and case.bytes <= _LARGE_BYTES
    ]
    checks = [_Chosen("test", i, case) for i, case in enumerate(calls.tests) if _is_fine(case)]
    if not sizes and not checks:
        raise Unusable(_reason(calls))
    # Values written down in a test are the same for everyone: no judge can draw them afresh.
    checks = [each for each in checks if not each.case.fixed]
    if not sizes and not checks:
        raise Unusable("every call that can be judged has its values written down: none is drawn")
    timed = _timed(sizes, checks)
    seen = {each.form for each in timed}
    held_out: list[_Chosen] = []
    for each in checks:
        if each.form not in seen:
            seen.add(each.form)
            held_out.append(each)
    if len(held_out) > _HELD_OUT:
        step = len(held_out) / _HELD_OUT
        held_out = [held_out[int(i * step)] for i in range(_HELD_OUT)]
    return timed, held_out


def _is_fine(case: Case) -> bool:
    return not case.bad and not case.empty and case.count > 0


def _timed(sizes: list[_Chosen], checks: list[_Chosen]) -> list[_Chosen]:
    """The largest that a processor is quick at, else the largest test; the middle; the largest."""
    sizes = sorted({each.form: each for each in sizes}.values(), key=_bytes)
    tried = [each for each in sizes if 0.0 < each.case.seconds <= _QUICK_S]
    # Where nothing could be tried a processor has an interpreter; tests are small enough for it.
    small = tried or [each for each in checks if each.case.bytes <= _SMALL_BYTES]
    first = max(small, key=_bytes, default=None)
    large = [each for each in sizes if first is None or _bytes(each) > _bytes(first)]
    if not large:
        return [first] if first is not None else [max(checks, key=_bytes)]
    chosen = dict.fromkeys([large[len(large) // 2], large[-1]])
    found = [replace(each, where="gpu: ") for each in chosen]
    return found if first is None else [replace(first, where="cpu: "), *found]


def _bytes(each: _Chosen) -> int:
    return each.case.bytes


def _reason(calls: Calls) -> str:
    """Say why no call can be judged: the commonest reason."""
    cases = [*calls.timings, *calls.tests]
    bad = [case.bad for case in cases if case.bad]
    if bad:
        return f"no call of it can be judged: it {max(set(bad), key=bad.count)}"
    if cases:
        return "takes no tensor with elements in it: there is nothing to draw"
    return f"its scripts make no call: {calls.why or 'none was seen'}"


def _workloads(timed: list[_Chosen], held_out: list[_Chosen]) -> tuple[Workload, ...]:
    return tuple(
        Workload(
            name=f"{each.where}{each.kind} {each.index + 1}: {' '.join(each.form)}".strip(),
            arguments=(("case", each.kind), ("index", each.index)),
            held_out=each in held_out,
        )
        for each in [*timed, *held_out]
    )
