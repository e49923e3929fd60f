"""Small tasks, a right kernel for each, and edits that make a wrong or a broken one of it."""

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

KINDS = ("right", "plain", "wrong", "broken")
"""What a search meets: right and tuned, right and plain, wrong, not compiling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One task with candidates of every kind; each edit is a text and what replaces it."""

    name: str
    wrong: tuple[str, str]
    broken: tuple[str, str]

    @property
    def task(self) -> Path:
        """The task's file."""
        return HERE / f"{self.name}.py"

    @property
    def right(self) -> Path:
        """The candidate's file."""
        return HERE / f"{self.name}_cpu.py"

    def source(self, kind: str, attempt: int) -> str:
        """Return a candidate of one kind; another attempt is another text, so nothing is cached."""
        text = self.right.read_text()
        edits = {
            "right": ("", ""),
            "plain": ("#pragma omp parallel for schedule(static)\n", ""),
            "wrong": self.wrong,
            "broken": self.broken,
        }
        old, new = edits[kind]
        assert old in text, f"{self.right.name} holds no {old!r}"
        return text.replace(old, new).replace('extern "C"', f'// {attempt}\nextern "C"', 1)


CASES = (
    Case(name="bias_relu", wrong=("x[i] + bias", "x[i] - bias"), broken=("int64_t n", "in64_t n")),
    Case(name="softmax", wrong=("/ sum", "/ (sum + 1)"), broken=("float top", "float top top")),
    Case(name="swiglu", wrong=("1.0f +", "1.5f +"), broken=("std::exp", "std::expp")),
)

SMALL = (HERE / "bias_relu.py", HERE / "bias_relu_cpu.py")
"""A launch of about 20 us."""
LARGE = (ROOT / "tasks" / "rms_norm.py", ROOT / "examples" / "rms_norm_cpu.py")
"""Launches of several hundred us, two timed workloads."""
