"""Installs the package of this folder for its tests, outside of the environment that runs them."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """A folder with the package as pip installs it; nothing is fetched."""
    target = tmp_path_factory.mktemp("site")
    copy = tmp_path_factory.mktemp("package")
    subprocess.run(["cp", "-r", f"{HERE}/src", f"{HERE}/pyproject.toml", copy], check=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([*command, str(copy)], check=True, capture_output=True)
    return target
