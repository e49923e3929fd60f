import subprocess
import tarfile
import zipfile

import pytest

from kernelsmith.corpus.harvest.harvest import harvest
from kernelsmith.corpus.harvest.sources import open_source
from kernelsmith.corpus.store import Store
from kernelsmith.errors import UsageError

MODULE = (
    "from torch import nn\n\nclass A(nn.Module):\n    def forward(self, x):\n        return x\n"
)


def harvested(tmp_path, *specs, licences=("any",)):
    store = Store(tmp_path / "corpus")
    harvest(store, specs, licences=licences, say=lambda text: None)
    return {record.key: record for record in store.stage("harvest")}


def a_wheel(path, **extra):
    about = "Name: pkg\nVersion: 1.2\nLicense: MIT License\n\n"
    files = {"pkg/__init__.py": "", "pkg/a.py": MODULE, "pkg-1.2.dist-info/METADATA": about}
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, **extra}.items():
            archive.writestr(name, text)
    return path


def test_a_wheel_gives_its_files_version_and_licence(tmp_path):
    found = harvested(tmp_path, str(a_wheel(tmp_path / "pkg-1.2-py3-none-any.whl")))
    assert found["pkg:pkg/a.py"].text("licence") == "MIT"
    assert found["source:pkg"].text("version") == "1.2"
    assert (tmp_path / "corpus" / "trees" / "pkg" / "pkg" / "a.py").read_text() == MODULE


def test_an_archive_cannot_write_outside_its_folder(tmp_path):
    wheel = a_wheel(tmp_path / "pkg-1.2-py3-none-any.whl", **{"../../evil.py": "x"})
    found = harvested(tmp_path, str(wheel))
    assert not any("evil" in key for key in found)
    assert not list(tmp_path.parent.rglob("evil.py"))


def test_a_source_archive_loses_the_folder_around_it(tmp_path):
    (tmp_path / "pkg-2.0" / "pkg").mkdir(parents=True)
    (tmp_path / "pkg-2.0" / "pkg" / "a.py").write_text(MODULE)
    with tarfile.open(tmp_path / "pkg-2.0.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "pkg-2.0", "pkg-2.0")
    assert "pkg:pkg/a.py" in harvested(tmp_path, str(tmp_path / "pkg-2.0.tar.gz"))


def test_a_git_repository_is_cloned_and_its_commit_recorded(tmp_path):
    repo = tmp_path / "origin"
    repo.mkdir()
    (repo / "a.py").write_text(MODULE)
    (repo / "LICENSE").write_text("Apache License\nVersion 2.0")
    git = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    commit = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    found = harvested(tmp_path, f"file://{repo}")
    assert found["source:origin"].text("version") == commit
    assert found["origin:a.py"].text("licence") == "Apache-2.0"


def test_an_installed_package_is_read_without_being_imported(tmp_path):
    found = harvested(tmp_path, "installed:rich")
    assert any(key.endswith("rich/console.py") for key in found)
    assert found["source:rich"].reason == "mentions no module" or found["source:rich"].kept


def test_a_licence_that_was_not_asked_for_keeps_files_out(tmp_path):
    gpl = "# SPDX-License-Identifier: AGPL-3.0-only\n" + MODULE
    wheel = a_wheel(tmp_path / "pkg-1.2-py3-none-any.whl", **{"pkg/b.py": gpl})
    found = harvested(tmp_path, str(wheel), licences=("permissive",))
    assert found["pkg:pkg/a.py"].kept
    assert found["pkg:pkg/b.py"].reason == "licence not asked for"
    assert not (tmp_path / "corpus" / "trees" / "pkg" / "pkg" / "b.py").exists()


def test_what_is_harvested_already_is_not_harvested_again(tmp_path):
    wheel = str(a_wheel(tmp_path / "pkg-1.2-py3-none-any.whl"))
    harvested(tmp_path, wheel)
    lines = (tmp_path / "corpus" / "harvest.jsonl").read_text()
    harvested(tmp_path, wheel)
    assert (tmp_path / "corpus" / "harvest.jsonl").read_text() == lines


def test_huge_files_and_binary_ones_are_left_with_a_reason(tmp_path):
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "huge.py").write_text("x = 1\n" * 400_000)
    (folder / "binary.py").write_bytes(b"\x00\x01")
    (folder / "fine.py").write_text(MODULE)
    found = harvested(tmp_path, str(folder))
    assert found["repo:huge.py"].reason == "larger than 2 MB"
    assert found["repo:binary.py"].reason == "is not text"
    assert found["repo:fine.py"].kept


def test_a_source_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(UsageError, match="no source 'nowhere'"):
        open_source("nowhere", tmp_path)
    with pytest.raises(UsageError, match="no package 'no-such-package' is installed"):
        open_source("installed:no-such-package", tmp_path)


def test_one_source_that_fails_does_not_stop_the_others(tmp_path):
    wheel = str(a_wheel(tmp_path / "pkg-1.2-py3-none-any.whl"))
    found = harvested(tmp_path, "nowhere", wheel)
    assert found["source:nowhere"].reason == "cannot be opened"
    assert found["pkg:pkg/a.py"].kept
