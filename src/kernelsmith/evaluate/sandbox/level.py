"""Which protections a child really got, and why the others are missing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

NAMESPACES = ("mount", "pid", "net", "ipc", "uts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What stands between a child and the machine, as the child found it before any hostile code.

    A user namespace counts as much as another user id: either takes the judge's powers away.
    """

    namespaces: tuple[str, ...]
    landlock_abi: int | None
    seccomp: bool
    other_uid: bool
    capabilities_dropped: bool
    rlimits: bool
    missing: Mapping[str, str]
    """Each protection that was refused, with the reason."""

    @property
    def name(self) -> str:
        """``full``, ``reduced``, or ``limits-only`` where nothing guards files or calls."""
        walls = {*NAMESPACES} <= {*self.namespaces}
        apart = self.other_uid or "user" in self.namespaces
        if walls and apart and self.seccomp and self.landlock_abi and self.capabilities_dropped:
            return "full"
        if self.seccomp or self.landlock_abi or "mount" in self.namespaces:
            return "reduced"
        return "limits-only"

    def describe(self) -> str:
        """State it in one line."""
        parts = []
        if self.namespaces:
            parts.append(f"namespaces {' '.join(self.namespaces)}")
        if self.landlock_abi:
            parts.append(f"landlock {self.landlock_abi}")
        held = {
            "seccomp": self.seccomp,
            "other uid": self.other_uid,
            "no capabilities": self.capabilities_dropped,
            "rlimits": self.rlimits,
        }
        parts += [name for name, is_held in held.items() if is_held]
        line = f"{self.name}: {', '.join(parts) or 'nothing'}"
        if self.missing:
            line += "; missing " + "; ".join(
                f"{name} ({why})" for name, why in self.missing.items()
            )
        return line

    def to_message(self) -> dict[str, object]:
        """Return it in JSON's terms."""
        return {
            "namespaces": list(self.namespaces),
            "landlock_abi": self.landlock_abi,
            "seccomp": self.seccomp,
            "other_uid": self.other_uid,
            "capabilities_dropped": self.capabilities_dropped,
            "rlimits": self.rlimits,
            "missing": dict(self.missing),
        }

    @classmethod
    def from_message(cls, message: Mapping[str, object]) -> "Level":
        """Read a child's report; it was written before any hostile code ran."""
        return cls(
            namespaces=tuple(cast(list[str], message["namespaces"])),
            landlock_abi=cast(int | None, message["landlock_abi"]),
            seccomp=bool(message["seccomp"]),
            other_uid=bool(message["other_uid"]),
            capabilities_dropped=bool(message["capabilities_dropped"]),
            rlimits=bool(message["rlimits"]),
            missing=cast(dict[str, str], message["missing"]),
        )
