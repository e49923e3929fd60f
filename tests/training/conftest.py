"""Makes the shared parts importable; without the extra ``train`` what trains is left out."""

import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
if importlib.util.find_spec("trl") is None:
    collect_ignore_glob = [
        "recipes/*",
        "serve/*",
        "test_adapt.py",
        "test_cycle*.py",
        "test_published.py",
        "test_weights.py",
    ]


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """A model this small gains nothing from a second thread, and others use that core."""
    if importlib.util.find_spec("trl") is not None:
        import torch

        torch.set_num_threads(1)
