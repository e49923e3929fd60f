"""Supervised training on imitated steps, with TRL, on one machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from datasets import Dataset, disable_progress_bars
from transformers import PrinterCallback
from trl import SFTConfig as TrlConfig
from trl import SFTTrainer

from kernelsmith.errors import UsageError
from kernelsmith.training.data.rows import Row, chat
from kernelsmith.training.recipes.config import SftConfig
from kernelsmith.training.recipes.model import Model, Tokens, adapter_of, note_form, save
from kernelsmith.training.recipes.watching import (
    Curves,
    Deadline,
    finished,
    last_checkpoint,
    read_metrics,
)

FINAL = "model"
disable_progress_bars()  # the curves say how far it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """How a training ended."""

    model: Path | None
    """The weights; none where it was stopped before its end, and the same call goes on."""
    steps: int
    losses: tuple[float, ...]
    """Of the supervised kind, in order; empty for reinforcement."""


def train_sft(
    rows: Sequence[Row], model: Model, tokens: Tokens, config: SftConfig, out: Path, *,
    max_seconds: float | None = None, stop_at: int | None = None,
) -> Trained:  # fmt: skip
    """Train to the end, or until the deadline; called again, it goes on to the same weights.

    Args:
        rows: With answers.
        model: To be trained; its weights are replaced by the checkpoint's where there is one.
        tokens: Its tokenizer.
        config: How.
        out: Gets checkpoints, ``metrics.jsonl``, ``index.html`` and at the end ``model``.
        max_seconds: Save and stop after this time.
        stop_at: Save and stop after this step.

    Raises:
        UsageError: There is nothing to train on.
    """
    rows = [each for each in rows if each.completion]
    if not rows:
        raise UsageError("no row has an answer to imitate")
    if finished(out, config.steps, out / FINAL):
        note_form(out / FINAL, rows)
        return Trained(model=out / FINAL, steps=config.steps, losses=_losses(out))
    held = max(1, int(len(rows) * config.eval_share)) if config.eval_share and len(rows) > 4 else 0
    # Every so many rows, not the last ones: files are in the order of tasks.
    apart = {index * len(rows) // held for index in range(held)} if held else set()
    train = [row for index, row in enumerate(rows) if index not in apart]
    test = [rows[index] for index in sorted(apart)]
    deadline = Deadline(seconds=max_seconds, step=stop_at)
    trainer = SFTTrainer(
        model=model,
        args=_arguments(config, out, evaluates=bool(test)),
        train_dataset=_dataset(train),
        eval_dataset=_dataset(test) if test else None,
        processing_class=tokens,
        peft_config=adapter_of(config.lora),
        callbacks=[Curves(out, "Supervised training"), deadline],
    )
    trainer.remove_callback(PrinterCallback)  # the curves are in the folder
    checkpoint = last_checkpoint(out)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    losses = _losses(out)
    if deadline.reached:
        return Trained(model=None, steps=trainer.state.global_step, losses=losses)
    save(trainer.model, tokens, out / FINAL)
    note_form(out / FINAL, rows)
    return Trained(model=out / FINAL, steps=trainer.state.global_step, losses=losses)


def _losses(out: Path) -> tuple[float, ...]:
    return tuple(each["loss"] for each in read_metrics(out) if "loss" in each)


def _dataset(rows: Sequence[Row]) -> Dataset:
    return Dataset.from_list(
        [
            {
                "prompt": chat(row.prompt),
                "completion": [{"role": "assistant", "content": row.completion}],
            }
            for row in rows
        ]
    )


def _arguments(config: SftConfig, out: Path, *, evaluates: bool) -> TrlConfig:
    cpu = not torch.cuda.is_available()
    return TrlConfig(
        output_dir=str(out),
        max_steps=config.steps,
        per_device_train_batch_size=config.batch,
        gradient_accumulation_steps=config.accumulate,
        learning_rate=config.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=max(1, config.steps // 20),
        max_length=config.max_length,  # TRL's default of 1024 truncates without a word
        completion_only_loss=True,
        packing=False,
        bf16=config.bf16 and not cpu,  # on some processors a bf16 product is an illegal instruction
        use_cpu=cpu,
        gradient_checkpointing=not cpu,
        logging_steps=max(1, config.steps // 100),
        eval_strategy="steps" if evaluates else "no",
        eval_steps=config.save_every,
        save_strategy="steps",
        save_steps=config.save_every,
        save_total_limit=config.checkpoints,
        seed=config.seed,
        data_seed=config.seed,
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=not cpu,
    )
