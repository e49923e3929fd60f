"""Makes the helpers importable, and starts one interpreter for all tests here."""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from triton_interpreter import runner


@pytest.fixture(scope="session")
def interpreting() -> Iterator[ProcessPoolExecutor]:
    """A process with Triton's interpreter."""
    with runner() as found:
        yield found
