"""Students: a small model made from nothing, or one from a folder, with or without an adapter."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel
from safetensors import SafetensorError
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)
from transformers.utils.logging import disable_progress_bar

from kernelsmith.domain.trajectory import Message
from kernelsmith.errors import UsageError
from kernelsmith.training.data.rows import Row, chat
from kernelsmith.training.recipes.config import Lora, TinySize
from kernelsmith.training.serve.folder import write_note

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_MARKS = ["<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]

Model = Any
Tokens = Any

disable_progress_bar()  # loading a few megabytes is no progress worth a bar


def tiny(rows: Sequence[Row], size: TinySize, *, seed: int = 0) -> tuple[Model, Tokens]:
    """Make a small Llama with random weights, and a tokenizer trained on the rows' own text."""
    tokens = _trained_tokenizer(_texts(rows), size.vocabulary)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokens), hidden_size=size.width, intermediate_size=size.width * 3,
        num_hidden_layers=size.layers, num_attention_heads=size.heads,
        num_key_value_heads=size.heads, max_position_embeddings=size.context,
        tie_word_embeddings=True, pad_token_id=tokens.pad_token_id,
        eos_token_id=tokens.eos_token_id, bos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config), tokens


def load(path: str | Path, *, dtype: str = "float32") -> tuple[Model, Tokens]:
    """Load a model from a folder: whole weights, or an adapter beside the path of its base.

    Raises:
        UsageError: There is no model.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise UsageError(f"no model in {str(path)!r}; name a folder that training wrote")
    adapter = folder / "adapter_config.json"
    base = folder
    try:
        if adapter.is_file():
            base = Path(str(json.loads(adapter.read_text())["base_model_name_or_path"]))
        model = AutoModelForCausalLM.from_pretrained(
            str(base), dtype=getattr(torch, dtype), local_files_only=True
        )
        if adapter.is_file():
            model = PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
        tokens = AutoTokenizer.from_pretrained(
            str(folder if (folder / "tokenizer_config.json").is_file() else base),
            local_files_only=True,
        )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        reason = str(error).split("\n")[0]
        raise UsageError(f"cannot load a model from {str(path)!r}: {reason}") from error
    if tokens.pad_token is None:
        tokens.pad_token = tokens.eos_token
    return model.to("cuda" if torch.cuda.is_available() else "cpu"), tokens


def save(model: Model, tokens: Tokens, path: Path) -> None:
    """Write weights and tokenizer."""
    path.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(str(path))
    tokens.save_pretrained(str(path))


def note_form(path: Path, rows: Sequence[Row]) -> None:
    """Say beside the weights in which form they learnt to answer."""
    write_note(path, form=rows[0].form, backend=rows[0].backend)


def adapter_of(lora: Lora | None) -> LoraConfig | None:
    """The adapter that was asked for."""
    if lora is None:
        return None
    return LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, task_type="CAUSAL_LM",
        target_modules="all-linear",
    )  # fmt: skip


def prompt_ids(tokens: Tokens, said: Sequence[Message] | list[dict[str, str]]) -> list[int]:
    """A chat as a model reads it, up to where the answer begins."""
    turned = [each if isinstance(each, dict) else chat((each,))[0] for each in said]
    text = tokens.apply_chat_template(turned, tokenize=False, add_generation_prompt=True)
    return list(tokens(text, add_special_tokens=False)["input_ids"])


def surprise(model: Model, tokens: Tokens, row: Row) -> float:
    """How unlikely the model finds a row's answer: nats per token."""
    before = prompt_ids(tokens, row.prompt)
    after = [*tokens(row.completion, add_special_tokens=False)["input_ids"], tokens.eos_token_id]
    ids = torch.tensor([before + after], device=model.device)
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0, len(before) - 1 : -1]
    logs = torch.log_softmax(logits.float(), dim=-1)
    wanted = torch.tensor(after, device=model.device)
    return float(-logs.gather(1, wanted[:, None]).mean())


def _texts(rows: Sequence[Row]) -> Iterable[str]:
    for row in rows:
        yield from (each.content for each in row.prompt)
        yield row.completion


def _trained_tokenizer(texts: Iterable[str], vocabulary: int) -> Tokens:
    """Byte-level pieces: every text can be written, whatever the training text was."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=_MARKS, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    raw.train_from_iterator(texts, trainer)
    tokens = PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="<|pad|>", eos_token="<|end|>", padding_side="left"
    )
    tokens.chat_template = TEMPLATE
    return tokens
