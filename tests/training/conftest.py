"""Makes the shared parts importable; without the extra ``train`` what trains is left out."""

import importlib.util
import sys
from pathlib import Path

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
