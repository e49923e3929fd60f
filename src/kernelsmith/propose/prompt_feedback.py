"""An evaluation in words: what the judge found, for whoever writes the next candidate."""

import ast
import re
from collections.abc import Iterable

from kernelsmith.domain.evaluation import Evaluation, Kernel, Verdict
from kernelsmith.domain.task import Scalar, Task, Workload
from kernelsmith.domain.timing import Timing

_MEANING = {
    Verdict.REFUSED: "refused: the source reaches around the benchmark, and was not run",
    Verdict.BUILD_FAILED: "build failed",
    Verdict.CRASHED: "crashed",
    Verdict.TIMED_OUT: "timed out",
    Verdict.WRONG: "wrong: it ran, and its output is not the reference's",
    Verdict.CHEATED: "cheated: it ran, and did not do the work itself",
    Verdict.PASSED: "passed: right",
}
_KERNELS = 8


def fenced(text: str, language: str = "") -> str:
    """Wrap in a fence that nothing inside of it can close."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def clip(text: str, limit: int) -> str:
    """At most about ``limit`` characters: the beginning and the end, and how much is missing."""
    text = text.strip()
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    missing = len(text) - head - tail
    return f"{text[:head]}\n[... {missing} characters left out ...]\n{text[-tail:]}"


def reference_of(task: Task) -> str:
    """The reference without ``get_workloads``: held-out workloads stay unseen."""
    source = task.source.replace("\r\n", "\n").replace("\r", "\n")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return source
    lines = source.split("\n")
    for node in reversed(tree.body):
        if isinstance(node, ast.FunctionDef) and node.name == "get_workloads":
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            del lines[first - 1 : node.end_lineno]
    return "\n".join(lines).strip()


def workloads_of(task: Task) -> str:
    """The workloads that are timed, one a line; held-out ones are not named."""
    shown = [_workload(each) for each in task.workloads if not each.held_out]
    hidden = sum(each.held_out for each in task.workloads)
    if hidden:
        shown.append("- others, with other shapes, are checked for correctness and not shown")
    return "\n".join(shown)


def _workload(workload: Workload) -> str:
    said = [f"get_inputs({_arguments(workload.arguments)})"]
    if workload.init:
        said.append(f"get_init_inputs({_arguments(workload.init)})")
    if workload.dtype is not None:
        said.append(f"in {workload.dtype}")
    return f"- {workload.name}: {', '.join(said)}"


def _arguments(pairs: tuple[tuple[str, Scalar | tuple[Scalar, ...]], ...]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in pairs)


def verdict(evaluation: Evaluation) -> str:
    """The verdict in words, with the speed-up where there is one."""
    said = _MEANING[evaluation.verdict]
    if evaluation.timing is not None:
        timing = evaluation.timing
        said += f", {timing.speedup} the speed of {timing.baseline} (95 % interval)"
    elif evaluation.verdict is Verdict.PASSED:
        said += ", not timed"
    return said


def one_line(evaluation: Evaluation, task: Task) -> str:
    """The metrics of an exemplar on one line."""
    said = [verdict(evaluation)]
    if evaluation.timing is not None:
        held = _held_out(task)
        said += [
            f"{each.workload}: {each.median_us:.2f} us"
            for each in evaluation.timing.workloads
            if each.workload not in held
        ]
    if evaluation.coverage is not None:
        said.append(f"{evaluation.coverage.own:.0%} of the time in its own code")
    if evaluation.kernels:
        said.append(f"{sum(each.launches for each in evaluation.kernels)} launches per call")
    said += [f"label {each.name.value}" for each in evaluation.labels]
    return "; ".join(said)


def message_of(evaluation: Evaluation, limit: int) -> str:
    """What the judge said against it: compiler output, the first mismatch, the traceback."""
    said = clip(evaluation.message, limit)
    return fenced(said) if said else ""


def measurements(evaluation: Evaluation, task: Task, *, detailed: bool = True) -> str:
    """Timings, accuracy, coverage, roofline, labels; the kernels too where ``detailed``."""
    held = _held_out(task)
    lines: list[str] = []
    if evaluation.timing is not None:
        lines += _timings(evaluation.timing, held)
    lines += [
        f"- accuracy on {each.workload}: error {each.error:.2e} of {each.budget:.2e} allowed "
        f"(PyTorch's own: {each.eager_error:.2e})"
        for each in evaluation.accuracy
        if each.workload not in held
    ]
    if (coverage := evaluation.coverage) is not None:
        lines.append(
            f"- coverage: {coverage.own:.0%} of the time in the program's own code, "
            f"{coverage.library:.0%} in libraries ({coverage.samples} samples)"
        )
    lines += _rooflines(evaluation, held)
    lines += [
        f"- counters: {clip(name.removeprefix('ncu '), 80)}: {clip(said, 300)}"
        for name, said in evaluation.device_log
        if name.startswith("ncu ")
    ]
    lines += [
        f"- label {each.name.value}{': ' if each.reason else ''}{clip(each.reason, 300)}"
        for each in evaluation.labels
    ]
    if detailed and evaluation.kernels:
        lines += ["", *_kernels(evaluation.kernels)]
    return "\n".join(lines)


def _timings(timing: Timing, held: frozenset[str]) -> list[str]:
    lines = []
    for each in timing.workloads:
        if each.workload in held:
            continue
        said = (
            f"- time on {each.workload}: {each.median_us:.2f} us, {timing.baseline} "
            f"{each.baseline_us:.2f} us, speed-up {each.speedup} ({each.samples} samples)"
        )
        if each.call is not None:
            said += f"; plain calls: {each.call.median_us:.2f} us, {each.call.speedup}"
        lines.append(said)
    return lines


def _rooflines(evaluation: Evaluation, held: frozenset[str]) -> list[str]:
    lines = []
    for each in evaluation.rooflines:
        if each.workload in held:
            continue
        said = (
            f"- roofline on {each.workload}: at least {each.bytes} bytes must move, which takes "
            f"{each.floor_us:.2f} us at best; {each.bandwidth_share:.0%} of the measured bandwidth"
        )
        if each.compute_share is not None:
            said += f", {each.compute_share:.0%} of the arithmetic peak"
        lines.append(f"{said} reached")
    return lines


def _kernels(kernels: tuple[Kernel, ...]) -> list[str]:
    lines = [
        "| kernel | whose | launches | share | registers | spilled bytes | shared bytes | grid "
        "| block | precision | config |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each in kernels[:_KERNELS]:
        share = None if each.share is None else f"{each.share:.0%}"
        cells: Iterable[object] = (
            clip(each.name, 60).replace("\n", " "), "own" if each.own else "library",
            each.launches, share, each.registers, each.spills, each.shared_bytes,
            "x".join(map(str, each.grid)), "x".join(map(str, each.block)), each.precision,
            each.config,
        )  # fmt: skip
        shown = ("-" if cell in (None, "") else str(cell).replace("|", "/") for cell in cells)
        lines.append(f"| {' | '.join(shown)} |")
    if len(kernels) > _KERNELS:
        lines.append(f"(and {len(kernels) - _KERNELS} smaller ones)")
    return lines


def _held_out(task: Task) -> frozenset[str]:
    return frozenset(each.name for each in task.workloads if each.held_out)
