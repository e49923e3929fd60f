"""``best.py``: the winner as a file of its own, with where it comes from in its header."""

import os
from pathlib import Path

from kernelsmith.domain.trajectory import Exemplar
from kernelsmith.run.recorded import Header


def best_source(best: Exemplar, header: Header, *, step: int | None, confirmed: bool) -> str:
    """The winner's source under a header of comments; it stays the same program."""
    evaluation = best.evaluation
    timing = evaluation.timing
    said = "not timed" if timing is None else f"{timing.speedup} over {timing.baseline}"
    samples = 0 if timing is None else sum(each.samples for each in timing.workloads)
    labels = ", ".join(label.name.value for label in evaluation.labels)
    lines = [
        f"Found by Kernel-Smith for the task {header.task.name!r}.",
        f"speed-up:  {said}" + (f", {samples} samples a side" if samples else ""),
        f"confirmed: {'again at the end, on fresh inputs' if confirmed else 'not yet'}",
        f"device:    {evaluation.device}",
        *(f"{name + ':':<10} {version}" for name, version in evaluation.device.versions),
        f"judge:     {evaluation.judge}",
        *([f"labels:    {labels}"] if labels else []),
        f"run:       {header.run}, begun {header.started}",
        f"candidate: {best.candidate.id}" + (f", step {step}" if step is not None else ""),
    ]
    comment = "\n".join(f"# {' '.join(line.split(chr(10)))}" for line in lines)
    return f"{comment}\n\n{best.candidate.source.lstrip(chr(10))}"


def replace_file(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, never half of it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8", errors="surrogatepass")
    os.replace(draft, path)
