"""What audits of published kernels found, put together from what ``kernelsmith bench audit`` left.

Each audit is named with where the kernels come from, so that anyone can judge them again:
``--audit 'SOURCE@COMMIT FILE=FOLDER'``. Sources of others are not kept, only their hashes.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.report import busy_share, save, say, table, without_paths
from kernelsmith.evaluate.backend import load_backend

_KEPT = (
    "id", "task", "language", "opinion", "verdict", "claim", "claimed_on", "own_kernel", "labels",
    "sha256", "judge",
)  # fmt: skip


def audit(said: str) -> dict[str, Any]:
    """One audit: where from, how many of what, and each kernel with its evidence."""
    source, _, folder = said.rpartition("=")
    body = json.loads((Path(folder) / "audit.json").read_text())
    kernels = []
    for each in body["kernels"]:
        row = {name: each[name] for name in _KEPT}
        lines = each["evidence"].strip().splitlines() or [""]
        # of a traceback the end says most
        row["evidence"] = without_paths(lines[-1] if each["opinion"] == "fails" else lines[0])
        row["if_run"] = without_paths(each["if_run"])
        row["speedup"] = each["speedup"] and {k: round(v, 4) for k, v in each["speedup"].items()}
        kernels.append(row)
    judged = [row for row in kernels if row["opinion"] != "unjudged"]
    return {
        "source": source,
        "command": body["command"],
        "suite": body["suite"],
        "kernels_found": len(kernels),
        "judged": len(judged),
        "counts": dict(Counter(row["opinion"] for row in kernels)),
        "without_own_kernel": sum(not row["own_kernel"] for row in judged),
        "kernels": kernels,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--audit", action="append", required=True, metavar="SOURCE=FOLDER")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the JSON goes")
    parser.set_defaults(quick=False)
    args = parser.parse_args()
    found = [audit(said) for said in args.audit]
    args.audit = [repr(f"{each['source']}=FOLDER") for each in found]
    backend = load_backend("cpu")
    try:
        device = backend.device()
    finally:
        backend.close()
    args.out = args.out or Path(__file__).parent / "results" / "audit-cpu.json"
    save("bench_audit", args, device, {"audits": found}, busy=busy_share(0.5))
    rows = [
        [each["source"], each["judged"], *(each["counts"].get(name, 0) for name in _SHOWN)]
        for each in found
    ]
    print(table(["source", "judged", *_SHOWN], rows))
    say("kernels of others are not kept; their hashes are")


_SHOWN = ("wrong", "cheated", "refused", "fails", "slower", "right", "unjudged")


if __name__ == "__main__":
    main()
