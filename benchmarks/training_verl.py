"""Whether verl reads what ``kernelsmith train export --verl`` writes: its own loaders, no GPU.

Run it with an interpreter that has verl (0.9.1 was used) and Kernel-Smith::

    python -m benchmarks.training_verl FOLDER TOKENIZER

FOLDER is the export, TOKENIZER a folder with a tokenizer that has a chat template.
"""

import argparse
import re
from pathlib import Path


def checked(folder: Path, tokenizer: str) -> list[str]:
    """What was found, one line each; raises where verl does."""
    import verl
    from omegaconf import OmegaConf
    from transformers import AutoTokenizer
    from verl.trainer.ppo.reward import get_custom_reward_fn
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset
    from verl.utils.dataset.rl_dataset import RLHFDataset

    tokens = AutoTokenizer.from_pretrained(tokenizer)
    asked = OmegaConf.create(
        {"prompt_key": "prompt", "max_prompt_length": 32768, "filter_overlong_prompts": True,
         "truncation": "error", "return_raw_chat": True, "filter_overlong_prompts_workers": 1,
         "cache_dir": str(folder / ".cache")}
    )  # fmt: skip
    questions = RLHFDataset([str(folder / "train.parquet")], tokens, asked)
    first = questions[0]
    assert first["raw_prompt"][0]["role"] == "system"
    assert first["extra_info"]["brief"].startswith('{"schema": "brief/')
    chats = MultiTurnSFTDataset(
        parquet_files=[str(folder / "sft.parquet")], tokenizer=tokens,
        config=OmegaConf.create({"messages_key": "messages", "max_length": 65536,
                                 "truncation": "error", "pad_mode": "no_padding"}),
    )  # fmt: skip
    chat = chats[0]
    assert 0 < int(chat["loss_mask"].sum()) < len(chat["input_ids"])
    reward = {"path": str(folder / "reward.py"), "name": "compute_score", "reward_kwargs": {}}
    found = get_custom_reward_fn(OmegaConf.create({"reward": {"custom_reward_function": reward}}))
    assert callable(found)
    return [
        f"verl {verl.__version__}",
        f"RLHFDataset reads {len(questions)} questions",
        f"MultiTurnSFTDataset reads {len(chats)} chats, loss on the answer alone",
        "the reward function loads",
        _keys(folder / "launch.sh", Path(verl.__file__).parent, OmegaConf),
    ]


def _keys(script: Path, package: Path, conf: object) -> str:
    """Every setting of the launch script must be one that verl knows."""
    place = package / "trainer" / "config" / "_generated_ppo_megatron_trainer.yaml"
    known = conf.load(place)
    names = re.findall(r"^  ([\w.]+)=", script.read_text(), re.MULTILINE)
    for name in names:
        node = known
        for part in name.split("."):
            assert part in node.keys(), f"verl has no setting {name}"  # noqa: SIM118
            node = node._get_node(part)
    return f"verl knows all {len(names)} settings of launch.sh"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("tokenizer")
    args = parser.parse_args()
    print("\n".join(checked(args.folder, args.tokenizer)))


if __name__ == "__main__":
    main()
