"""Reinforcement over episodes of several turns, with turn-level advantages (Dr. Kernel's TRLOO).

An episode is a small evolution: an answer that passes becomes the next turn's parent, one that
fails becomes feedback. Turns are compared with the same turn of their group's other episodes. TRL
has no advantages per turn and no correction of mismatch without vLLM, so this is a plain loop:
sample, judge, compare, one clipped update.
"""

import json
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from peft import get_peft_model

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.trajectory import Brief, Exemplar, Role
from kernelsmith.errors import UsageError
from kernelsmith.search.score import score as search_score
from kernelsmith.training.data.rows import Row, check_questions
from kernelsmith.training.page import write_page
from kernelsmith.training.recipes.config import GrpoConfig
from kernelsmith.training.recipes.distance import (
    FirstPolicy,
    divergence,
    first_policy,
    token_logs,
)
from kernelsmith.training.recipes.grpo import train_grpo
from kernelsmith.training.recipes.judging import Judging
from kernelsmith.training.recipes.model import (
    Model,
    Tokens,
    adapter_of,
    note_form,
    prompt_ids,
    save,
)
from kernelsmith.training.recipes.scoring import forget_answers, note_answers, numbers_of
from kernelsmith.training.recipes.sft import FINAL, Trained
from kernelsmith.training.recipes.watching import METRICS
from kernelsmith.training.reward.advantages import estimator_named, over_turns
from kernelsmith.training.reward.mismatch import OFF
from kernelsmith.training.reward.profiling import kept
from kernelsmith.training.reward.rewards import reward_named
from kernelsmith.training.reward.trial import Trial

_MOST_FAILURES = 3
_STATE = "state.pt"


@dataclass(slots=True)
class Turn:
    """One question and one answer of an episode."""

    asked: list[int]
    answer: list[int]
    sampled: list[float]
    """Log-probabilities of the answer's tokens, as they were drawn."""
    trial: Trial
    advantage: float = 0.0


@dataclass(slots=True)
class Episode:
    """One course of turns from one question."""

    brief: Brief
    turns: list[Turn] = field(default_factory=list)
    ended: bool = False


def trainer_for(config: GrpoConfig) -> Callable[..., Trained]:
    """TRL's loop where one turn is all there is; this one for turns, and for correction."""
    return train_episodes if config.turns > 1 or config.correction is not None else train_grpo


def train_episodes(
    rows: Sequence[Row], model: Model, tokens: Tokens, judging: Judging, config: GrpoConfig,
    out: Path, *, max_seconds: float | None = None, stop_at: int | None = None,
) -> Trained:  # fmt: skip
    """Train to the end, or until the deadline; called again, it goes on to the same weights."""
    check_questions(rows)
    if config.beta:
        raise UsageError("episodes do not weigh the distance to the first policy; leave beta out")
    out.mkdir(parents=True, exist_ok=True)
    first = first_policy(model, config)
    torch.manual_seed(config.seed)
    if (adapter := adapter_of(config.lora)) is not None:
        model = get_peft_model(model, adapter)
    trained = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=config.learning_rate, weight_decay=0.0)
    done = _restored(out, model, optimizer)
    _forget(out, done)
    until = None if max_seconds is None else time.monotonic() + max_seconds
    briefs: dict[str, Brief] = {}
    for step in range(done + 1, config.steps + 1):
        chosen = random.Random(f"{config.seed} {step}").sample(
            list(rows), min(config.prompts, len(rows))
        )
        groups: list[list[Episode]] = []
        for row in chosen:
            brief = briefs.setdefault(row.id, row.asked)
            groups.append(roll_out(model, tokens, brief, judging, config))
        numbers = learn(model, optimizer, groups, config, first, seed=config.seed + step)
        _note(out, step, groups, tokens, config, numbers, judging)
        last = step == config.steps
        late = (until is not None and time.monotonic() > until) or step == stop_at
        if last or late or step % config.save_every == 0:
            _saved(out, model, optimizer, step, config.checkpoints)
        if late and not last:
            return Trained(model=None, steps=step, losses=())
    write_page(out, "Reinforcement over turns")
    save(model, tokens, out / FINAL)
    note_form(out / FINAL, rows)
    return Trained(model=out / FINAL, steps=config.steps, losses=())


