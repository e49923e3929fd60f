"""Ask torch's compiler what it would do for a plain PyTorch file, in a process of its own."""

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from kernelsmith.domain.task import Scalar, Task, Workload
from kernelsmith.propose.rules.compiler import nursery
from kernelsmith.propose.rules.compiler.call import Argument, Constant
from kernelsmith.propose.rules.compiler.facts import Facts

Device = Literal["cuda", "cpu"]
_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the compiler is asked."""

    name: str = "default"
    settings: tuple[tuple[str, Scalar], ...] = ()
    """Names of the compiler's own configuration (``max_autotune``, ``dynamo.allow_rnn``); those
    that it lacks are ignored."""
    measure_s: float = 0.0
    """How long kernels may be built and tried on a GPU, for the block sizes that the compiler
    finds fastest; 0: not at all. Where time runs out, the sizes are guessed."""
    threads: int | None = None
    """Threads of torch while it compiles; on the processor they are written into the text."""
    words: str = "as the compiler does by itself"

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"the name of options is a word; got {self.name!r}")


DEFAULT = Options(measure_s=60.0)
AUTOTUNE = Options(
    name="autotune", measure_s=60.0,
    settings=(("max_autotune", True), ("max_autotune_gemm_backends", "TRITON"),
              ("max_autotune_conv_backends", "TRITON")),
    words="products from the compiler's own Triton templates, with what follows fused into them",
)  # fmt: skip
UNFUSED = Options(
    name="unfused", measure_s=60.0,
    settings=(("max_autotune", True), ("max_autotune_gemm_backends", "TRITON"),
              ("max_autotune_conv_backends", "TRITON"), ("epilogue_fusion", False)),
    words="products from the compiler's own Triton templates, what follows in kernels of its own",
)  # fmt: skip
CHANNELS_LAST = Options(
    name="channels_last", measure_s=60.0, settings=(("force_layout_optimization", True),),
    words="convolutions with channels last",
)  # fmt: skip
AS_GIVEN = Options(
    name="as_given", measure_s=60.0, settings=(("layout_optimization", False),),
    words="convolutions in the layout that the inputs have",
)  # fmt: skip
RECURRENT = Options(
    name="recurrent", measure_s=60.0, settings=(("dynamo.allow_rnn", True),),
    words="recurrent layers unrolled step by step",
)  # fmt: skip
"""Worth asking for where sequences are short; long ones take the compiler minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """The compiler's text for one workload, and how it hangs together with the module."""

    code: str
    arguments: tuple[Argument, ...]
    """In the order in which the generated ``call`` takes them."""
    numbers: tuple[tuple[str, str], ...] = ()
    """Arguments of ``forward`` that are no tensors: path and value, as Python; the text holds for
    these values only."""
    tree: str = "{0}"
    """What ``forward`` returns, as in ``Call.tree``; inputs that are returned stand by path."""
    outputs: int = 1
    """How many results of the generated ``call`` belong to it."""
    training: bool | None = None
    """The mode, where some part of the module works otherwise in the other one."""
    made_with: tuple[tuple[str, str], ...] = ()
    """The constructor's arguments by name, as Python; tensors are left out."""
    constants: tuple[Constant, ...] = ()
    assigned: tuple[tuple[str, str], ...] = ()
    """As in ``Call``."""
    tuned: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    """Kernels by name: the block sizes, warps and stages that the compiler found fastest."""
    torch: str = ""
    """The version of torch that wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Why there is nothing to be had, in one line."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One thing to compile."""

    source: str
    """The task's file or another form of it."""
    workload: Workload
    options: Options = DEFAULT


Capture = Callable[[Task, Sequence[Request]], Sequence[Captured | Skipped]]
"""How the compiler is asked about a task."""


def capture(
    source: str, task: Task, workload: Workload, *, device: Device, options: Options = DEFAULT,
    timeout_s: float = _TIMEOUT_S,
) -> Captured | Skipped:  # fmt: skip
    """Run torch's compiler on a plain PyTorch file up to the generated text.

    Args:
        source: The task's file or another form of it.
        task: Says what is compiled (``Model`` or a function) and in which mode.
        workload: For which inputs.
        device: For which kind of device; it has to be here.
        options: What is asked of the compiler.
        timeout_s: How long it may take.
    """
    asked = Request(source=source, workload=workload, options=options)
    return capture_all(task, [asked], device=device, timeout_s=timeout_s)[0]


