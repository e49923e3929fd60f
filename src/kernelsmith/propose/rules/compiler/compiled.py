"""The family of candidates that torch's compiler began: its kernels, launched in other ways."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from kernelsmith.domain.task import Task, Workload
from kernelsmith.propose.rules.compiler import launching
from kernelsmith.propose.rules.compiler.call import Call, Launch, Library, Step
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
    capture_all,
)
from kernelsmith.propose.rules.compiler.facts import Facts
from kernelsmith.propose.rules.compiler.helpers import REPLACED
from kernelsmith.propose.rules.compiler.reader import read_call
from kernelsmith.propose.rules.compiler.splitting import split
from kernelsmith.propose.rules.compiler.triton_writer import Shaped, named_apart, triton_candidate
from kernelsmith.propose.rules.forms import Form
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.space import Parameter, Parameters, Space

Transform = Callable[[Call, Parameters], Call]
"""Changes a call by parameters of its own, such as another kernel for a library's product."""
_PROCESSES = 4
"""Compilers at a time; each holds the task's tensors on the device."""
_WORKLOADS = 4
"""Sets of shapes that one candidate is specialised to; others run the plain forward."""
_LIBRARIES_ONLY = "torch's compiler calls libraries only, and has no kernel of its own"
_PRODUCTS = ("torch.mm", "torch.bmm", "torch.addmm", "torch.baddbmm", "torch.convolution")


