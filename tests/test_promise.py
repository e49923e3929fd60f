"""What the package promises: few names, a light import, a README that runs."""

import re
import subprocess
import sys
from pathlib import Path

import kernelsmith

ROOT = Path(__file__).parents[1]


def test_the_package_promises_at_most_ten_names_and_keeps_them():
    assert len(kernelsmith.__all__) <= 10
    for name in kernelsmith.__all__:
        assert getattr(kernelsmith, name).__module__.startswith("kernelsmith")


def test_importing_the_package_loads_nothing_that_is_not_the_standard_library():
    code = (
        "import sys, kernelsmith\n"
        "found = {name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(sorted(n for n in found if not n.startswith(('_', 'kernelsmith', 'sitecustom'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "torch" not in done.stdout
    assert "numpy" not in done.stdout


def test_the_readmes_python_example_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks, "the README shows no Python"
    for block in blocks:
        done = subprocess.run(
            [sys.executable, "-c", block], capture_output=True, text=True, cwd=ROOT, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "passed" in done.stdout


def test_the_readme_names_only_targets_that_the_makefile_has():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`?make ([a-z-]+)", (ROOT / "README.md").read_text()))
    assert named
    assert named <= targets


def test_ci_calls_the_readmes_test_command():
    assert "make test" in (ROOT / ".ci" / "run").read_text()
    assert "make test" in (ROOT / "README.md").read_text()
