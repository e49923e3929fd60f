"""Skips what this machine cannot run, with the reason that the backend gives."""

import shutil

import pytest


def _why_not(marker: str) -> str | None:
    if marker == "triton" and shutil.which("nvidia-smi") is None:
        return "no NVIDIA GPU: nvidia-smi is not on this machine"
    if marker == "maca" and shutil.which("mx-smi") is None:
        return "no MetaX GPU: mx-smi is not on this machine"
    return None


def pytest_collection_modifyitems(items):
    for item in items:
        for marker in ("triton", "maca"):
            if item.get_closest_marker(marker) and (reason := _why_not(marker)):
                item.add_marker(pytest.mark.skip(reason=reason))
