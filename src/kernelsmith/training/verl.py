"""Everything that verl needs to train on a cluster: parquet, the reward function, a launch script.

What is learnt there is decided here: the same form reads answers, the same reward values them, and
the evaluation service judges. ``docs/training.md`` says how the three fit together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.errors import UsageError
from kernelsmith.training.data.rows import Row
from kernelsmith.training.published import rl_records, sft_records
from kernelsmith.training.reward.rewards import reward_named
from kernelsmith.training.tables import write_records

COLUMNS = ("data_source", "prompt", "ability", "reward_model", "extra_info")
"""What verl's loader for reinforcement asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerlOptions:
    """What the launch script says; everything in it can be overridden on its command line."""

    model: str = "Qwen/Qwen3-30B-A3B"
    nodes: int = 4
    gpus_per_node: int = 8
    reward: str = "log"
    evaluator: str = "http://127.0.0.1:8471"
    steps: int = 300
    prompt_tokens: int = 32_768
    answer_tokens: int = 32_768
    group: int = 8

    def __post_init__(self) -> None:
        reward_named(self.reward)
        counts = (self.nodes, self.gpus_per_node, self.steps, self.prompt_tokens,
                  self.answer_tokens, self.group)  # fmt: skip
        if min(counts) < 1:
            raise UsageError("numbers of nodes, GPUs, steps, tokens and answers are above 0")

    @property
    def is_large(self) -> bool:
        """Whether the model needs pipeline stages beside expert parallelism."""
        return any(size in self.model for size in ("235B", "671B", "480B"))


def export_verl(
    rl: Sequence[Row], sft: Sequence[Row], held_out: Sequence[Row], out: Path, options: VerlOptions
) -> list[Path]:
    """Write the folder, and name its files.

    Raises:
        UsageError: There is no question to train on, or it cannot be written.
    """
    if not rl:
        raise UsageError("no question to export; another selection may have some")
    files = [
        (out / "train.parquet", rl_records(rl)),
        (out / "val.parquet", rl_records(held_out or rl[:1], "val")),
    ]
    if sft:
        files.append((out / "sft.parquet", sft_records(sft)))
    for path, records in files:
        write_records(records, path)
    texts = {
        "reward.py": _REWARD.replace("@REWARD@", options.reward).replace(
            "@EVALUATOR@", options.evaluator
        ),
        "launch.sh": launch_script(options),
    }
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    (out / "launch.sh").chmod(0o755)
    return [*(path for path, _ in files), *(out / name for name in texts)]


