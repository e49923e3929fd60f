"""A worker of a bench, which opens whatever proposer the command line knows.

Started by the bench as ``python -m kernelsmith.cli.bench_worker``, with WHERE and BACKEND where it
judges at a server or on a cluster.
"""

import sys

from kernelsmith.bench.job import Workbench
from kernelsmith.bench.parts.worker import main
from kernelsmith.cli.elsewhere import LOCAL, elsewhere
from kernelsmith.cli.session import proposer_for


def opened() -> Workbench:
    """Connect, or judge here."""
    if not sys.argv[1:]:
        return Workbench(LOCAL, proposer_of=proposer_for)
    where, backend = sys.argv[1:]
    return Workbench(where, elsewhere(where, backend), proposer_of=proposer_for)


if __name__ == "__main__":
    main(opened)
