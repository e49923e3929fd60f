"""Folders of packages that tasks import, where they are not installed.

The sandbox hides ``PYTHONPATH``, so that nothing is imported there by chance. Whoever keeps
packages elsewhere names their folders in ``KERNELSMITH_PACKAGES``; they come last in the search,
and whatever runs in the sandbox may read them.
"""

import os
from pathlib import Path

from kernelsmith.errors import UsageError

VARIABLE = "KERNELSMITH_PACKAGES"


def folders() -> tuple[Path, ...]:
    """Those that the environment names, in full.

    Raises:
        UsageError: One of them is not there.
    """
    found = []
    for each in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        path = Path(each).resolve()
        if not path.is_dir() or path == Path("/"):
            raise UsageError(f"{VARIABLE} names {each!r}, which is no folder of packages")
        found.append(path)
    return tuple(found)