def on_gpu(
    task: Task, requests: Sequence[Request], *, lock: Path | None = None,
    gpu: Facts | None = None,
) -> list[Captured | Skipped]:  # fmt: skip
    """Compile for this machine's GPU, in several processes where it has the cores.

    What did not fit beside the others is asked again by itself. ``lock`` is the file that says who
    has the GPU: what the compiler times, it times alone. ``gpu`` is what to write for where this
    machine has none.
    """
    workers = max(1, min(len(requests), (os.cpu_count() or 1) // 4, _PROCESSES))

    def ask(share: Sequence[Request]) -> list[Captured | Skipped]:
        return capture_all(task, share, device="cuda", timeout_s=300.0 + 60.0 * len(share),
                           lock=lock, gpu=gpu)  # fmt: skip

    found: list[Captured | Skipped] = [Skipped(reason="not asked")] * len(requests)
    with ThreadPoolExecutor(workers) as pool:
        shares = [range(first, len(requests), workers) for first in range(workers)]
        asked = pool.map(lambda share: ask([requests[number] for number in share]), shares)
        for share, replies in zip(shares, asked, strict=True):
            for number, reply in zip(share, replies, strict=True):
                found[number] = reply
    for number, reply in enumerate(found):
        if workers > 1 and isinstance(reply, Skipped) and "out of memory" in reply.reason:
            found[number] = ask([requests[number]])[0]
    return found


class CompiledFamily:
    """Candidates from what torch's compiler generates, by form, option and launch parameters."""

    def __init__(
        self, task: Task, forms: Sequence[Form], options: Sequence[Options], capture: Capture,
        transform: Transform | None, parameters: Sequence[Parameter],
    ) -> None:  # fmt: skip
        self._task = task
        self._forms = {form.name: form for form in forms}
        self._options = {each.name: each for each in options}
        self._first = options[0].name
        self._capture = capture
        self._transform = transform
        self._extra = tuple(parameters)
        self._workloads = distinct(task)
        self._kept: dict[tuple[str, str], tuple[Shaped, ...] | Skipped] = {}
        self._space: Space | None = None

    @property
    def space(self) -> Space:
        """Forms, options, and launches of the heaviest kernels."""
        if self._space is None:
            self._space = self._made_space()
        return self._space

    def ask(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Let the compiler work on forms and options, all in one process; kept from then on."""
        missing = [pair for pair in dict.fromkeys(pairs) if pair not in self._kept]
        requests = [
            Request(source=self._forms[form].source, workload=each, options=self._options[option])
            for form, option in missing
            for each in self._workloads
        ]
        replies = list(self._capture(self._task, requests)) if requests else []
        count = len(self._workloads)
        for number, pair in enumerate(missing):
            self._kept[pair] = self._read(replies[number * count : (number + 1) * count])

    def _read(self, replies: Sequence[Captured | Skipped]) -> tuple[Shaped, ...] | Skipped:
        """One call per set of shapes; what fails for one of them runs plainly there."""
        found: list[Shaped] = []
        reasons = []
        for workload, reply in zip(self._workloads, replies, strict=True):
            call = reply if isinstance(reply, Skipped) else read_call(reply)
            if isinstance(call, Skipped):
                reasons.append(call.reason)
            elif all(_fit(each.call) != _fit(call) for each in found):
                found.append(Shaped(call=split(call), label=workload.name))
        if not found:
            return Skipped(reason="; ".join(dict.fromkeys(reasons)))
        apart = named_apart([each.call for each in found])
        return tuple(replace(each, call=call) for each, call in zip(found, apart, strict=True))

    def shaped(self, form: str, option: str) -> tuple[Shaped, ...]:
        """What was captured, one call per set of shapes.

        Raises:
            NotRecognised: The compiler has nothing that can stand alone; the text says why.
        """
        self.ask([(form, option)])
        found = self._kept[form, option]
        if isinstance(found, Skipped):
            raise NotRecognised(found.reason)
        return found

    def calls(self, form: str, option: str = "default") -> tuple[Call, ...]:
        """The calls themselves, before any transform, kernels or not."""
        return tuple(each.call for each in self.shaped(form, option))

    def reasons(self) -> dict[tuple[str, str], str]:
        """Why forms and options that were asked for are not to be had."""
        return {k: v.reason for k, v in self._kept.items() if isinstance(v, Skipped)}

    def source(self, chosen: Parameters) -> str:
        """A stand-alone candidate.

        Raises:
            NotRecognised: This form or option cannot be had; the text says why.
        """
        captured = self.shaped(chosen["form"], chosen["option"])
        changed = list(captured)
        if self._transform is not None:
            calls = named_apart([self._transform(each.call, chosen) for each in captured])
            changed = [replace(each, call=call) for each, call in zip(captured, calls, strict=True)]
        launches = {
            name: values
            for before, after in zip(captured, changed, strict=True)
            for name, values in launching.chosen(before.call, chosen).items()
            if _kept_kernel(name, before.call, after.call)
        }
        if not any(_is_own(step) for each in changed for step in each.call.steps):
            raise NotRecognised(_LIBRARIES_ONLY)
        return triton_candidate(
            self._task, changed, header=self._header(chosen), words=self.words(chosen),
            launches=launches, math=chosen.get("math", "exact"),
        )  # fmt: skip

    def _header(self, chosen: Parameters) -> str:
        claim = self._forms[chosen["form"]].claim
        return "\n".join(filter(None, [self.space.header(chosen), claim]))

    def words(self, chosen: Parameters) -> str:
        """What this choice tries, in one sentence."""
        form, option = self._forms[chosen["form"]], self._options[chosen["option"]]
        begin = "The task as written" if form.name == "written" else f"Rewritten ({form.name})"
        text = f"{begin}, compiled: {option.words}"
        changed = [
            f"{each.name} {chosen[each.name]}"
            for each in self.space.parameters
            if each.name not in ("form", "option") and chosen[each.name] != each.default
        ]
        return f"{text}; with {', '.join(changed)}." if changed else f"{text}."

    def _has_kernels(self, form: str, option: str) -> bool:
        found = self._kept.get((form, option))
        if found is None:
            return True
        if isinstance(found, Skipped):
            return False
        own = any(isinstance(step, Launch) for each in found for step in each.call.steps)
        return own or self._transform is not None

    def _made_space(self) -> Space:
        forms = [form for form in self._forms if self._has_kernels(form, self._first)]
        options = [
            option for option in self._options
            if any(self._has_kernels(form, option) for form in forms)
        ]  # fmt: skip
        if not forms or not options:
            raise NotRecognised(self._nothing())
        made = [
            Parameter(name="form", choices=tuple(forms), default=forms[0], ordered=False,
                      safe="written" if "written" in forms else None,
                      why="less to compute, by algebra that holds for all inputs"),
            Parameter(name="option", choices=tuple(options), default=options[0], ordered=False,
                      why="what the compiler is asked for decides what it fuses"),
        ]  # fmt: skip
        known = [each.call for found in self._kept.values() if not isinstance(found, Skipped)
                 for each in found]  # fmt: skip
        helped = {name for name in REPLACED for call in known if f"def {name}(" in call.prelude}
        if helped:
            ways = ("library", "exact", "native") if "exp" in helped else ("library", "exact")
            made.append(
                Parameter(name="math", choices=ways, default="library", safe="exact", ordered=False,
                          why="the device's own exponential takes one instruction")
            )  # fmt: skip
        first = [each.call for each in self._kept[forms[0], self._first]]  # type: ignore[union-attr]
        launch = launching.parameters(known, first)
        return Space(
            template="compiled", parameters=(*made, *launch, *self._extra),
            seeds=self._seeds(forms, options, launch),
        )  # fmt: skip

    def _seeds(
        self, forms: Sequence[str], options: Sequence[str], launch: Sequence[Parameter]
    ) -> tuple[tuple[tuple[str, str], ...], ...]:
        """Every form, every option of the first form, then its launches varied."""
        found: list[tuple[tuple[str, str], ...]] = [()]
        found += [(("form", form),) for form in forms[1:]]
        found += [(("option", each),) for each in options[1:] if self._has_kernels(forms[0], each)]
        found += launching.seeds(launch)
        return tuple(found)

    def _nothing(self) -> str:
        said = [f"{form} ({option}): {why}" for (form, option), why in self.reasons().items()]
        if not said:
            said = [_LIBRARIES_ONLY]
        return "; ".join(dict.fromkeys(said))

    def relevant(self) -> list[str]:
        """Options that may give something else than the default, by what that one calls."""
        targets = {
            step.target
            for found in self._kept.values() if not isinstance(found, Skipped)
            for each in found for step in each.call.steps if isinstance(step, Library)
        }  # fmt: skip
        products = bool(targets & set(_PRODUCTS))
        convolves = any("convolution" in each for each in targets)
        wanted = {"default": True, "autotune": products, "unfused": products,
                  "channels_last": convolves, "as_given": convolves}  # fmt: skip
        return [name for name in self._options if wanted.get(name, True)]

    def settle(self, options: Sequence[str]) -> None:
        """Keep these options only, without those that give what another one gives."""
        kept: dict[str, Options] = {}
        seen: list[object] = []
        for name in options:
            found = [self._kept.get((form, name)) for form in self._forms]
            known = [each for each in found if isinstance(each, tuple)]
            if known and known[0] in seen:
                continue
            kept[name] = self._options[name]
            seen += known[:1]
        self._options, self._space = kept, None


def distinct(task: Task) -> list[Workload]:
    """Timed workloads whose inputs differ, at most a few."""
    found: dict[object, Workload] = {}
    for each in task.workloads:
        if not each.held_out:
            found.setdefault((each.arguments, each.init, each.dtype), each)
    return list(found.values())[:_WORKLOADS]


def _is_own(step: Step) -> bool:
    """Whether a step runs a kernel of the candidate's: launched here, or by a function of its."""
    return isinstance(step, Launch) or (isinstance(step, Library) and "." not in step.target)


def _kept_kernel(name: str, before: Call, after: Call) -> bool:
    """Whether a transform left this kernel as it was."""
    kernels = [kernel for kernel in before.kernels if kernel.name == name]
    return bool(kernels) and kernels[0] in after.kernels


def _fit(call: Call) -> object:
    """What decides whether a call is taken."""
    layout = tuple((a.path, a.shape, a.stride, a.dtype) for a in call.arguments)
    return layout, call.conditions, call.made_with


def compiled_family(
    task: Task, backend: str, forms: Sequence[Form], *, capture: Capture = on_gpu,
    options: Sequence[Options] = (DEFAULT, AUTOTUNE, UNFUSED, CHANNELS_LAST, AS_GIVEN),
    transform: Transform | None = None, parameters: Sequence[Parameter] = (), lazy: bool = False,
) -> CompiledFamily:  # fmt: skip
    """Ask torch's compiler about a task, and make a family of what it says.

    Args:
        task: What to compute.
        backend: ``triton``; the processor's family is another.
        forms: Ways of writing it; the first is the default.
        capture: How the compiler is run.
        options: What it is asked for. The first is asked for at once and for every form; others
            only where they can matter.
        transform: Applied to every call before it is written.
        parameters: What the transform reads.
        lazy: Whether other options wait until a candidate asks for them.

    Raises:
        NotRecognised: Nothing that it generates can stand alone; the text says why.
    """
    if backend != "triton":
        raise NotRecognised(f"compiled Triton kernels are not for {backend!r}")
    family = CompiledFamily(task, forms, options, capture, transform, parameters)
    first = options[0].name
    family.ask([(form.name, first) for form in forms])
    chosen = family.relevant()
    if not lazy and len(family.reasons()) < len(forms):
        skipped = family.reasons()
        good = [form.name for form in forms if (form.name, first) not in skipped]
        family.ask([(good[0], option) for option in chosen])
    family.settle(chosen)
    _ = family.space
    return family
