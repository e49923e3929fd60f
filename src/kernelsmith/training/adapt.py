"""Test-time training: a small adapter that learns from a run's own best steps while it runs."""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from peft import get_peft_model

from kernelsmith.domain.trajectory import Outcome, Step
from kernelsmith.errors import UsageError
from kernelsmith.training.adapters import Adapters
from kernelsmith.training.data.filters import Filter, Over
from kernelsmith.training.data.rows import Row, row_of
from kernelsmith.training.data.sample import Sample, Stage
from kernelsmith.training.data.steps import difficulty_of, family_in
from kernelsmith.training.forms.form import Form
from kernelsmith.training.recipes.config import Lora
from kernelsmith.training.recipes.model import Model, Tokens, adapter_of, prompt_ids

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptConfig:
    """How much it adapts."""

    every: int = 2
    """New good steps between two updates."""
    passes: int = 4
    """Gradient steps per update, each over the newest good steps."""
    remembered: int = 16
    learning_rate: float = 1e-3
    rank: int = 8
    seed: int = 0
    """For the adapter's first weights."""

    def __post_init__(self) -> None:
        if (
            min(self.every, self.passes, self.remembered, self.rank) < 1
            or not self.learning_rate > 0
        ):
            raise UsageError(f"an adapter is updated by something, sometimes; got {self}")


class Adapting:
    """Keeps a model's adapter in step with a run. The base weights stay as they are.

    Args:
        model: Wrapped here; serve ``self.model``.
        tokens: Its tokenizer.
        form: The form that the run is asked in.
        config: How much.
        kept: Where its states are kept; those that the journal knows are not made again.
    """

    def __init__(
        self, model: Model, tokens: Tokens, form: Form, config: AdaptConfig,
        kept: Adapters | None = None,
    ) -> None:  # fmt: skip
        with torch.random.fork_rng():
            torch.manual_seed(config.seed)
            lora = Lora(rank=config.rank, alpha=2 * config.rank)
            self.model = get_peft_model(model, adapter_of(lora)).eval()
        self.lock = threading.Lock()
        """Held while weights are changed; the server's, where one generates with them."""
        self.losses: list[float] = []
        """Before each update and pass: how surprising the good steps still were."""
        self._tokens, self._form, self._config = tokens, form, config
        self._kept = kept
        self._good: list[Row] = []
        self._new = 0
        self._behind: int | None = None
        """The step whose weights are on disk and not yet in the model."""
        trained = [each for each in self.model.parameters() if each.requires_grad]
        self._optimizer = torch.optim.AdamW(trained, lr=config.learning_rate)

    def noted(self, step: Step) -> str | None:
        """Take a step of the run; every few good ones, update, and return the weights' hash.

        Where a resumed run tells its steps again, updates are counted and not made: their weights
        are on disk, and ``catch_up`` takes the last ones.
        """
        row = self._row(step)
        if row is None:
            return None
        self._good = [*self._good, row][-self._config.remembered :]
        self._new += 1
        if self._new < self._config.every:
            return None
        self._new = 0
        number = step.brief.number
        if self._kept is not None and number in self._kept.known:
            self._behind = number
            return self._kept.known[number]
        self.catch_up()
        with self.lock:
            self._update(self._good)
            return self._kept.keep(number, self.model, self._optimizer) if self._kept else None

    def catch_up(self) -> None:
        """Take the weights that the run had when it was left.

        Raises:
            UsageError: They are not there any more, or are others.
        """
        if self._behind is not None and self._kept is not None:
            with self.lock:
                self._kept.restore(self._behind, self.model, self._optimizer)
            self._behind = None

    def _row(self, step: Step) -> Row | None:
        if step.candidate is None or step.evaluation is None:
            return None
        if step.placement.outcome is Outcome.DUPLICATE:
            return None  # to learn it twice is to propose it a third time
        task = step.brief.task
        sample = Sample(
            run="adapt", stage=Stage.EXPERT, step=step, family=family_in(task),
            difficulty=difficulty_of(task), lineage=step.candidate.id, depth=0,
        )  # fmt: skip
        if not Filter(over=Over.PARENT, translations=False).keeps(sample):
            return None
        return row_of(sample, self._form)

    def _update(self, rows: Sequence[Row]) -> None:
        self.model.train()
        for _ in range(self._config.passes):
            total = 0.0
            self._optimizer.zero_grad()
            for row in rows:
                loss = self._loss(row) / len(rows)
                loss.backward()
                total += float(loss.detach())
            self._optimizer.step()
            self.losses.append(total)
        self.model.eval()
        _log.info("adapted to %d steps, loss %.3f", len(rows), self.losses[-1])

    def _loss(self, row: Row) -> torch.Tensor:
        asked = prompt_ids(self._tokens, row.prompt)
        said = self._tokens(row.completion, add_special_tokens=False)["input_ids"]
        answer = [*said, self._tokens.eos_token_id]
        ids = torch.tensor([asked + answer], device=self.model.device)
        logits = self.model(input_ids=ids).logits[0, len(asked) - 1 : -1].float()
        wanted = torch.tensor(answer, device=self.model.device)
        return torch.nn.functional.cross_entropy(logits, wanted)