def capture_all(
    task: Task, requests: Sequence[Request], *, device: Device, timeout_s: float = _TIMEOUT_S,
    lock: Path | None = None, gpu: Facts | None = None,
) -> list[Captured | Skipped]:  # fmt: skip
    """The same for several, one after the other in one process: torch takes seconds to start.

    Where kernels run on a GPU, ``lock`` is held: shared for what is merely computed, alone for
    what the compiler times. ``gpu`` is what to write for where there is none: nothing is tried on
    it then.
    """
    messages = [
        {
            "source": each.source, "entry": task.entry, "training": task.training,
            "arguments": dict(each.workload.arguments), "init": dict(each.workload.init),
            "dtype": each.workload.dtype, "device": device,
            "settings": dict(each.options.settings), "threads": each.options.threads,
            "measure_s": each.options.measure_s if device == "cuda" else 0.0,
            "lock": str(lock) if lock is not None and device == "cuda" else None,
            "gpu": asdict(gpu) if gpu is not None and device == "cuda" else None,
        }
        for each in requests
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="kernelsmith-capture-") as folder:
        Path(folder, nursery.ASKED).write_text(json.dumps(messages))
        ended = nursery.run(
            "kernelsmith.propose.rules.compiler.child", (), folder=Path(folder),
            environment=environment(folder), gpu=device == "cuda", timeout_s=timeout_s,
        )  # fmt: skip
        said = [f"status {ended.status}", *ended.said.strip().splitlines()]
        missing = f"torch's compiler ended early: {said[-1][:200]}"
        if ended.status is None:
            missing = f"torch's compiler took more than {timeout_s:.0f} s"
        replied = Path(folder, nursery.REPLIED)
        out = replied.read_text() if replied.exists() else ""
    replies = [json.loads(line) for line in out.splitlines(keepends=True) if line.endswith("\n")]
    found = [from_reply(each) for each in replies]
    return [*found, *[Skipped(reason=missing)] * (len(requests) - len(found))]


def to_reply(found: Captured | Skipped) -> dict[str, object]:
    """What the child would say of it: plain lists, dictionaries and numbers."""
    if isinstance(found, Skipped):
        return {"skipped": found.reason}
    return {**asdict(found), "tuned": {name: dict(sizes) for name, sizes in found.tuned}}


def from_reply(reply: dict[str, object]) -> Captured | Skipped:
    """What the child said, as a value."""
    if "skipped" in reply:
        return Skipped(reason=str(reply["skipped"]))
    return _captured(reply)


def environment(folder: str) -> dict[str, str]:
    """Nothing is read from earlier compilations, and nothing stays behind."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("TORCHINDUCTOR", "TORCH_LOGS"))
    }
    source = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
    places = (os.environ.get(name, "") for name in ("PYTHONPATH", "KERNELSMITH_PACKAGES"))
    known = [each for place in places for each in place.split(os.pathsep) if each]
    return kept | {
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "cache"),
        "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
        "PYTHONPATH": os.pathsep.join([source, *(os.path.abspath(each) for each in known)]),
    }


def _captured(reply: dict[str, object]) -> Captured:
    def listed(key: str) -> list[object]:
        found = reply[key]
        assert isinstance(found, list)
        return found

    def numbers(found: object) -> tuple[int, ...] | None:
        return None if found is None else tuple(int(n) for n in found)  # type: ignore[attr-defined]

    arguments = []
    for each in listed("arguments"):
        assert isinstance(each, dict)
        arguments.append(
            Argument(name=str(each["name"]), path=str(each["path"]), dtype=str(each["dtype"]),
                     shape=numbers(each["shape"]), stride=numbers(each["stride"]))
        )  # fmt: skip
    constants = []
    for each in listed("constants"):
        assert isinstance(each, dict)
        constants.append(
            Constant(name=str(each["name"]), shape=tuple(each["shape"]),
                     stride=tuple(each["stride"]), dtype=str(each["dtype"]),
                     values=tuple(each["values"]))
        )  # fmt: skip

    def pairs(key: str) -> tuple[tuple[str, str], ...]:
        found = []
        for each in listed(key):
            assert isinstance(each, list)
            found.append((str(each[0]), str(each[1])))
        return tuple(found)

    training = reply["training"]
    assert training is None or isinstance(training, bool)
    tuned = reply["tuned"]
    assert isinstance(tuned, dict)
    return Captured(
        code=str(reply["code"]), arguments=tuple(arguments), tree=str(reply["tree"]),
        outputs=int(str(reply["outputs"])), training=training, torch=str(reply["torch"]),
        numbers=pairs("numbers"), made_with=pairs("made_with"), assigned=pairs("assigned"),
        constants=tuple(constants),
        tuned=tuple((name, tuple(sorted(found.items()))) for name, found in sorted(tuned.items())),
    )  # fmt: skip
