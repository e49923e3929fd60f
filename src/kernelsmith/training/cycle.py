"""The whole loop: evolve, select, imitate, reinforce, evolve again with what was trained, compare.

Every stage writes a folder and is skipped where that is finished, so an interrupted cycle goes on
where it was. ``add`` begins another round from the last model, on old and new journals together.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.propose.models import ModelConfig
from kernelsmith.run.config import Budget, ProposerSpec, RunConfig
from kernelsmith.training.data.build import HELD_OUT, RL, SFT, Recipe, build
from kernelsmith.training.data.rows import Row, read_rows
from kernelsmith.training.evolve import MakeProposer, OpenJudges, evolve
from kernelsmith.training.forms.form import Form, form_named
from kernelsmith.training.measure import Skill, ask_all, best_scores, skill_of, table_of, to_json
from kernelsmith.training.recipes.config import TrainConfig
from kernelsmith.training.recipes.episodes import trainer_for
from kernelsmith.training.recipes.judging import Judging, Opened
from kernelsmith.training.recipes.model import load, save, tiny
from kernelsmith.training.recipes.sft import train_sft
from kernelsmith.training.serve.proposer import StudentProposer
from kernelsmith.training.serve.server import ModelServer

Say = Callable[[str], None]
BASE = "base"
_SELECTIONS = "selections.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleConfig:
    """What a cycle does."""

    backend: str
    train: TrainConfig
    model: str | None = None
    """A folder with weights to begin with; a tiny model made from nothing where absent."""
    teacher_steps: int = 24
    student_steps: int = 10
    """Of each evolution that models are compared by."""
    selections: tuple[str, ...] = ("best",)
    """Each is reinforced by itself after imitation; the next round begins with the first."""
    instead: tuple[str, ...] = ()
    """What is reinforced where one of them has no step: a short teaching may know no best one."""
    samples: int = 4
    """Answers per held-out question."""
    recipe: Recipe = field(default_factory=Recipe)
    run: RunConfig = field(default_factory=RunConfig)
    """Search and effort of all evolutions; budget and proposer are the cycle's."""
    temperature: float = 0.6
    top_p: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.teacher_steps, self.student_steps, self.samples) < 1 or not self.selections:
            raise UsageError("a cycle has steps, answers and at least one selection")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a cycle works with; whoever made them closes them."""

    teacher: MakeProposer
    evaluator: Callable[[], Opened]
    """For rewards and measurements: opened once per stage that judges."""
    judges: OpenJudges | None = None
    """For evolutions; processes on this machine where absent."""
    device: Device | None = None
    turn: Callable[[], AbstractContextManager[None]] = nullcontext
    """Held while a model generates on the device that is timed."""


class Cycle:
    """One cycle in one folder, of as many rounds as were asked for."""

    def __init__(
        self, folder: Path, tasks: Sequence[Task], config: CycleConfig, parts: Parts, say: Say
    ) -> None:
        if len({task.name for task in tasks}) < 2:
            raise UsageError("a cycle holds tasks out; give it at least two")
        self._root, self._tasks, self._config = folder, list(tasks), config
        self._parts, self._say = parts, say
        self._built: dict[tuple[Path, str], list[Row]] = {}
        self._form: Form = form_named(
            config.recipe.form, config.backend, budget_tokens=config.recipe.context_tokens // 2
        )

    def go(self, add: Sequence[Path] = ()) -> list[Skill]:
        """Run to the end of the current round; with ``add``, to the end of another one."""
        rounds = sorted(self._root.glob("round-*"), key=lambda each: int(each.name[6:]))
        number = len(rounds) or 1
        if add and rounds and not (rounds[-1] / "table.json").is_file():
            raise UsageError(f"{rounds[-1].name} is not finished; go on without --add first")
        if add:
            number = len(rounds) + 1
        return self._round(number, add)

    def _round(self, number: int, add: Sequence[Path]) -> list[Skill]:
        place = self._root / f"round-{number}"
        place.mkdir(parents=True, exist_ok=True)
        added = _remembered(place / "added.json", [str(each.resolve()) for each in add])
        runs = [self._teach()] + [Path(each) for each in added]
        before = self._root / f"round-{number - 1}"
        if number > 1:
            runs += [each for each in sorted(before.glob("evolve-*")) if any(each.iterdir())]
        data = self._data(place, runs)
        base = self._base(place, before if number > 1 else None, data)
        models = {BASE: base, "sft": self._sft(place, base, data)}
        for name in self._selections(place, data, runs):
            models[f"sft+grpo({name})"] = self._grpo(place, models["sft"], data, runs, name)
        skills = [self._measured(place, name, model, data) for name, model in models.items()]
        (place / "table.md").write_text(table_of(skills), encoding="utf-8")
        (place / "table.json").write_text(to_json(skills), encoding="utf-8")
        return skills

    def _teach(self) -> Path:
        folder = self._root / "teacher"
        self._say("evolve with the teacher")
        config = self._run_config(self._config.teacher_steps, ProposerSpec())
        evolve(self._tasks, folder, config, self._parts.teacher, judges=self._parts.judges,
               device=self._parts.device, say=self._say)  # fmt: skip
        return folder

    def _data(self, place: Path, runs: Sequence[Path]) -> Path:
        data = place / "data"
        if not (data / "card.md").is_file():
            self._say("select steps")
            built = build(runs, self._recipe(self._config.selections[0]), data, form=self._form)
            if not built.sft:
                raise UsageError("no step of the teacher is worth imitating; evolve longer")
        return data

    def _base(self, place: Path, before: Path | None, data: Path) -> Path:
        if before is not None:
            reinforced = _said(before / _SELECTIONS) or list(self._config.selections)
            return before / f"grpo-{reinforced[0]}" / "model"
        if self._config.model is not None:
            return Path(self._config.model)
        base = place / BASE
        if not (base / "config.json").is_file():
            rows = read_rows(data / SFT)
            save(*tiny(rows, self._config.train.tiny, seed=self._config.seed), base)
        return base

    def _sft(self, place: Path, base: Path, data: Path) -> Path:
        out = place / "sft"
        if not _is_model(out / "model"):
            self._say("imitate")
            model, tokens = load(base)
            trained = train_sft(read_rows(data / SFT), model, tokens, self._config.train.sft, out)
            first, last = trained.losses[0], trained.losses[-1]
            self._say(f"loss {first:.3f} to {last:.3f} in {trained.steps} steps")
        return out / "model"

    def _selections(self, place: Path, data: Path, runs: Sequence[Path]) -> list[str]:
        """What is reinforced: as configured, or the first of the others that has a step."""
        if known := _said(place / _SELECTIONS):
            return known
        found: list[str] = []
        for name in self._config.selections:
            others = [each for each in self._config.instead if each not in found]
            having = (each for each in (name, *others) if self._questions(data, runs, each))
            chosen = next(having, None)
            if chosen is None:
                raise UsageError(f"the selection {name!r} has no step; evolve longer, or another")
            if chosen != name:
                self._say(f"no step of the teacher is one of {name!r}: {chosen!r} instead")
            found.append(chosen)
        return _remembered(place / _SELECTIONS, found)

    def _questions(self, data: Path, runs: Sequence[Path], name: str) -> list[Row]:
        if name == self._config.selections[0]:
            return read_rows(data / RL)
        if (data, name) not in self._built:  # all journals are read for it
            self._built[data, name] = list(build(runs, self._recipe(name), form=self._form).rl)
        return self._built[data, name]

    def _grpo(self, place: Path, sft: Path, data: Path, runs: Sequence[Path], name: str) -> Path:
        out = place / f"grpo-{name}"
        if not _is_model(out / "model"):
            self._say(f"reinforce on {name} steps")
            rows = self._questions(data, runs, name)
            model, tokens = load(sft)
            config = self._config.train.grpo
            with self._judging() as judging:
                trainer_for(config)(rows, model, tokens, judging, config, out)
        return out / "model"

    def _measured(self, place: Path, name: str, model: Path, data: Path) -> Skill:
        """Held-out questions, then evolutions on held-out tasks, both through the server."""
        rows = read_rows(data / HELD_OUT)
        if not rows:
            raise UsageError("no task is held out; give the cycle more tasks")
        held = {row.task for row in rows}
        self._say(f"measure {name} on {', '.join(sorted(held))}")
        tokens_most = self._config.train.grpo.max_new_tokens
        loaded, tokens = load(model)
        evolved = place / f"evolve-{name}"
        with ModelServer(loaded, tokens, name=name, turn=self._parts.turn) as server:
            asked = ModelConfig(
                name=name, base_url=server.url, max_tokens=tokens_most,
                temperature=self._config.temperature, top_p=self._config.top_p,
            )  # fmt: skip
            spec = ProposerSpec(kind="llm", models=(asked,))
            config = self._run_config(self._config.student_steps, spec)
            evolve([task for task in self._tasks if task.name in held], evolved, config,
                   lambda task, folder: StudentProposer(asked, self._form),
                   judges=self._parts.judges, device=self._parts.device)  # fmt: skip
            with self._judging() as judging:
                trials = ask_all(StudentProposer(asked, self._form), rows, judging,
                                 samples=self._config.samples, seed=self._config.seed)  # fmt: skip
        return skill_of(name, trials, best_scores(evolved), seed=self._config.seed)

    def _judging(self) -> Judging:
        return Judging(self._parts.evaluator(), self._form, turn=self._parts.turn)

    def _recipe(self, name: str) -> Recipe:
        recipe = replace(self._config.recipe, select=name, seed=self._config.seed)
        marker = self._root / "held_out.json"  # the same tasks stay held out in every round
        if recipe.held_out:
            return recipe
        if not marker.is_file():
            parted = build([self._root / "teacher"], recipe, form=self._form).split
            marker.write_text(json.dumps(sorted(parted.held_out)))
        return replace(recipe, held_out=tuple(json.loads(marker.read_text())))

    def _run_config(self, steps: int, proposer: ProposerSpec) -> RunConfig:
        return replace(
            self._config.run, backend=self._config.backend, seed=self._config.seed,
            budget=Budget(steps=steps), proposer=proposer,
            remeasure=replace(self._config.run.remeasure, final=0),
        )  # fmt: skip


def _remembered(path: Path, said: list[str]) -> list[str]:
    """What a round was given when it began; a later call need not say it again."""
    if said or not path.is_file():
        path.write_text(json.dumps(said))
    return _said(path)


def _said(path: Path) -> list[str]:
    """What was remembered; nothing where nobody did."""
    return [str(each) for each in json.loads(path.read_text())] if path.is_file() else []


def _is_model(path: Path) -> bool:
    return (path / "config.json").is_file() or (path / "adapter_config.json").is_file()
