"""Makes the helpers importable, and starts one interpreter for all tests here."""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from product_interpreter import interpreter


@pytest.fixture(scope="session")
def interpreting() -> Iterator[ProcessPoolExecutor]:
    """A process with Triton's interpreter."""
    with interpreter() as found:
        yield found
