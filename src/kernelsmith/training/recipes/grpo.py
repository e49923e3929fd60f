"""Reinforcement with evaluations as reward, with TRL, on one machine.

TRL generates, compares and updates; what is ours is the reward. Answers are judged while the next
chunk is written, and advantages are computed here (``reward/advantages.py``) and handed to TRL as
rewards of mean zero, which it then leaves as they are: the choice of estimator is one word.
"""

import json
import math
import random
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback
from trl import GRPOConfig as TrlConfig
from trl import GRPOTrainer

from kernelsmith.domain.trajectory import Brief
from kernelsmith.errors import UsageError
from kernelsmith.training.data.rows import Row, chat, check_questions
from kernelsmith.training.recipes.config import GrpoConfig
from kernelsmith.training.recipes.distance import FirstPolicy, first_policy
from kernelsmith.training.recipes.judging import Judging
from kernelsmith.training.recipes.model import (
    Model,
    Tokens,
    adapter_of,
    note_form,
    prompt_ids,
    save,
)
from kernelsmith.training.recipes.scoring import forget_answers, note_answers, score
from kernelsmith.training.recipes.sft import FINAL, Trained
from kernelsmith.training.recipes.watching import Curves, Deadline, finished, last_checkpoint
from kernelsmith.training.reward.trial import Trial


def train_grpo(
    rows: Sequence[Row], model: Model, tokens: Tokens, judging: Judging, config: GrpoConfig,
    out: Path, *, max_seconds: float | None = None, stop_at: int | None = None,
) -> Trained:  # fmt: skip
    """Train to the end, or until the deadline; called again, it goes on to the same weights.

    Args:
        rows: Questions with their briefs.
        model: To be trained.
        tokens: Its tokenizer.
        judging: Reads and judges answers.
        config: How; episodes of several turns are ``episodes.py``.
        out: Gets checkpoints, ``metrics.jsonl``, ``answers.jsonl``, ``index.html``, ``model``.
        max_seconds: Save and stop after this time.
        stop_at: Save and stop after this step.

    Raises:
        UsageError: There is no question, or one that cannot be judged.
    """
    check_questions(rows)
    if config.correction is not None:
        raise UsageError(
            "TRL draws and trains by the same weights and has no place for a correction; "
            "train_episodes has one, for one turn as well"
        )
    out.mkdir(parents=True, exist_ok=True)
    if finished(out, config.steps, out / FINAL):
        note_form(out / FINAL, rows)
        return Trained(model=out / FINAL, steps=config.steps, losses=())
    first = None if config.beta else first_policy(model, config)  # weighed, TRL measures it
    asked = {_key(chat(row.prompt)): row for row in rows}
    rollout = _Rollout(asked, judging, tokens, config, out, first)
    deadline = Deadline(seconds=max_seconds, step=stop_at)
    with warnings.catch_warnings():
        # rollout_func may change between versions of TRL; the version is bounded for that.
        warnings.filterwarnings("ignore", message=".*rollout_func.*")
        trainer = GRPOTrainer(
            model=model,
            args=_arguments(config, out),
            train_dataset=Dataset.from_list(
                [{"prompt": chat(row.prompt)} for row in in_order(rows, config)]
            ),
            reward_funcs=rollout.rewarded,
            rollout_func=rollout,
            processing_class=tokens,
            peft_config=adapter_of(config.lora),
            callbacks=[Curves(out, "Reinforcement"), deadline],
        )
    trainer.remove_callback(PrinterCallback)  # the curves are in the folder
    checkpoint = last_checkpoint(out)
    done = int(checkpoint.name.rpartition("-")[2]) if checkpoint else 0
    forget_answers(out, done)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    steps = trainer.state.global_step
    if deadline.reached:
        return Trained(model=None, steps=steps, losses=())
    save(trainer.model, tokens, out / FINAL)
    note_form(out / FINAL, rows)
    return Trained(model=out / FINAL, steps=steps, losses=())


def in_order(rows: Sequence[Row], config: GrpoConfig) -> list[Row]:
    """The questions of all steps, pass after pass, each pass shuffled by the seed.

    TRL shuffles by a state that a checkpoint does not hold, so a training that is resumed in its
    second pass would see other questions than one that was never interrupted.
    """
    found: list[Row] = []
    passes = 0
    while len(found) < config.steps * config.prompts:
        found += random.Random(f"{config.seed} {passes}").sample(list(rows), len(rows))
        passes += 1
    return found[: config.steps * config.prompts]


