"""The table of static rules: what no honest kernel needs, and why.

Numbers are those of the catalogue of known exploits (``docs/threat-model.md``). A rule here is a
filter with a clear message; whoever evades it meets the guards that watch behaviour.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that gets a candidate refused."""

    id: str
    catalogue: str
    why: str
    """Completes a sentence that begins with the offending name."""
    names: tuple[str, ...] = ()
    """Dotted names whose mention is enough; what lies below them is meant too."""
    attributes: tuple[str, ...] = ()
    """Attribute names that offend on any object."""


INHERITS = Rule(
    id="inherits-reference",
    catalogue="A5",
    why="is the reference; build on torch.nn.Module instead",
)
PATCHES = Rule(
    id="patches-module",
    catalogue="C5, F1, F3",
    why="is changed for everyone in the process; a kernel changes only what it made itself",
)
SUBCLASSES = Rule(
    id="tensor-subclass",
    catalogue="C4",
    why="makes a tensor that is not a plain tensor; return torch.Tensor",
    names=("torch.overrides", "torch.utils._python_dispatch"),
    attributes=(
        "__torch_function__", "__torch_dispatch__", "as_subclass", "_make_subclass",
        "_make_wrapper_subclass",
    ),
)  # fmt: skip
HIDES = Rule(
    id="hidden-code",
    catalogue="F10",
    why="runs code that cannot be read here; write it out",
    names=("marshal", "types.CodeType", "types.FunctionType", "code", "codeop"),
    attributes=("__subclasses__", "__globals__", "__code__"),
)
ENVIRONMENT = Rule(
    id="environment",
    catalogue="F7",
    why="changes how libraries start; a kernel has no need of it",
    names=("os.putenv", "os.unsetenv"),
)
SHELLS_OUT = Rule(
    id="native-process",
    catalogue="F8, F9",
    why="starts, watches or calls other processes; a kernel computes",
)
INCLUDES = Rule(
    id="native-include",
    catalogue="B4",
    why="pulls a file of this machine into the build; include headers by name",
)

