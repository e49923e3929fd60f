"""Questions that found no memory, asked again with nothing kept at hand."""

from collections.abc import Callable
from contextlib import suppress

import torch

from kernelsmith.evaluate.worker.reference import Message, Verb

_AGAIN = ("answers", "repeat", "examine", "compare", "eager_excess", "magnified", "changed")
"""Those that leave everything as it was."""


def asked_again(verbs: dict[str, Verb], let_go: Callable[[], None]) -> dict[str, Verb]:
    """The same verbs; where one finds no memory, ``let_go`` is called and it is asked once more."""
    return verbs | {name: _sparing(verbs[name], let_go) for name in _AGAIN}


def _sparing(verb: Verb, let_go: Callable[[], None]) -> Verb:
    def asked(message: Message, fds: list[int]) -> Message:
        with suppress(torch.OutOfMemoryError):
            return verb(message, fds)
        let_go()  # not while the error is at hand, which holds what it was about
        return verb(message, fds)

    return asked
