"""One evaluator for the whole zoo: the reference of each task stays open in between."""

from dataclasses import replace

import pytest
from device_zoo import generate
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


def pytest_generate_tests(metafunc):
    """Animals for the zoos on devices."""
    generate(metafunc)
