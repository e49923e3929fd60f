"""What the judge asks of the zygote when it wants a child."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import cast

from kernelsmith.evaluate.sandbox.limits import Limits


class Profile(StrEnum):
    """Which system calls a child keeps."""

    RUN = "run"
    """One process with threads: it can start no other and can load no other program."""
    BUILD = "build"
    """May also start programs: for compilers."""
    WATCH = "watch"
    """May also talk to itself over a loopback of its own: for tools that watch a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One child to be made."""

    entry: str
    """``module:function`` in a module that the zygote has loaded."""
    profile: Profile = Profile.RUN
    limits: Limits = field(default_factory=Limits)
    readable: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    cores: tuple[int, ...] | None = None
    without: Mapping[str, str] = field(default_factory=dict)
    """Protections not to try, with the reason."""

    def to_message(self) -> dict[str, object]:
        """Return it in JSON's terms."""
        return {**asdict(self), "without": dict(self.without)}

    @classmethod
    def from_message(cls, message: Mapping[str, object]) -> "Order":
        """Read back what ``to_message`` wrote; the sender is the judge and is believed."""
        cores = cast(list[int] | None, message["cores"])
        return cls(
            entry=str(message["entry"]),
            profile=Profile(str(message["profile"])),
            limits=Limits(**cast(dict[str, int], message["limits"])),
            readable=tuple(cast(list[str], message["readable"])),
            devices=tuple(cast(list[str], message["devices"])),
            cores=None if cores is None else tuple(cores),
            without=cast(dict[str, str], message["without"]),
        )
