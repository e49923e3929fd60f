"""What a journal says besides its steps: how the run was set up, and how to go on with it."""

import shlex
from dataclasses import dataclass

from kernelsmith.domain.device import Device
from kernelsmith.report.heat import Axis
from kernelsmith.run.config import Budget, RunConfig
from kernelsmith.run.recorded import Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """One run's surroundings, as far as a reader of its numbers needs them."""

    task: str
    backend: str
    device: Device | None = None
    axes: tuple[Axis, ...] = ()
    """What the archive's cells are made of, in their order."""
    settings: tuple[tuple[str, str], ...] = ()
    """What a reader needs to compare this run with another, by name."""
    commands: tuple[tuple[str, str], ...] = ()
    """What to type to see it, go on, or run it again: a word on it, and the command."""


def about_of(
    recorded: Recorded, *, folder: str = "", axes: tuple[Axis, ...] = (), has_parent: bool = True
) -> About:
    """Read a journal's header.

    Args:
        recorded: The journal.
        folder: Where the run lives, for the commands; none are given without it.
        axes: Names for what the archive's cells are made of.
        has_parent: Whether the winner can be held against its parent.
    """
    header = recorded.header
    config = recorded.config
    return About(
        task=header.task.name,
        backend=config.backend,
        device=header.device,
        axes=axes,
        settings=(
            ("run", header.run),
            ("started", header.started),
            *header.versions,
            *_settings(config),
        ),
        commands=_commands(folder, 2 * config.budget.steps, has_parent) if folder else (),
    )


def _commands(folder: str, steps: int, has_parent: bool) -> tuple[tuple[str, str], ...]:
    """What a person does next with a run's folder."""
    where = shlex.quote(folder)
    task, best, config = (
        shlex.quote(f"{folder}/{name}") for name in ("task.py", "best.py", "config.toml")
    )
    changed = (("See what the winner changed", f"kernelsmith diff {where} parent best"),)
    return (
        ("Judge the winner again, for a number to quote",
         f"kernelsmith evaluate {task} {best} --effort thorough"),
        ("Look at a step, with its brief, reply and verdict",
         f"kernelsmith show {where} --step 0"),
        *(changed if has_parent else ()),
        ("Go on with the run", f"kernelsmith resume {where} --steps {steps}"),
        ("Run it again from the start",
         f"kernelsmith optimize {task} --config {config} --out {shlex.quote(folder + '-again')}"),
    )  # fmt: skip


def _settings(config: RunConfig) -> tuple[tuple[str, str], ...]:
    search, proposer = config.search, config.proposer
    models = ", ".join(model.name for model in proposer.models)
    return (
        ("policy", f"{search.policy}, {search.islands} islands"),
        ("proposer", f"{proposer.kind}: {models}" if models else proposer.kind),
        ("effort", f"{config.effort}; champions and the result: {config.confirm_effort}"),
        ("budget", _budget(config.budget)),
        ("steps in flight", str(config.concurrency)),
        ("seed", str(config.seed)),
    )


def _budget(budget: Budget) -> str:
    limits = [
        (f"{budget.steps} steps", True),
        (f"{budget.tokens} tokens", budget.tokens is not None),
        (f"${budget.usd}", budget.usd is not None),
        (f"{budget.seconds} s", budget.seconds is not None),
        (f"until {budget.target_speedup}x", budget.target_speedup is not None),
        (f"until nothing improved for {budget.stale_steps} steps", budget.stale_steps is not None),
        (f"until {budget.roofline_share} of the roofline", budget.roofline_share is not None),
    ]
    return ", ".join(said for said, is_set in limits if is_set)