def roll_out(
    model: Model, tokens: Tokens, brief: Brief, judging: Judging, config: GrpoConfig
) -> list[Episode]:
    """Play a group of episodes from one question, turn by turn, all of them at a time."""
    episodes = [Episode(brief=brief) for _ in range(config.group)]
    for _ in range(config.turns):
        active = [each for each in episodes if not each.ended]
        if not active:
            break
        asked = [prompt_ids(tokens, judging.form.messages(each.brief)) for each in active]
        with judging.generating():
            written = _sample(model, tokens, asked, config)
        tickets = [
            judging.submit(
                each.brief, tokens.decode(answer, skip_special_tokens=True),
                cut_off=not answer or answer[-1] != tokens.eos_token_id,
            )
            for each, (answer, _) in zip(active, written, strict=True)
        ]  # fmt: skip
        trials = judging.wait(tickets)
        for each, ids, (answer, logs), trial in zip(active, asked, written, trials, strict=True):
            each.turns.append(Turn(asked=ids, answer=answer, sampled=logs, trial=trial))
            following = next_brief(each.brief, trial)
            each.ended = following is None
            each.brief = following or each.brief
    return episodes


def next_brief(brief: Brief, trial: Trial) -> Brief | None:
    """What the next turn is asked; none where there is nothing new to show.

    What passed is improved further. What failed is shown as a failure beside the same parent. A
    reply without a program, or one that nobody could judge, ends the episode.
    """
    found = trial.evaluation
    if found is None:
        return None
    above = brief.parent.candidate.id if brief.parent is not None else None
    candidate = Candidate(backend=brief.backend, source=trial.source, parent=above)
    shown = Exemplar(
        role=Role.PARENT if trial.correct else Role.FAILURE, candidate=candidate, evaluation=found,
        score=search_score(found),
    )  # fmt: skip
    if trial.correct:
        return replace(brief, number=brief.number + 1, parent=shown)
    failures = (shown, *brief.failures)[:_MOST_FAILURES]
    return replace(brief, number=brief.number + 1, failures=failures)


def learn(
    model: Model, optimizer: Any, groups: Sequence[Sequence[Episode]], config: GrpoConfig,
    first: FirstPolicy | None, *, seed: int,
) -> dict[str, float]:  # fmt: skip
    """Compare the turns of every group, and make one update."""
    reward, estimate = reward_named(config.reward), estimator_named(config.advantage)
    for group in groups:
        rewards = [[reward(turn.trial) for turn in each.turns] for each in group]
        for each, own in zip(group, over_turns(rewards, estimate, config.gamma), strict=True):
            for turn, advantage in zip(each.turns, own, strict=True):
                turn.advantage = advantage
    turns = [turn for group in groups for each in group for turn in each.turns if turn.answer]
    if config.profiling_rejection:
        for turn, stays in zip(turns, kept([t.trial for t in turns], seed), strict=True):
            turn.advantage = turn.advantage if stays else 0.0
    correction = config.correction or OFF
    model.train()
    optimizer.zero_grad()
    dropped, distance, total = 0, 0.0, 0.0
    moved: list[float] = []
    entropies: list[float] = []
    for turn in turns:
        logs, entropy = token_logs(model, turn.asked, turn.answer, config.temperature)
        weight = correction.weight(logs.detach().tolist(), turn.sampled)
        dropped += weight == 0.0
        distance += float((torch.tensor(turn.sampled) - logs.detach().cpu()).mean())
        entropies += entropy.tolist()
        if first is not None:
            before = first.logs(model, turn.asked, turn.answer)
            moved += divergence(logs.detach(), before).tolist()
        if weight == 0.0 or turn.advantage == 0.0:
            continue
        ratio = torch.exp(logs - logs.detach())
        bounded = ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
        gained = torch.minimum(ratio * turn.advantage, bounded * turn.advantage)
        # One constant for all answers: dividing by their own length makes long wrong ones cheap.
        loss = -weight * gained.sum() / (config.max_new_tokens * len(turns))
        loss.backward()
        total += float(loss.detach())
    norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))
    if math.isfinite(norm):
        optimizer.step()
    found = {
        "loss": total, "grad_norm": norm, "dropped": dropped / max(len(turns), 1),
        "mismatch": distance / max(len(turns), 1),
        "turns": len(turns) / max(sum(len(group) for group in groups), 1),
    }  # fmt: skip
    if turns:
        found["completions/mean_length"] = sum(len(each.answer) for each in turns) / len(turns)
        found["entropy"] = math.fsum(entropies) / len(entropies)
    return found | ({"kl": math.fsum(moved) / len(moved)} if moved else {})


