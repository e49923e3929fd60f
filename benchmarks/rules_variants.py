"""How fast the variants of one family of the rules are on a task: a quick look, without the judge.

One plain process, each side timed by itself: for finding out which parameters matter, and in which
order a family should try them. What is said of a kernel elsewhere comes from the judge. Tried are
the family's starts, then everything that differs from the first of them in one parameter, or all
combinations of what ``--vary`` names.
"""

import argparse
import importlib.util
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.report import say, table
from benchmarks.rules_capture import Store, finder
from benchmarks.rules_plain import sampled
from benchmarks.rules_tasks import Chosen, of_kernelbench
from benchmarks.task_names import made, opened
from kernelsmith.domain.task import Task
from kernelsmith.errors import SmithError
from kernelsmith.propose.rules.families import Families, templates_only
from kernelsmith.propose.rules.family import Family
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.space import Parameters

_WARM, _SAMPLES = 2, 5
_SAMPLE_S = 0.02


def families_of(chosen: Chosen, task: Task, backend: str, captured: Path | None) -> Families:
    """What the source is read as, and what the compiler wrote where that was kept."""
    there = set() if captured is None else Store(captured).keys()
    if captured is not None and chosen.key in there:
        return finder(Store(captured).get(chosen.key))(task, backend)
    return templates_only(task, backend)


def variants(family: Family, vary: list[str]) -> Iterator[Parameters]:
    """Those to look at, each once."""
    starts = family.space.starts
    if vary:
        named = dict(each.partition("=")[::2] for each in vary)
        choices = {
            name: values.split(",") if values else family.space.named(name).choices
            for name, values in named.items()
        }
        found = [
            starts[0] | dict(zip(choices, each, strict=True))
            for each in itertools.product(*choices.values())
        ]
    else:
        found = [
            *starts,
            *(starts[0] | {p.name: value} for p in family.space.parameters for value in p.choices),
        ]
    seen = set()
    for each in found:
        if (key := tuple(sorted(each.items()))) not in seen:
            seen.add(key)
            yield each


class Looked:
    """A task, its reference on the device, and what its variants are held against."""

    def __init__(self, task: Task, device: str, folder: Path) -> None:
        self._device, self._folder, self._number = device, folder, 0
        names = opened(task)
        workload = task.workloads[0]
        torch.manual_seed(0)
        with torch.device(device), torch.no_grad():
            self._names, self._init = names, dict(workload.init)
            self.model = made(names["Model"], names, self._init).eval()
            self.inputs = names["get_inputs"](**dict(workload.arguments))
            self.expected = self.model(*self.inputs)

    def made(self, source: str) -> torch.nn.Module:
        """A candidate's module with the reference's weights."""
        self._number += 1
        name = f"variant_{self._number}"
        path = self._folder / f"{name}.py"
        path.write_text(source)  # Triton reads its functions from a file
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        with torch.device(self._device):
            model: torch.nn.Module = made(module.ModelNew, self._names, self._init).eval()
        model.load_state_dict(self.model.state_dict())
        return model

    def off(self, found: Any) -> float:
        """How far outputs are off, as a share of the largest that is expected."""
        worst = 0.0
        leaves = torch.utils._pytree.tree_leaves
        for got, want in zip(leaves(found), leaves(self.expected), strict=True):
            if torch.is_tensor(want) and want.is_floating_point() and want.numel():
                most = want.abs().max().double().clamp_min(1e-30)
                worst = max(worst, float((got - want).abs().max().double() / most))
        return worst

    def us(self, call: Callable[[], object]) -> float:
        """Microseconds of one call, the median of a few samples."""
        for _ in range(_WARM):
            call()
        once = sampled(lambda _: call(), 1, self._device)
        launches = max(1, min(200, int(_SAMPLE_S * 1e6 / max(once, 1.0))))
        return statistics.median(
            sampled(lambda _: call(), launches, self._device) for _ in range(_SAMPLES)
        )


