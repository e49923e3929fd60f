"""Recorded proposals for runs on the null backend, and the command line in a process."""

import random
import subprocess
import sys
from pathlib import Path

from kernelsmith.domain.trajectory import Proposal, Usage
from kernelsmith.propose.replay import write_jsonl

ROOT = Path(__file__).parents[2]


def command(*arguments):
    return [sys.executable, "-m", "kernelsmith.cli.main", *map(str, arguments)]


def run(*arguments, cwd=None, env=None):
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=300, cwd=cwd, env=env,
        check=False,
    )  # fmt: skip


def expect_one_line(done, code, words):
    assert done.returncode == code, done.stderr
    said = done.stderr.strip().splitlines()
    assert "Traceback" not in done.stderr
    assert said[-1].startswith("kernelsmith: ")
    assert words in said[-1]
    assert done.stdout == ""


def a_task(folder, source="x + y  # us: 20", name="add.py"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    return path


def a_recording(folder, *sources, name="recorded.jsonl"):
    """Proposals in the order of their asks; ``None`` is one without a candidate."""
    usage = Usage(input_tokens=100, output_tokens=20, usd=0.01, seconds=0.5)
    proposals = [
        Proposal(source=None, rejection="no code in the reply", proposer="small-model")
        if source is None
        else Proposal(source=source, proposer="big-model", note=f"idea {index}", usage=usage)
        for index, source in enumerate(sources)
    ]
    path = folder / name
    write_jsonl(path, proposals)
    return path


def many(count, seed=0):
    """Sources of all sorts, slowly getting faster."""
    rng, us, found = random.Random(seed), 20.0, []
    for index in range(count):
        kind = rng.random()
        if kind < 0.1:
            found.append(None)
        elif kind < 0.2:
            found.append(f"x - y  # {index}")
        else:
            us *= rng.uniform(0.98, 1.015)
            found.append(f"y + x  # us: {us:.5f}")
    return found
