"""How a run ended."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.domain.trajectory import Exemplar
from kernelsmith.run.stopping import REASONS, Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a run ended, and what it found."""

    folder: Path
    stop: Stop
    steps: int
    best: Exemplar | None
    """As confirmed at the end; as told by the last step where the run was interrupted."""
    confirmed: bool
    """Whether the best was judged once more at the end."""
    tokens: int
    usd: float | None
    elapsed_s: float

    @property
    def stopped(self) -> bool:
        """Whether it was interrupted, and has steps left to do."""
        return self.stop is Stop.INTERRUPTED

    @property
    def reason(self) -> str:
        """Why it ended, for people."""
        return REASONS[self.stop]

    @property
    def resume(self) -> str:
        """The command that goes on from here."""
        return f"kernelsmith resume {shlex.quote(str(self.folder))}"
