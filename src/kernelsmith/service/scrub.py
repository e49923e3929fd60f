"""What a worker says, without where it runs: no path of the server leaves it."""

import os
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.evaluate.builder import default_cache

_EVERYWHERE = {"/", "/usr", "/usr/local", "/tmp", "/opt", "/bin", "/lib", "/var", "/home"}
"""Say nothing about a server: every machine has them."""


class Scrub:
    """Replaces folders of this machine by what they are."""

    def __init__(self, roots: Sequence[tuple[str, str]] | None = None) -> None:
        """Take folders with their names; this process's own where none are given."""
        named = _roots() if roots is None else roots
        self._names = dict(named)
        longest = sorted(self._names, key=len, reverse=True)
        ends = r"(?=[/\"'\s:,;)\]>]|$)"
        self._pattern = re.compile("|".join(re.escape(each) + ends for each in longest) or r"(?!)")

    def text(self, said: str) -> str:
        """The same without folders of ours."""
        return self._pattern.sub(lambda match: self._names[match.group()], said)

    def evaluation(self, found: Evaluation) -> Evaluation:
        """The same without folders of ours, in whatever is meant to be read."""
        labels = tuple(replace(each, reason=self.text(each.reason)) for each in found.labels)
        return replace(
            found,
            message=self.text(found.message),
            output=self.text(found.output),
            labels=labels,
            device=replace(found.device, sandbox=self.text(found.device.sandbox)),
        )


def _roots() -> list[tuple[str, str]]:
    package = Path(__file__).resolve().parents[2]
    named = [
        (str(package), "<kernelsmith>"),
        (sys.prefix, "<python>"),
        (sys.base_prefix, "<python>"),
        (str(Path(sys.executable).resolve().parent), "<python>"),
        (str(default_cache()), "<cache>"),
        (os.getcwd(), "<server>"),
        (os.path.expanduser("~"), "<home>"),
        (tempfile.gettempdir(), "<tmp>"),
    ]
    found: dict[str, str] = {}
    for root, name in named:
        for each in (root, os.path.realpath(root)):
            if each not in _EVERYWHERE:
                found.setdefault(each, name)
    return list(found.items())