class _Rollout:
    """Writes answers chunk by chunk, has them judged meanwhile, and values them."""

    def __init__(
        self, rows: dict[str, Row], judging: Judging, tokens: Tokens, config: GrpoConfig, out: Path,
        first: FirstPolicy | None,
    ) -> None:  # fmt: skip
        self._rows, self._judging, self._tokens = rows, judging, tokens
        self._config, self._out, self._first = config, out, first
        self._distances: list[float] = []
        self._briefs: dict[str, Brief] = {}
        self._tickets: list[Future[Trial]] = []
        self._generated_s = 0.0
        self._updating_since: float | None = None

    def __call__(self, prompts: list[Any], trainer: Any) -> dict[str, list[Any] | None]:
        """TRL's seam for rollouts."""
        updating = 0.0 if self._updating_since is None else time.monotonic() - self._updating_since
        self._tickets, self._generated_s, self._distances = [], 0.0, []
        asked: list[list[int]] = []
        answered: list[list[int]] = []
        for at in range(0, len(prompts), self._config.chunk):
            part = prompts[at : at + self._config.chunk]
            ids = [prompt_ids(self._tokens, each) for each in part]
            began = time.monotonic()
            with self._judging.generating():
                written = generate(trainer.model, self._tokens, ids, self._config)
            self._generated_s += time.monotonic() - began
            for prompt, answer in zip(part, written, strict=True):
                said = self._tokens.decode(answer, skip_special_tokens=True)
                ended = bool(answer) and answer[-1] == self._tokens.eos_token_id
                brief = self._brief(_key(prompt))
                self._tickets.append(self._judging.submit(brief, said, cut_off=not ended))
            if self._first is not None:  # while the judge is at work
                with self._judging.generating():
                    self._distances += self._first.distances(trainer.model, ids, written)
            asked += ids
            answered += written
        return {
            "prompt_ids": asked, "completion_ids": answered, "logprobs": None,
            "updating": [updating] * len(prompts),
        }  # fmt: skip

    def rewarded(
        self, prompts: list[Any], completions: list[Any], trainer_state: Any,
        log_metric: Callable[[str, float], None], updating: list[float], **more: object,
    ) -> list[float]:  # fmt: skip
        """Wait for the judge, value the answers, and return advantages."""
        trials = self._judging.wait(self._tickets)
        step = int(trainer_state.global_step) + 1
        scored = score(trials, self._config, seed=self._config.seed + step)
        spent = self._judging.spent()
        numbers = scored.metrics | {
            "seconds_generating": self._generated_s,
            "seconds_judging": spent.judging,
            "seconds_waiting": spent.waiting,
            "seconds_updating": updating[0],
            "judged": spent.judged / max(spent.answers, 1),
        }
        if self._distances:
            numbers["kl"] = math.fsum(self._distances) / len(self._distances)
        for name, value in numbers.items():
            log_metric(name, value)
        tasks = [self._rows[_key(each)].task for each in prompts]
        texts = [each[-1]["content"] for each in completions]
        note_answers(self._out, step, tasks, texts, trials, scored.rewards)
        self._updating_since = time.monotonic()
        return list(scored.advantages)

    def _brief(self, key: str) -> Brief:
        if key not in self._briefs:
            self._briefs[key] = self._rows[key].asked
        return self._briefs[key]


def generate(
    model: Model, tokens: Tokens, prompts: Sequence[list[int]], config: GrpoConfig
) -> list[list[int]]:
    """Sample one answer per prompt, each up to and with its end mark."""
    longest = max(len(each) for each in prompts)
    pad = tokens.pad_token_id
    padded = torch.tensor([[pad] * (longest - len(each)) + each for each in prompts])
    mask = torch.tensor([[0] * (longest - len(each)) + [1] * len(each) for each in prompts])
    was_training = model.training
    model.eval()
    with torch.no_grad():
        out = model.generate(
            input_ids=padded.to(model.device), attention_mask=mask.to(model.device),
            do_sample=True, temperature=config.temperature, top_k=0, top_p=1.0,
            max_new_tokens=config.max_new_tokens, pad_token_id=pad,
            eos_token_id=tokens.eos_token_id, use_cache=True,
        )  # fmt: skip
    model.train(was_training)
    return [_until_end(each, tokens.eos_token_id) for each in out[:, longest:].tolist()]


def _until_end(ids: list[int], end: int) -> list[int]:
    return ids[: ids.index(end) + 1] if end in ids else ids


def _key(prompt: object) -> str:
    return json.dumps(prompt, sort_keys=True)


def _arguments(config: GrpoConfig, out: Path) -> TrlConfig:
    cpu = not torch.cuda.is_available()
    return TrlConfig(
        output_dir=str(out),
        max_steps=config.steps,
        per_device_train_batch_size=config.group,
        gradient_accumulation_steps=config.prompts,
        num_generations=config.group,
        max_completion_length=config.max_new_tokens,
        temperature=config.temperature,
        learning_rate=config.learning_rate,
        lr_scheduler_type="constant",
        beta=config.beta,
        epsilon=config.clip_low,
        epsilon_high=config.clip_high,
        shuffle_dataset=False,  # the questions come in order
        scale_rewards="none",  # advantages come ready from us
        loss_type="dr_grpo",  # no division by the answer's own length: long wrong answers pay
        bf16=config.bf16 and not cpu,
        use_cpu=cpu,
        gradient_checkpointing=False,
        logging_steps=1,
        save_strategy="steps",
        save_steps=config.save_every,
        save_total_limit=config.checkpoints,
        seed=config.seed,
        data_seed=config.seed,
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=not cpu,
    )
