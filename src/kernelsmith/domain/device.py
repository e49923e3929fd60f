"""A device: the hardware, driver and library versions that an evaluation ran on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Named well enough that a number measured on it can be compared with another."""

    kind: str
    """``cpu``, ``cuda``, ``maca``, ``maca-emulated`` or ``null``; ``none`` only builds."""
    name: str
    cores: int | None = None
    """Cores in use (CPU only)."""
    versions: tuple[tuple[str, str], ...] = ()
    """Library, driver and compiler versions, by name."""
    sandbox: str = "none"
    """Which protections were in force while the candidate ran."""

    def is_like(self, other: "Device") -> bool:
        """Whether a speed-up measured there says what it would be here."""
        return (self.kind, self.name, self.cores) == (other.kind, other.name, other.cores)

    def __str__(self) -> str:
        cores = f", {self.cores} cores" if self.cores else ""
        return f"{self.name} ({self.kind}{cores})"
