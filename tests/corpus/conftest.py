"""Small repositories written to disk, and one sandbox for all tests that run something."""

from pathlib import Path

import pytest

from kernelsmith.corpus.extract.extract import extract
from kernelsmith.corpus.harvest.harvest import harvest
from kernelsmith.corpus.run.runner import Runner
from kernelsmith.corpus.store import Record, Store


class Repository:
    """Files in a folder, and the corpus that is made of them."""

    def __init__(self, root: Path) -> None:
        self.root = root / "repo"
        self.store = Store(root / "corpus")

    def write(self, **files: str) -> None:
        for name, text in files.items():
            path = self.root / "pkg" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.root / "pkg" / "__init__.py").touch()

    def extract(self, **options) -> dict[str, Record]:
        """Records by class name; files by ``name!file``."""
        harvest(self.store, [str(self.root)], licences=("any",), say=lambda text: None)
        extract(self.store, processes=1, progress=lambda *numbers: None, **options)
        return {r.key.rpartition(":")[2].rpartition("/")[2]: r for r in self.store.stage("extract")}


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


@pytest.fixture(scope="session")
def runner():
    made = Runner(timeout_s=20)
    yield made
    made.close()
