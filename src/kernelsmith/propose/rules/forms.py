"""Forms: plain PyTorch files that compute the same as a task's reference, for all inputs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A task's reference, as written or rewritten by algebra."""

    name: str
    """``written``, or the rules that were applied, joined by ``+``."""
    source: str
    """A whole file with the class ``Model`` (or the task's function): the same constructor, the
    same state-dict keys, another ``forward``. Runs as it is, in eager mode."""
    words: str = ""
    """What was rewritten and why it holds, in one sentence."""
    cost_us: float | None = None
    """What the cost model expects one call to take."""
    degenerate: str = ""
    """Why the task is degenerate, where the rewriting shows it (a constant output)."""

    @property
    def claim(self) -> str:
        """The line by which a candidate says what algebra it rests on; the judge's label."""
        words = " ".join(self.words.split()) or "rewritten"
        return "" if self.name == "written" else f"# algebra: {self.name}: {words}"
