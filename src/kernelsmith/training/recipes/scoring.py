"""From trials to advantages and to numbers for the curves; the same for every recipe."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.training.recipes.config import GrpoConfig
from kernelsmith.training.reward.advantages import estimator_named
from kernelsmith.training.reward.profiling import kept
from kernelsmith.training.reward.rewards import reward_named
from kernelsmith.training.reward.trial import Trial

ANSWERS = "answers.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What a batch of trials is worth."""

    rewards: tuple[float | None, ...]
    advantages: tuple[float, ...]
    metrics: dict[str, float]


def score(trials: Sequence[Trial], config: GrpoConfig, *, seed: int) -> Scored:
    """Value trials that come group by group, and compare each group's members."""
    if len(trials) % config.group:
        raise ValueError(f"{len(trials)} answers are no whole groups of {config.group}")
    reward, estimate = reward_named(config.reward), estimator_named(config.advantage)
    rewards = tuple(reward(each) for each in trials)
    advantages: list[float] = []
    for at in range(0, len(trials), config.group):
        advantages += estimate(rewards[at : at + config.group])
    if config.profiling_rejection:
        keep = kept(trials, seed)
        advantages = [a if stays else 0.0 for a, stays in zip(advantages, keep, strict=True)]
    return Scored(
        rewards=rewards, advantages=tuple(advantages), metrics=numbers_of(trials, rewards)
    )


def numbers_of(trials: Sequence[Trial], rewards: Sequence[float | None]) -> dict[str, float]:
    """Shares and means of a batch; what nobody knows is left out."""
    judged = [each for each in trials if not each.lost]
    found = {"lost": (len(trials) - len(judged)) / max(len(trials), 1)}
    if not judged:
        return found
    worth = [each for each in rewards if each is not None]
    ratios = [r for each in judged if each.correct and (r := each.over_parent) is not None]
    found |= {
        "mean_reward": sum(worth) / len(worth),
        "correct": sum(each.correct for each in judged) / len(judged),
        "readable": sum(not each.rejection for each in judged) / len(judged),
        "cheated": sum(each.cheated for each in judged) / len(judged),
        "faster": sum(each.is_faster for each in ratios) / len(judged),
    }
    if ratios:
        found["gain"] = sum(each.value for each in ratios) / len(ratios)
    return found


def note_answers(
    folder: Path, step: int, tasks: Sequence[str], answers: Sequence[str], trials: Sequence[Trial],
    rewards: Sequence[float | None],
) -> None:  # fmt: skip
    """Append to the table of answers."""
    with (folder / ANSWERS).open("a", encoding="utf-8") as file:
        for task, answer, trial, reward in zip(tasks, answers, trials, rewards, strict=True):
            gain = trial.over_parent
            said = {
                "step": step, "task": task, "answer": answer[:500], "outcome": outcome_of(trial),
                "gain": None if gain is None else gain.value, "reward": reward,
            }  # fmt: skip
            file.write(json.dumps(said, ensure_ascii=False) + "\n")


def forget_answers(folder: Path, after: int) -> None:
    """Drop what an interrupted training noted after its last checkpoint."""
    path = folder / ANSWERS
    if path.is_file():
        lines = path.read_text(encoding="utf-8").splitlines()
        stays = [line for line in lines if json.loads(line)["step"] <= after]
        path.write_text("".join(f"{line}\n" for line in stays), encoding="utf-8")


def outcome_of(trial: Trial) -> str:
    """One word and the reason."""
    if trial.evaluation is not None:
        return trial.evaluation.verdict.value
    return f"lost: {trial.lost}" if trial.lost else f"rejected: {trial.rejection}"[:120]
