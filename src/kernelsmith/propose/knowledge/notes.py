"""The form of the notes on one backend."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """How to write for a backend, and what makes it fast there."""

    language: str
    """How a program is put together, with an example."""
    tips: tuple[str, ...] = ()
    """Most useful first."""
    hopper: tuple[str, ...] = ()
    """Added on NVIDIA GPUs from Hopper on."""
