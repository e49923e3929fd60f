"""Small tasks for a GPU, a right Triton kernel for each, and edits that spoil it."""

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent

KINDS = ("right", "plain", "wrong", "broken")
"""What a search meets: right and tuned, right and untuned, wrong, not compiling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCase:
    """One task with candidates of every kind; each edit is a text and what replaces it."""

    name: str
    wrong: tuple[str, str]
    broken: tuple[str, str]
    plain: tuple[str, str]
    precision: str = "float32"
    """The inputs' dtype, which KernelBench's harness is told; it casts everything to one."""

    @property
    def task(self) -> Path:
        """The task's file."""
        return HERE / f"{self.name}.py"

    @property
    def right(self) -> Path:
        """The candidate's file."""
        return HERE / f"{self.name}_triton.py"

    def source(self, kind: str, attempt: int = 0) -> str:
        """Return a candidate of one kind; another attempt is another text, so nothing is cached."""
        text = self.right.read_text()
        edits = {
            "right": ("", ""), "plain": self.plain, "wrong": self.wrong, "broken": self.broken,
        }  # fmt: skip
        old, new = edits[kind]
        assert old in text, f"{self.right.name} holds no {old!r}"
        text = text.replace(old, new)
        return text.replace(f"{self.name}_kernel", f"{self.name}_kernel_{attempt}")


SMALL = GpuCase(
    name="bias_gelu",
    wrong=("x * 0.5 *", "x * 0.4 *"),
    broken=("tl.erf(", "tl.erff("),
    plain=("num_warps=4", "num_warps=1"),
)
"""About 1.5 us on an H200."""
MEDIUM = GpuCase(
    name="softmax",
    wrong=("e / total", "e * total"),
    broken=("tl.sum(", "tl.summ("),
    plain=("num_warps=4", "num_warps=1"),
)
"""About 4 us."""
LARGE = GpuCase(
    name="layer_norm",
    wrong=("/ columns\n    weight", "/ (columns * 2)\n    weight"),
    broken=("tl.sqrt(", "tl.sqrtt("),
    plain=("num_warps=8", "num_warps=2"),
)
"""About 35 us."""
HUGE = GpuCase(
    name="matmul",
    wrong=("along = start + steps", "along = start // 2 + steps"),
    broken=("tl.dot(a, b, total)", "tl.dot(a, rows, total)"),
    plain=("num_stages=3", "num_stages=2"),
    precision="float16",
)
"""Above 100 us."""
SWIGLU = GpuCase(
    name="swiglu",
    wrong=("(1.0 + tl", "(1.5 + tl"),
    broken=("tl.exp(", "tl.expp("),
    plain=("num_warps=4", "num_warps=1"),
)
LOGSUMEXP = GpuCase(
    name="logsumexp",
    wrong=("top + ", "top - "),
    broken=("tl.log(total)", "tl.log(nothing)"),
    plain=("num_warps=8", "num_warps=2"),
)

NOISE = (SMALL, MEDIUM, LARGE, HUGE)
CASES = (*NOISE, SWIGLU, LOGSUMEXP)