RULES: tuple[Rule, ...] = (
    Rule(
        id="compiler",
        catalogue="A2",
        why="lets torch's own compiler write the kernel; write it yourself",
        names=(
            "torch.compile", "torch.compiler", "torch._dynamo", "torch._inductor", "torch.jit",
            "torch.export", "torch._export", "torch.fx.experimental.proxy_tensor", "torch._C._jit",
        ),
    ),
    Rule(
        id="frames",
        catalogue="B1",
        why="looks into the caller; a kernel has no need of it",
        names=(
            "sys._getframe", "sys._current_frames", "sys._current_exceptions", "inspect.stack",
            "inspect.currentframe", "inspect.trace", "inspect.getouterframes",
            "inspect.getinnerframes", "traceback.walk_stack", "traceback.extract_stack",
            "traceback.StackSummary",
        ),
        attributes=(
            "f_back", "f_locals", "f_globals", "tb_frame", "gi_frame", "cr_frame", "ag_frame",
        ),
    ),
    Rule(
        id="heap",
        catalogue="B2",
        why="looks for other people's objects; a kernel knows its arguments",
        names=("gc.get_objects", "gc.get_referrers", "gc.get_referents"),
    ),
    Rule(
        id="modules",
        catalogue="B4",
        why="reaches for modules that are not the candidate's; only kernelsmith.kernels is",
        names=(
            "sys.modules", "__main__", "kernelsmith", "importlib.reload", "importlib.util",
            "importlib.machinery", "runpy", "imp", "pkgutil",
        ),
    ),
    Rule(
        id="background",
        catalogue="C3",
        why="works on after the launch has returned; threads belong into C++ and end with the call",
        names=(
            "threading", "_thread", "multiprocessing", "torch.multiprocessing", "asyncio",
            "concurrent.futures", "signal", "torch.futures", "torch.jit.fork",
        ),
    ),
    Rule(
        id="processes",
        catalogue="F8",
        why="starts or stops processes; a kernel computes",
        names=(
            "subprocess", "pty", "os.fork", "os.forkpty", "os.system", "os.popen", "os.kill",
            "os.killpg", "os._exit", "os.abort", "os.execl", "os.execle", "os.execlp",
            "os.execlpe", "os.execv", "os.execve", "os.execvp", "os.execvpe", "os.spawnl",
            "os.spawnle", "os.spawnlp", "os.spawnlpe", "os.spawnv", "os.spawnve", "os.spawnvp",
            "os.spawnvpe", "os.posix_spawn", "os.posix_spawnp",
        ),
    ),
    Rule(
        id="network",
        catalogue="F9",
        why="asks another machine; nothing is reachable, and a kernel needs nothing",
        names=(
            "socket", "urllib", "requests", "http", "ftplib", "httpx", "aiohttp", "pip",
            "ensurepip", "torch.hub",
        ),
    ),
    Rule(
        id="hooks",
        catalogue="F7",
        why="hooks into the interpreter; a kernel has no need of it",
        names=(
            "sys.settrace", "sys.setprofile", "sys.meta_path", "sys.path_hooks", "sys.monitoring",
            "sys.path_importer_cache", "atexit", "sitecustomize", "usercustomize",
            "unittest.mock",
        ),
    ),
    Rule(
        id="global-state",
        catalogue="B7, F5",
        why="changes torch for everything that runs after it; a kernel has no need of it",
        names=(
            "torch.manual_seed", "torch.seed", "torch.random.manual_seed", "torch.random.seed",
            "torch.set_rng_state", "torch.random.set_rng_state", "torch.cuda.manual_seed",
            "torch.cuda.manual_seed_all", "torch.set_default_dtype",
            "torch.set_default_tensor_type", "torch.use_deterministic_algorithms",
            "torch.set_flush_denormal", "torch.set_float32_matmul_precision",
        ),
    ),
    SUBCLASSES,
    HIDES,
    ENVIRONMENT,
)  # fmt: skip

EXEMPT = (
    "kernelsmith.kernels", "torch.jit.is_scripting", "torch.jit.is_tracing", "torch.jit.unused",
    "torch.jit.ignore", "torch.compiler.is_compiling",
)  # fmt: skip
"""Dotted names that no rule is about: ours, and questions and marks that compile nothing."""

TENSORS = (
    "torch.Tensor",
    "torch.nn.Parameter",
    "torch.nn.parameter.Parameter",
    "torch._C.TensorBase",
)

TUNNELS = ("sys", "os", "gc", "inspect", "builtins", "subprocess", "threading", "importlib")
"""Modules that other modules have imported: ``torch.sys`` is ``sys``."""

ENVIRONMENT_PREFIXES = ("LD_", "PYTHON", "OMP_", "MKL_", "KMP_", "GOMP_", "TORCH", "ATEN_", "DNNL_")
ENVIRONMENT_ALLOWED = ("TORCH_CUDA_ARCH_LIST",)
"""Says for what to build; the judge builds, and decides."""


def rule_for(name: str) -> Rule | None:
    """Return the rule that a dotted name offends, if any."""
    parts = name.split(".")
    for at, part in enumerate(parts):
        if at and part not in TUNNELS:
            continue
        tail = ".".join(parts[at:])
        if any(_below(tail, exempt) for exempt in EXEMPT):
            continue
        for rule in RULES:
            if any(_below(tail, each) for each in rule.names):
                return rule
    return None


def rule_for_attribute(attribute: str) -> Rule | None:
    """Return the rule that an attribute offends whatever it is an attribute of, if any."""
    return next((rule for rule in RULES if attribute in rule.attributes), None)


def _below(name: str, top: str) -> bool:
    return name == top or name.startswith(f"{top}.")
