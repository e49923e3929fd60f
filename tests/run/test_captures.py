"""Where a run keeps captures."""

from pathlib import Path

from kernelsmith.run.captures import capturing
from kernelsmith.run.config import RunConfig


def test_captures_lie_with_the_run_and_in_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("KERNELSMITH_CACHE", str(tmp_path / "cache"))
    shelf = capturing(RunConfig(), Path("runs/softmax")).shelf
    assert shelf is not None
    assert shelf.own == Path("runs/softmax/captures")
    assert shelf.shared == tmp_path / "cache" / "captures"


def test_nothing_is_kept_where_nobody_wants_it():
    assert capturing(RunConfig(keep_captures=False), Path("run")).shelf is None


def test_without_a_gpu_there_is_no_turn_to_wait_for(monkeypatch):
    monkeypatch.setenv("KERNELSMITH_TRITON", "interpreter")
    assert capturing(RunConfig(backend="triton"), Path("run")).lock is None
    assert capturing(RunConfig(), Path("run")).lock is None
