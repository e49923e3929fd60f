"""How many rooms of a GPU's memory each task takes while it is judged, found without a GPU.

``benchmarks.rules --rooms FILE`` begins only what fits beside what is under way, so that nobody
waits at the door. Sizes come from one forward on tensors without contents, as the judge predicts
them there.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.report import say
from benchmarks.rules_tasks import Chosen, of_kernelbench
from benchmarks.task_names import made, opened
from kernelsmith.evaluate.cuda.sizing import Predicted, rooms_beside
from kernelsmith.evaluate.rooms import ROOMS
from kernelsmith.evaluate.settings import effort

_UNKNOWN = 6
"""Where a forward needs values: most of those are small."""
_UNABLE = (ImportError, RuntimeError, TypeError, ValueError, AttributeError, NameError, OSError)


def rooms_of(chosen: Chosen, memory: int) -> int:
    """As many as the judge will take, all where it needs the device alone."""
    from kernelsmith.evaluate.worker.cuda.footprint import footprint

    try:
        names = opened(chosen.task(gpu=True))
        found = footprint(partial(_model, names), None, names["get_inputs"], None)
    except _UNABLE as error:
        say(f"{chosen.key}: {type(error).__name__}, taken for {_UNKNOWN} rooms")
        return _UNKNOWN
    if found is None:
        say(f"{chosen.key}: its forward needs values, taken for {_UNKNOWN} rooms")
        return _UNKNOWN
    predicted = Predicted(footprint=found, free=memory, total=memory)
    batch = effort("glance", backend="triton").gpu.sample_bytes
    return rooms_beside(predicted, batch) or ROOMS


def _model(names: dict[str, Any]) -> Any:
    return made(names["Model"], names, {}).eval()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernelbench", type=Path, metavar="PATH", required=True)
    parser.add_argument("--levels", default="1,2,3", help="of KernelBench (1,2,3)")
    parser.add_argument("--memory", type=float, default=150.1, metavar="GB", help="(150.1)")
    parser.add_argument("--out", type=Path, metavar="FILE", required=True)
    args = parser.parse_args()
    there = json.loads(args.out.read_text()) if args.out.is_file() else {}
    levels = [int(each) for each in args.levels.split(",")]
    for chosen in of_kernelbench(args.kernelbench, levels):
        if chosen.key not in there and not chosen.left_out:
            there[chosen.key] = rooms_of(chosen, int(args.memory * 1e9))
            args.out.write_text(json.dumps(there, indent=1) + "\n")
    say(f"{len(there)} tasks take {sum(there.values())} rooms in all, of {ROOMS} at a time")


if __name__ == "__main__":
    main()
