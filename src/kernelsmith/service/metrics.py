"""What the service counts, in Prometheus' text form."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

Labels = tuple[tuple[str, str], ...]
_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
_COUNTERS = {
    "submitted_total": "Requests taken in, repeated keys not counted.",
    "finished_total": "Requests that are over, by state.",
    "verdicts_total": "Evaluations made here, by verdict.",
    "cache_hits_total": "Requests answered by an evaluation that was there.",
    "attempts_total": "Requests handed to a worker.",
    "faults_total": "Attempts that ended without an answer, by why.",
    "late_total": "Answers that nobody waited for any more.",
    "worker_starts_total": "Workers started.",
    "http_total": "HTTP requests, by status.",
    "refused_total": "HTTP requests refused, by why.",
}
_SPANS = {
    "wait_seconds": "From submission to the first attempt.",
    "judge_seconds": "One attempt that was answered.",
    "http_seconds": "HTTP requests, waiting included.",
}


class Metrics:
    """Counts and spans, by name and labels."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._spans: dict[str, tuple[list[int], float]] = {}

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """Add to a counter."""
        assert name in _COUNTERS
        self._counts[name, tuple(sorted(labels.items()))] += amount

    def span(self, name: str, seconds: float) -> None:
        """Add one to a histogram."""
        buckets, total = self._spans.get(name, ([0] * (len(_SECONDS) + 1), 0.0))
        buckets[bisect_left(_SECONDS, seconds)] += 1
        self._spans[name] = (buckets, total + seconds)

    def value(self, name: str, **labels: str) -> int:
        """What a counter stands at."""
        return self._counts[name, tuple(sorted(labels.items()))]

    def text(self, gauges: Iterable[tuple[str, str, Sequence[tuple[Labels, float]]]] = ()) -> str:
        """Everything, with gauges (name, help, values by labels) read right now."""
        lines: list[str] = []
        for name, about in _COUNTERS.items():
            lines += _head(name, "counter", about)
            found = [(labels, n) for (each, labels), n in self._counts.items() if each == name]
            lines += [_line(name, labels, n) for labels, n in sorted(found)] or [_line(name, (), 0)]
        for name, about in _SPANS.items():
            lines += _head(name, "histogram", about) + self._histogram(name)
        for name, about, values in gauges:
            lines += _head(name, "gauge", about) + [_line(name, *each) for each in values]
        return "\n".join(lines) + "\n"

    def _histogram(self, name: str) -> list[str]:
        buckets, total = self._spans.get(name, ([0] * (len(_SECONDS) + 1), 0.0))
        lines, below = [], 0
        for bound, number in zip([*map(str, _SECONDS), "+Inf"], buckets, strict=True):
            below += number
            lines.append(_line(f"{name}_bucket", (("le", bound),), below))
        return [*lines, _line(f"{name}_sum", (), total), _line(f"{name}_count", (), below)]


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP kernelsmith_{name} {about}", f"# TYPE kernelsmith_{name} {kind}"]


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return (
        f"kernelsmith_{name}{{{inside}}} {value:g}" if inside else f"kernelsmith_{name} {value:g}"
    )


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
