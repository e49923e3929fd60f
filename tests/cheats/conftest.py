"""One evaluator for the whole zoo: the reference of each task stays open in between."""

from dataclasses import replace

import pytest
from zoo import QUICK

from kernelsmith.evaluate.evaluator import LocalEvaluator


@pytest.fixture(scope="session")
def guarded():
    with LocalEvaluator("cpu", QUICK) as evaluator:
        yield evaluator


@pytest.fixture(scope="session")
def unguarded():
    """The same judge, not reading any source: what is left is evidence."""
    with LocalEvaluator("cpu", replace(QUICK, static=False)) as evaluator:
        yield evaluator
