"""How far a policy has moved from its first weights, measured on the answers that it samples."""

import copy
from collections.abc import Sequence
from contextlib import nullcontext

import torch

from kernelsmith.training.recipes.config import GrpoConfig
from kernelsmith.training.recipes.model import Model


class FirstPolicy:
    """The policy that training began with: a copy of its weights, or the base of an adapter.

    Args:
        weights: The copy; none where an adapter is trained, which can be left out.
        temperature: That answers are drawn by.
    """

    def __init__(self, weights: Model | None, temperature: float) -> None:
        self._copy, self._temperature = weights, temperature

    def logs(self, model: Model, asked: list[int], answer: list[int]) -> torch.Tensor:
        """Log-probabilities of an answer under the first policy; ``model`` is the present one."""
        first = model if self._copy is None else self._copy
        with torch.no_grad(), model.disable_adapter() if self._copy is None else nullcontext():
            found, _ = token_logs(first, asked, answer, self._temperature)
        return found.to(model.device)

    def distances(
        self, model: Model, asked: Sequence[list[int]], answers: Sequence[list[int]]
    ) -> list[float]:
        """How far the present policy is from the first, a number per sampled token."""
        found: list[float] = []
        was_training = model.training
        model.eval()
        for prompt, answer in zip(asked, answers, strict=True):
            with torch.no_grad():
                now, _ = token_logs(model, prompt, answer, self._temperature)
            found += divergence(now, self.logs(model, prompt, answer)).tolist()
        model.train(was_training)
        return found


def first_policy(model: Model, config: GrpoConfig) -> FirstPolicy | None:
    """What distances are measured to; none where nobody wants to pay for it.

    Call it with the model as it is before the first step: no checkpoint restored, nothing patched.
    """
    if not config.watch_kl:
        return None
    kept = copy.deepcopy(model).eval() if config.lora is None else None
    return FirstPolicy(kept, config.temperature)


def divergence(now: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
    """Per sampled token; its mean estimates KL(now, first) without bias and is never below 0.

    The estimator is the one that TRL weighs by beta (Schulman's k3).
    """
    return torch.exp(first - now) - (first - now) - 1


def token_logs(
    model: Model, asked: list[int], answer: list[int], temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of an answer's tokens, and the entropies that they were drawn at."""
    ids = torch.tensor([asked + answer], device=model.device)
    # Only where the answer stands: over a long prompt, logits of a large vocabulary are gigabytes.
    logits = model(input_ids=ids, logits_to_keep=len(answer) + 1).logits[0, :-1]
    logs = torch.log_softmax(logits.float() / temperature, -1)
    wanted = torch.tensor(answer, device=model.device)
    entropy = -(logs.detach().exp() * logs.detach()).sum(-1)
    return logs.gather(1, wanted[:, None]).squeeze(1), entropy
