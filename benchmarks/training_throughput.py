"""Rollouts per minute: judging beside generation, and the naive loop that judges afterwards.

    python -m benchmarks.training_throughput --data FOLDER --model FOLDER [--judge-seconds S]

Both loops answer the same questions with the same seeds, through the recipe's own parts. With
``--judge-seconds`` the evaluator is the simulated one, made as slow as a real judge; without, the
backend of the data judges. The share of the time in which the model has nothing to do is what a
GPU would idle.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.report import command, commit
from kernelsmith.cli.train_verbs import _opened
from kernelsmith.evaluate.backend import load_backend
from kernelsmith.run.simulated import SimulatedEvaluator
from kernelsmith.training.data.build import RL
from kernelsmith.training.data.rows import read_rows
from kernelsmith.training.forms.form import form_named
from kernelsmith.training.recipes.config import GrpoConfig
from kernelsmith.training.recipes.grpo import generate
from kernelsmith.training.recipes.judging import Judging, Opened
from kernelsmith.training.recipes.model import load, prompt_ids


class Slow:
    """The simulated judge, as slow as a real one."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._judge = seconds, SimulatedEvaluator()

    async def evaluate(self, task, candidate, *, baseline=None):
        await asyncio.sleep(self._seconds)
        return await self._judge.evaluate(task, candidate, baseline=baseline)


def looped(rows, model, tokens, judging, config, *, overlapped: bool) -> dict[str, float]:
    """Answer every row's question ``group`` times; returns what it took."""
    torch.manual_seed(0)
    asked = [row for row in rows for _ in range(config.group)]
    began, generating, tickets, waiting = time.monotonic(), 0.0, [], []
    for at in range(0, len(asked), config.chunk):
        part = asked[at : at + config.chunk]
        start = time.monotonic()
        with judging.generating():
            ids = [prompt_ids(tokens, row.prompt) for row in part]
            written = generate(model, tokens, ids, config)
        generating += time.monotonic() - start
        for row, answer in zip(part, written, strict=True):
            said = tokens.decode(answer, skip_special_tokens=True)
            if overlapped:
                tickets.append(judging.submit(row.asked, said))
            else:
                waiting.append((row, said))
    for row, said in waiting:  # one after the other, as a script would
        judging.wait([judging.submit(row.asked, said)])
    judging.wait(tickets)
    took = time.monotonic() - began
    spent = judging.spent()
    return {
        "rollouts": len(asked), "seconds": took, "rollouts_per_minute": 60 * len(asked) / took,
        "generating_s": generating, "idle_share": 1 - generating / took, "judged": spent.judged,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--judge-seconds", type=float)
    parser.add_argument("--in-flight", type=int, default=4)
    parser.add_argument("--evaluator")
    parser.add_argument("--effort", default="quick")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = read_rows(args.data / RL)[: args.questions]
    model, tokens = load(args.model)
    if torch.cuda.is_available():
        model = model.cuda()
    config = GrpoConfig(prompts=len(rows), group=8, max_new_tokens=32, chunk=8)
    backend = rows[0].backend
    found = {}
    for name, overlapped in (("naive", False), ("overlapped", True)):
        slow = args.judge_seconds
        form = form_named(rows[0].form, backend)
        with tempfile.TemporaryDirectory() as cache:
            os.environ["KERNELSMITH_CACHE"] = cache  # what one loop built is not the other's gain
            opened = Opened(evaluator=Slow(slow)) if slow is not None else _opened(args, backend)
            with Judging(opened, form, in_flight=args.in_flight) as judging:
                found[name] = looped(rows, model, tokens, judging, config, overlapped=overlapped)
        print(name, json.dumps({k: round(v, 3) for k, v in found[name].items()}), flush=True)
    if args.out is None:
        return
    judge = load_backend(backend).device()
    body = {
        "benchmark": "training_throughput", "command": command("training_throughput", args),
        "commit": commit(), "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "judge": {"name": judge.name, "cores": judge.cores, "versions": dict(judge.versions)},
        "generating": {"torch": torch.__version__, "device": str(model.device)}, **found,
    }  # fmt: skip
    args.out.write_text(json.dumps(body, indent=1) + "\n")


if __name__ == "__main__":
    main()
