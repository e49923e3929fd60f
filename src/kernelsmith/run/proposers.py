"""From what a config says to whoever writes the candidates."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from kernelsmith.errors import UsageError
from kernelsmith.propose.agent import AgentProposer
from kernelsmith.propose.mailbox import Mailbox
from kernelsmith.propose.proposer import Proposer
from kernelsmith.propose.replay import ReplayProposer
from kernelsmith.run.captures import capturing
from kernelsmith.run.config import RunConfig
from kernelsmith.run.journal import read

_HEAVY = {
    "llm": "kernelsmith.propose.llm:LlmProposer",
    "rules": "kernelsmith.propose.rules.proposer:RulesProposer",
}
_FEW_STEPS = 12
Opens = Callable[[RunConfig, Path], Proposer]
"""Opens who writes for the run in a folder."""
MAILBOX = "agent"
"""Where, in a run's folder, briefs for an agent and its replies lie."""


def make_proposer(config: RunConfig, folder: Path) -> Proposer:
    """Open the proposer that ``config`` names, for the run in ``folder``.

    Raises:
        UsageError: It cannot work as it was asked for.
    """
    spec = config.proposer
    if spec.kind == "llm":
        return _loaded("llm")(spec.models, prompt=config.prompt)
    if spec.kind == "agent":
        return AgentProposer(Mailbox(folder / MAILBOX), options=config.prompt)
    if spec.kind == "replay":
        assert spec.path is not None
        return replayed(Path(spec.path))
    if spec.kind == "student":  # training opens it, and training imports this package
        raise UsageError("a model in a folder is asked from kernelsmith's command line only")
    hurried = not asks_compiler(config)
    found = capturing(config, folder)
    return _loaded("rules")(
        config.backend, in_flight=config.concurrency, hurried=hurried, shelf=found.shelf,
        lock=found.lock,
    )  # fmt: skip


def asks_compiler(config: RunConfig) -> bool:
    """Whether the rules begin by asking torch's compiler, which takes up to a minute."""
    return config.proposer.kind == "rules" and config.budget.steps > _FEW_STEPS


def _loaded(kind: str) -> Callable[..., Proposer]:
    """Import a proposer when it is first wanted: a model's client and torch take their time."""
    module, _, name = _HEAVY[kind].partition(":")
    try:
        found: Callable[..., Proposer] = getattr(import_module(module), name)
    except ImportError as error:
        raise UsageError(f"the proposer {kind!r} needs the module {error.name!r}") from error
    return found


def replayed(path: Path) -> ReplayProposer:
    """Hand out again what a run (its folder or journal) or a file of proposals holds."""
    if path.is_dir():
        path = path / "journal.jsonl"
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            is_journal = file.readline().startswith('{"schema": "journal/')
    except OSError as error:
        raise UsageError(f"cannot read a recording from {path}: {error.strerror}") from error
    return ReplayProposer(read(path).proposals) if is_journal else ReplayProposer.from_jsonl(path)
