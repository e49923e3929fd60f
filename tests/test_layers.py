"""The arrows of the design, checked: a package may import only what it lists here."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "kernelsmith"

MAY_IMPORT = {
    "__init__": {"api", "domain"},
    "__main__": {"cli"},
    "api": {"domain", "evaluate", "run"},
    "errors": set(),
    "kernels": set(),
    "domain": {"errors"},
    "evaluate": {"domain", "errors", "kernels", "__version__"},
    "search": {"domain", "errors"},
    "propose": {"domain", "errors", "__version__"},
    "run": {"domain", "errors", "search", "propose", "evaluate", "__version__"},
    "report": {"domain", "errors", "run"},
    "bench": {"domain", "errors", "evaluate", "run", "report", "__version__"},
    "service": {"domain", "errors", "evaluate", "__version__"},
    "corpus": {"domain", "errors", "evaluate", "bench", "report", "__version__"},
    "training": {
        "domain",
        "errors",
        "evaluate",
        "propose",
        "run",
        "search",
        "report",
        "bench",
        "__version__",
    },
    "testing": {"domain", "errors", "evaluate", "propose", "search"},
    "cli": {
        "api",
        "domain",
        "errors",
        "evaluate",
        "search",
        "propose",
        "run",
        "report",
        "bench",
        "service",
        "corpus",
        "training",
        "__version__",
    },
}

FILES = sorted(SRC.rglob("*.py"))


def package_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}:{node.lineno}: write imports in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("kernelsmith.")}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_imports_follow_the_arrows(path):
    package = package_of(path)
    assert imports(path) - {package} <= MAY_IMPORT[package]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_a_file_holds_one_idea(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 500
    assert ast.get_docstring(ast.parse(text)), "a module opens with a sentence on what it is for"


@pytest.mark.parametrize("path", sorted((SRC / "domain").glob("*.py")), ids=lambda p: p.name)
def test_the_domain_needs_the_standard_library_only(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        for name in names:
            top = name.split(".")[0]
            assert top == "kernelsmith" or top in sys.stdlib_module_names


@pytest.mark.parametrize(
    "module", ["kernelsmith", "kernelsmith.cli.main", "kernelsmith.evaluate.harness"]
)
def test_the_judges_process_never_imports_torch(module):
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_failures_become_values_in_one_place():
    broad = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None
                or (isinstance(node.type, ast.Name) and node.type.id == "Exception")
            ):
                broad.append(f"{path.name}:{node.lineno}")
    assert len(broad) <= 1, broad
