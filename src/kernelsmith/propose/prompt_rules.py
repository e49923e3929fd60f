"""The words of the system message: objective, rules, and the form of a reply."""

from kernelsmith.domain.task import Library, Task, Weights
from kernelsmith.domain.trajectory import Brief
from kernelsmith.propose import knowledge
from kernelsmith.propose.prompt_options import Form, Preset, PromptOptions
from kernelsmith.propose.prompt_regions import END, START, regions_of

_WEIGHTS = {
    Weights.DYNAMIC: (
        "Parameters and buffers keep the reference's state-dict names, shapes and dtypes. They are "
        "rewritten in place between launches, so read them in every call; nothing computed from "
        "them may outlive the call."
    ),
    Weights.STATIC: (
        "Parameters and buffers keep the reference's state-dict names, shapes and dtypes. They are "
        "loaded once; a method `prepare(self)` may repack them afterwards, outside the clock."
    ),
    Weights.SEED: (
        "Create parameters in the reference's order with the reference's initialisers: both sides "
        "are constructed under one seed, and nothing is copied over."
    ),
}
_LIBRARY = {
    Library.ANY: "Library calls are allowed without limit.",
    Library.SOME: (
        "A good part of the time must be spent in kernels of your own; library calls beside them "
        "are allowed. Where the time goes is sampled from outside the process."
    ),
    Library.NONE: (
        "The work must be done by kernels of your own; from libraries only allocation, views and "
        "launches. Where the time goes is sampled from outside the process."
    ),
}
_HONEST = (
    "Outputs have the reference's structure, shapes and dtypes, lie in fresh memory at every call, "
    "and inputs stay untouched unless the reference changes them.",
    "Be right for every input of these shapes: any sign and magnitude, zeros, infinities and NaNs "
    "where the reference lets them through, strides that are not contiguous, and sizes that no "
    "tile divides (some workloads are not shown to you).",
    "Every call does its own work before it returns: no results kept from earlier calls, no "
    "threads that go on, no skipping, no falling back to the reference when something fails.",
    "No torch.compile or torch.jit, no patching of modules, no subclasses of Tensor, no processes, "
    "files or network, no eval or exec. Such programs are refused before they run.",
    "One self-contained Python file that imports only what the example above imports, and the "
    "standard library's harmless parts (math, functools).",
)
_PAPER = (
    "Keep the signature of every kernel: its name, its parameters, their names and their order.",
    "Keep the launch grid, the shapes of outputs and the way a program's index selects its data.",
    "Keep every bounds check and mask.",
)


def objective(brief: Brief) -> str:
    """What the search is after, and how a step of it is valued."""
    task = brief.task
    thing = f"the function `{task.entry}`" if task.is_function else f"the module `{task.entry}`"
    where = f" on {brief.device}" if brief.device is not None else ""
    against = "the task's own baseline" if task.baseline is not None else "PyTorch eager"
    return (
        "You write fast kernels, as one step of an evolutionary search: programs that were judged "
        "before are shown with what was measured, you write the next one, and it is built, checked "
        f"and timed.\n\nYour task: a program that computes what {thing} computes, faster{where}, "
        f"for the backend `{brief.backend}`. A wrong program is worth nothing. A right one is "
        f"scored by its speed-up over {against}, the geometric mean over the workloads; an "
        "improvement counts when it is larger than the noise of the measurement. One bold idea, "
        "carried out correctly, is worth more than many small touches."
    )


def rules(brief: Brief, options: PromptOptions) -> str:
    """What a program must and must not do, numbered."""
    lines = [_signature(brief.task)]
    if not brief.task.is_function:
        lines.append(_WEIGHTS[brief.task.weights])
    lines += [_LIBRARY[brief.task.library], _precision(brief.task), *_HONEST]
    if options.preset is Preset.PAPER:
        lines += _PAPER
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def _signature(task: Task) -> str:
    if task.is_function:
        return f"Define the function `{task.entry}` at module level with the reference's signature."
    mode = "train" if task.training else "eval"
    return (
        f"Define the class `{task.candidate_entry}(torch.nn.Module)` at module level, with the "
        f"constructor and the `forward` arguments of `{task.entry}`; it runs in {mode} mode, "
        "forward only."
    )


def _precision(task: Task) -> str:
    allowed = (
        f"Computing in {task.compute_dtype} is allowed."
        if task.compute_dtype is not None
        else "Do not compute in less precision than the inputs have."
    )
    return (
        f"{allowed} Errors are measured against float64 in the worst row, and may be a few times "
        f"PyTorch's own; besides, every element stays within atol {task.tolerance.atol:g} and rtol "
        f"{task.tolerance.rtol:g}."
    )


def language(backend: str) -> str:
    """How programs for the backend are written; empty where nothing is known."""
    said = knowledge.language(backend)
    return f"## How to write it\n{said}" if said else ""


def tips(brief: Brief, most: int | None = None) -> str:
    """The notes for backend and device, the first ``most`` of them."""
    said = knowledge.tips(brief.backend, brief.device)[:most]
    return "## What tends to help\n" + "\n".join(f"- {line}" for line in said)


def reply_form(brief: Brief, options: PromptOptions) -> str:
    """What the reply must look like; ``reply.py`` reads it."""
    first = "Begin with one line `Idea: ...` that says what you change and why it is faster."
    marked = brief.parent is not None and regions_of(brief.parent.candidate.source) is not None
    if options.form_for(brief) is Form.DIFF:
        return "\n".join(["## What to reply", first, *_diff_form(marked)])
    lines = [
        "## What to reply",
        first,
        f"Then the whole program in one fenced block that begins with ```python, complete from the "
        f"first import to the end of `{brief.task.candidate_entry}`: leave nothing out, abbreviate "
        "nothing, and write no other fenced block.",
    ]
    if marked:
        lines.append(
            f"Change only lines between `{START}` and `{END}`; keep these markers and everything "
            "outside of them character by character (or write the marked regions alone, markers "
            "included). A reply that differs outside of them is rejected."
        )
    return "\n".join(lines)


def _diff_form(marked: bool) -> list[str]:
    lines = [
        "Then one or more edits of the current program, each of this form:",
        "<<<<<<< SEARCH\nlines of the current program, exactly as they stand\n=======\n"
        "the lines to put in their place\n>>>>>>> REPLACE",
        "SEARCH text is compared character by character with whole lines and must occur exactly "
        "once; quote enough lines around a change to make it unique. Edits apply in order.",
    ]
    if marked:
        lines.append(f"Edit only lines between `{START}` and `{END}`, never the markers.")
    return lines
