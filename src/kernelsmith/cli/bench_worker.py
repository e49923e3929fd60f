"""A worker of a bench that judges at a server or on a cluster.

Started by the bench as ``python -m kernelsmith.cli.bench_worker WHERE BACKEND``.
"""

import sys

from kernelsmith.bench.job import Workbench
from kernelsmith.bench.parts.worker import main
from kernelsmith.cli.elsewhere import elsewhere


def opened() -> Workbench:
    """Connect."""
    where, backend = sys.argv[1:]
    return Workbench(where, elsewhere(where, backend))


if __name__ == "__main__":
    main(opened)
