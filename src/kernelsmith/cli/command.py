"""The table of verbs."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

Arguments = Callable[[argparse.ArgumentParser], None]
Run = Callable[[argparse.Namespace], int]


@dataclass(frozen=True, slots=True)
class Command:
    """One verb: its help line, its arguments, and what it does."""

    name: str
    help: str
    arguments: Arguments
    run: Run
