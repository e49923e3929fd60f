"""What eager's convolutions take with all of a GPU's memory, and with the part that judges allow.

Libraries choose by the scratch that they find. Where several judges share a device, both sides of a
timed pair have the same part of its memory; this shows for which tasks eager is slower in it than a
user would see who has the device alone. Each part has a process of its own, since a library keeps
what it has chosen.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.report import ROOT, say, table
from benchmarks.rules_plain import sampled
from benchmarks.rules_tasks import of_kernelbench
from benchmarks.task_names import made, opened
from kernelsmith.evaluate.tasks import load_task

PARTS = (1.0, 1 / 4 + 1 / 32)
"""Of the device's memory: all, and what ``DeviceOracle.timing_in_rooms`` leaves a small task."""
_WARM, _SAMPLES = 2, 5
_SAME = 1.03


def measured(path: Path) -> dict[str, Any]:
    """Microseconds of one forward (median of a few), and the gigabytes that it took at most."""
    import torch

    names = opened(load_task(path))
    with torch.device("cuda"), torch.no_grad():
        torch.manual_seed(0)
        model = made(names["Model"], names, {}).eval()
        inputs = names["get_inputs"]()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        times = [sampled(lambda _: model(*inputs), 1, "cuda") for _ in range(_WARM + _SAMPLES)]
        peak = torch.cuda.max_memory_allocated() - before
    return {"us": round(statistics.median(times[_WARM:]), 1), "gb": round(peak / 1e9, 2)}


def of_part(paths: list[str], part: float) -> None:
    """Print one line for each task, within this part of the memory."""
    import torch

    torch.cuda.set_per_process_memory_fraction(part)
    for path in paths:
        try:
            found = measured(Path(path))
        except RuntimeError as error:
            found = {"said": str(error).splitlines()[0][:200]}
        torch.cuda.empty_cache()
        print(json.dumps(found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernelbench", type=Path, metavar="PATH", required=True)
    parser.add_argument("--numbers", default="50-87", help="of level 1 (50-87, its convolutions)")
    usual = ROOT / "benchmarks" / "results" / "scratch-h200.json"
    parser.add_argument("--out", type=Path, metavar="FILE", default=usual)
    args = parser.parse_args()
    first, _, last = args.numbers.partition("-")
    wanted = range(int(first), int(last or first) + 1)
    tasks = [
        each for each in of_kernelbench(args.kernelbench, [1])
        if int(each.key.partition("/")[2]) in wanted
    ]  # fmt: skip
    columns = []
    for part in PARTS:
        given = [json.dumps([str(each.path) for each in tasks]), str(part)]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.gpu_scratch", "--of-part", *given],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        columns.append([json.loads(line) for line in done.stdout.splitlines()])
    found = {each.key: list(both) for each, *both in zip(tasks, *columns, strict=True)}
    rows = [
        [key, *(str(each.get("us", each.get("said"))) for each in both),
         *(str(each.get("gb", "")) for each in both), _ratio(*both)]
        for key, both in found.items()
    ]  # fmt: skip
    print(table(["task", "all: us", "part: us", "all: GB", "part: GB", "slower"], rows))
    body = {"benchmark": "scratch", "parts": PARTS, "device": _device(), "found": found}
    args.out.write_text(json.dumps(body, indent=1) + "\n")
    say(f"wrote {args.out.name}")


def _ratio(whole: dict[str, Any], part: dict[str, Any]) -> str:
    if "us" not in whole or "us" not in part:
        return ""
    ratio = part["us"] / whole["us"]
    return f"{ratio:.2f}" if ratio > _SAME or ratio < 1 / _SAME else ""


def _device() -> dict[str, str]:
    import torch

    return {"name": torch.cuda.get_device_name(), "torch": torch.__version__}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--of-part"]:
        of_part(json.loads(sys.argv[2]), float(sys.argv[3]))
    else:
        main()