def launch_script(options: VerlOptions) -> str:
    """The command that starts verl: Megatron for the experts, vLLM for the answers."""
    pipeline, expert, tensor, rollout = (8, 8, 4, 16) if options.is_large else (1, 8, 4, 8)
    settings = {
        "algorithm.adv_estimator": "rloo",  # unbiased, and the parent's baseline counts
        "algorithm.use_kl_in_reward": "False",
        "data.train_files": '"$HERE/train.parquet"',
        "data.val_files": '"$HERE/val.parquet"',
        "data.train_batch_size": "64",
        "data.max_prompt_length": str(options.prompt_tokens),
        "data.max_response_length": str(options.answer_tokens),
        "data.filter_overlong_prompts": "True",
        "data.truncation": "error",
        "actor_rollout_ref.model.path": '"$MODEL"',
        "actor_rollout_ref.actor.optim.lr": "1e-6",
        "actor_rollout_ref.actor.ppo_mini_batch_size": "64",
        "actor_rollout_ref.actor.use_dynamic_bsz": "True",
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": str(
            options.prompt_tokens + options.answer_tokens
        ),
        "actor_rollout_ref.actor.clip_ratio_low": "0.2",
        "actor_rollout_ref.actor.clip_ratio_high": "0.28",
        "actor_rollout_ref.actor.use_kl_loss": "False",
        "actor_rollout_ref.actor.loss_agg_mode": "seq-mean-token-sum-norm",
        "actor_rollout_ref.actor.megatron.tensor_model_parallel_size": str(tensor),
        "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size": str(pipeline),
        "actor_rollout_ref.actor.megatron.expert_model_parallel_size": str(expert),
        "actor_rollout_ref.actor.megatron.param_offload": "True",
        "actor_rollout_ref.actor.megatron.optimizer_offload": "True",
        "actor_rollout_ref.rollout.name": "vllm",
        "actor_rollout_ref.rollout.n": str(options.group),
        "actor_rollout_ref.rollout.temperature": "1.0",
        "actor_rollout_ref.rollout.tensor_model_parallel_size": str(rollout),
        "actor_rollout_ref.rollout.gpu_memory_utilization": "0.7",
        "actor_rollout_ref.rollout.calculate_log_probs": "True",
        "algorithm.rollout_correction.rollout_is": "token",
        "algorithm.rollout_correction.rollout_is_threshold": "2.0",
        "reward.custom_reward_function.path": '"$HERE/reward.py"',
        "reward.custom_reward_function.name": "compute_score",
        "trainer.total_training_steps": str(options.steps),
        "trainer.nnodes": str(options.nodes),
        "trainer.n_gpus_per_node": str(options.gpus_per_node),
        "trainer.save_freq": "20",
        "trainer.test_freq": "20",
        "trainer.project_name": "kernelsmith",
        "trainer.experiment_name": options.model.rsplit("/", 1)[-1].lower(),
        "trainer.logger": "[console]",
    }
    lines = " \\\n".join(f"  {name}={value}" for name, value in settings.items())
    return _LAUNCH.format(model=options.model, evaluator=options.evaluator, settings=lines)


_LAUNCH = """\
#!/usr/bin/env bash
# Reinforcement with verl; written by kernelsmith train export --verl. Options go before these:
#   ./launch.sh trainer.nnodes=8 actor_rollout_ref.rollout.n=16
# The evaluation service must answer at KERNELSMITH_URL: kernelsmith serve, on the GPUs that judge.
set -euo pipefail
HERE=$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)
MODEL=${{MODEL:-{model}}}
export KERNELSMITH_URL=${{KERNELSMITH_URL:-{evaluator}}}
exec python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer \\
{settings} \\
  "$@"
"""

_REWARD = '''\
"""The reward for verl: reads an answer, has the evaluation service judge it, and values it.

Written by kernelsmith train export --verl. KERNELSMITH_URL says where the service is, and
KERNELSMITH_TOKEN what it asks for; KERNELSMITH_REWARD names another reward.
"""

import functools
import os

from kernelsmith.domain.codec import loads
from kernelsmith.service.remote import RemoteEvaluator
from kernelsmith.training.forms.form import form_named
from kernelsmith.training.recipes.judging import tried
from kernelsmith.training.recipes.scoring import outcome_of
from kernelsmith.training.reward.rewards import FAILED, reward_named

_form = functools.cache(form_named)


@functools.cache
def _evaluator(backend):
    url = os.environ.get("KERNELSMITH_URL", "@EVALUATOR@")
    return RemoteEvaluator(url, backend=backend, token=os.environ.get("KERNELSMITH_TOKEN"))


async def compute_score(data_source, solution_str, ground_truth, extra_info=None, **more):
    """Return the score with what it is made of, which verl logs as metrics."""
    brief = loads(extra_info["brief"])
    form = _form(extra_info["form"], brief.backend)
    trial = await tried(form, _evaluator(brief.backend).evaluate, brief, solution_str)
    value = reward_named(os.environ.get("KERNELSMITH_REWARD", "@REWARD@"))(trial)
    gain = trial.over_parent
    return {
        # verl has no word for none: what was lost counts as failed here, and shows in "lost".
        "score": FAILED if value is None else value,
        "lost": float(bool(trial.lost)),
        "readable": float(not trial.rejection),
        "correct": float(trial.correct),
        "cheated": float(trial.cheated),
        "gain": gain.value if gain is not None else 0.0,
        "outcome": outcome_of(trial),
    }
'''
