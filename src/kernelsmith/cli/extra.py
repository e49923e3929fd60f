"""What is not installed, said in one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from kernelsmith.errors import UsageError

_TRAIN = (
    "accelerate", "datasets", "openai", "peft", "pyarrow", "safetensors", "tokenizers",
    "transformers", "trl",
)  # fmt: skip


@contextmanager
def needs_train(what: str, *packages: str) -> Iterator[None]:
    """Turn a missing package of the extra ``train`` into the user's one line.

    Args:
        what: The user asked for.
        packages: Looked for at once, before anything takes its time to load.

    Raises:
        UsageError: ``what`` needs a package that is not there.
    """
    for name in packages:
        if find_spec(name) is None:
            raise _missing(what, name)
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _TRAIN:
            raise
        raise _missing(what, error.name) from error


def _missing(what: str, name: str) -> UsageError:
    return UsageError(
        f"{what} needs {name}, which is not installed; try: pip install 'kernelsmith[train]'"
    )