def looked_at(
    chosen: Chosen, args: argparse.Namespace, family: Family, looked: Looked, until: float
) -> list[dict[str, Any]]:
    """One row a variant, the fastest first."""
    rows = []
    for parameters in itertools.islice(variants(family, args.vary), args.most):
        if time.monotonic() > until:
            say(f"{chosen.key}: no time for more")
            break
        words = family.space.differing(parameters) or "its defaults"
        row: dict[str, Any] = {"task": chosen.key, "family": family.space.template, "chosen": words}
        begun = time.monotonic()
        try:
            with torch.no_grad():
                made = looked.made(family.source(parameters))
                row["off"] = float(f"{looked.off(made(*looked.inputs)):.2g}")
                row["us"] = round(looked.us(lambda m=made: m(*looked.inputs)), 2)  # type: ignore[misc]
        except NotRecognised as error:
            row["said"] = str(error)[:100]
        except Exception as error:  # a kernel may raise whatever it likes
            row["said"] = f"{type(error).__name__}: {str(error).strip().splitlines()[-1:]}"[:160]
        row["seconds"] = round(time.monotonic() - begun, 2)
        rows.append(row)
    return sorted(rows, key=lambda row: row.get("us", float("inf")))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernelbench", type=Path, metavar="PATH", help="a checkout")
    parser.add_argument("--only", nargs="+", metavar="KEY", default=[], help="e.g. level1/47")
    parser.add_argument("--task", nargs="+", type=Path, metavar="FILE", default=[])
    parser.add_argument("--family", metavar="NAME", help="(the task's first)")
    parser.add_argument("--vary", nargs="+", metavar="NAME[=A,B]", default=[])
    parser.add_argument("--most", type=int, default=40, metavar="N", help="variants a task (40)")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="a task (60)")
    parser.add_argument("--backend", choices=("cpu", "triton"), default="triton")
    parser.add_argument("--captured", type=Path, metavar="FILE", help="see benchmarks.rules")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON lines are added to it")
    args = parser.parse_args()
    tasks = [Chosen(key=path.stem, path=path) for path in args.task]
    if args.kernelbench:
        known = of_kernelbench(args.kernelbench, [1, 2, 3])
        tasks += [each for each in known if each.key in args.only]
    if not tasks:
        parser.error("name --task FILE, or --kernelbench PATH and --only KEY")
    device = "cuda" if args.backend == "triton" else "cpu"
    for chosen in tasks:
        with tempfile.TemporaryDirectory() as folder:
            _one(chosen, args, device, Path(folder))


def _one(chosen: Chosen, args: argparse.Namespace, device: str, folder: Path) -> None:
    until = time.monotonic() + args.seconds
    try:
        task = chosen.task(gpu=device == "cuda")
        families = families_of(chosen, task, args.backend, args.captured)
        names = [each.space.template for each in families.members]
        if not names or (args.family and args.family not in names):
            say(f"{chosen.key}: its families are {', '.join(names) or 'none'}")
            return
        family = families.named(args.family or names[0])
    except SmithError as error:
        say(f"{chosen.key}: {error}")
        return
    looked = Looked(task, device, folder)
    with torch.no_grad():
        eager = looked.us(lambda: looked.model(*looked.inputs))
    rows = looked_at(chosen, args, family, looked, until)
    say(f"\n{chosen.key}, {family.space.template}: eager {eager:.1f} us")
    cells = [
        [str(row.get("us", "")), f"{eager / row['us']:.2f}" if "us" in row else "",
         str(row.get("off", "")), row["chosen"], row.get("said", "")]
        for row in rows
    ]  # fmt: skip
    print(table(["us", "ratio", "off", "variant", ""], cells), flush=True)
    if args.out:
        with args.out.open("a") as file:
            for row in rows:
                file.write(json.dumps(row | {"eager_us": round(eager, 2)}) + "\n")


if __name__ == "__main__":
    main()
