"""What a model's folder says without loading it: how it is asked, and which weights it has."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kernelsmith.errors import UsageError
from kernelsmith.run.config import ProposerSpec

NOTE = "kernelsmith.json"
"""Written beside the weights by every recipe: the form and the backend of what it trained on."""
_ADAPTER = "adapter_config.json"
_CONFIGS = ("config.json", _ADAPTER)
_WEIGHTS = ("*.safetensors", "*.bin")
_USUAL = "typed"


def write_note(folder: Path, *, form: str, backend: str) -> None:
    """Say beside the weights how the model wants to be asked."""
    (folder / NOTE).write_text(json.dumps({"form": form, "backend": backend}) + "\n")


def described(spec: ProposerSpec) -> ProposerSpec:
    """Add to a student's spec what its folder says: absolute path, form, hash of the weights.

    Raises:
        UsageError: There is no model in the folder.
    """
    assert spec.path is not None
    folder = Path(spec.path).expanduser().resolve()
    check(folder)
    form = spec.form or str(_note(folder).get("form") or _USUAL)
    return replace(spec, path=str(folder), form=form, weights=hash_of(folder))


def check(folder: Path) -> None:
    """Make sure that it holds a model.

    Raises:
        UsageError: It does not.
    """
    if not folder.is_dir():
        raise UsageError(f"no model in {str(folder)!r}: no such folder")
    if not any((folder / name).is_file() for name in _CONFIGS):
        raise UsageError(
            f"no model in {str(folder)!r}: neither {' nor '.join(_CONFIGS)}; "
            "name a folder that training wrote, as in OUT/model"
        )


def hash_of(folder: Path) -> str:
    """Hash of the weights in a folder; of an adapter's base, too.

    Raises:
        UsageError: There are none, or they cannot be read.
    """
    found = hashlib.sha256()
    try:
        for path in _files(folder):
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    except OSError as error:
        raise UsageError(f"cannot read the weights in {folder}: {error.strerror}") from error
    return found.hexdigest()[:32]


def _files(folder: Path) -> Iterator[Path]:
    own = sorted(path for kind in _WEIGHTS for path in folder.glob(kind))
    if not own:
        raise UsageError(f"no weights in {str(folder)!r}: no file ends with .safetensors or .bin")
    yield from own
    if (folder / _ADAPTER).is_file():
        base = _json(folder / _ADAPTER).get("base_model_name_or_path")
        if not isinstance(base, str) or not Path(base).is_dir():
            raise UsageError(f"the adapter in {str(folder)!r} needs its base, which is not {base}")
        yield from _files(Path(base))


def _note(folder: Path) -> dict[str, object]:
    return _json(folder / NOTE) if (folder / NOTE).is_file() else {}


def _json(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    if not isinstance(found, dict):
        raise UsageError(f"{path} holds no object")
    return found