def _sample(
    model: Model, tokens: Tokens, prompts: Sequence[list[int]], config: GrpoConfig
) -> list[tuple[list[int], list[float]]]:
    """Draw answers, with the probabilities that they were drawn by."""
    longest, pad, end = max(map(len, prompts)), tokens.pad_token_id, tokens.eos_token_id
    padded = torch.tensor([[pad] * (longest - len(each)) + each for each in prompts])
    mask = torch.tensor([[0] * (longest - len(each)) + [1] * len(each) for each in prompts])
    model.eval()
    with torch.no_grad():
        out = model.generate(
            input_ids=padded.to(model.device), attention_mask=mask.to(model.device),
            do_sample=True, temperature=config.temperature, top_k=0, top_p=1.0,
            max_new_tokens=config.max_new_tokens, pad_token_id=pad, eos_token_id=end,
            return_dict_in_generate=True, output_scores=True,
        )  # fmt: skip
    ids = out.sequences[:, longest:].tolist()
    logs = torch.stack([torch.log_softmax(each.float(), -1) for each in out.scores], 1).cpu()
    found = []
    for row, own in enumerate(ids):
        answer = own[: own.index(end) + 1] if end in own else own
        found.append((answer, [float(logs[row, at, token]) for at, token in enumerate(answer)]))
    return found


def _note(
    out: Path, step: int, groups: Sequence[Sequence[Episode]], tokens: Tokens, config: GrpoConfig,
    numbers: dict[str, float], judging: Judging,
) -> None:  # fmt: skip
    reward, spent = reward_named(config.reward), judging.spent()
    turns = [(each, turn) for group in groups for each in group for turn in each.turns]
    trials = [turn.trial for _, turn in turns]
    rewards = [reward(each) for each in trials]
    texts = [tokens.decode(turn.answer, skip_special_tokens=True) for _, turn in turns]
    note_answers(out, step, [each.brief.task.name for each, _ in turns], texts, trials, rewards)
    said = {"step": step, **numbers, **numbers_of(trials, rewards),
            "seconds_judging": spent.judging, "seconds_waiting": spent.waiting}  # fmt: skip
    with (out / METRICS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(said) + "\n")
    write_page(out, "Reinforcement over turns")


def _saved(out: Path, model: Model, optimizer: Any, step: int, keep: int) -> None:
    folder = out / f"checkpoint-{step}"
    folder.mkdir(exist_ok=True)
    state = {
        "step": step, "model": _learnt(model), "optimizer": optimizer.state_dict(),
        "random": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }  # fmt: skip
    draft = folder / f".{_STATE}"
    torch.save(state, draft)
    draft.replace(folder / _STATE)
    for old in _checkpoints(out)[:-keep]:
        (old / _STATE).unlink()
        old.rmdir()


def _learnt(model: Model) -> dict[str, torch.Tensor]:
    """All weights but those that stay as they are, under an adapter."""
    every = model.named_parameters(remove_duplicate=False)
    still = {name for name, each in every if not each.requires_grad}
    return {name: each for name, each in model.state_dict().items() if name not in still}


def _restored(out: Path, model: Model, optimizer: Any) -> int:
    found = _checkpoints(out)
    if not found:
        return 0
    state = torch.load(found[-1] / _STATE, map_location="cpu", weights_only=True)
    model.load_state_dict(model.state_dict() | state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["random"])
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
    return int(state["step"])


def _checkpoints(out: Path) -> list[Path]:
    whole = [each for each in out.glob("checkpoint-*") if (each / _STATE).is_file()]
    return sorted(whole, key=lambda each: int(each.name.rpartition("-")[2]))


def _forget(out: Path, after: int) -> None:
    forget_answers(out, after)
    path = out / METRICS
    if path.is_file():
        lines = [
            line for line in path.read_text().splitlines() if json.loads(line)["step"] <= after
        ]
        path.write_text("".join(f"{line}\n" for line in lines))
