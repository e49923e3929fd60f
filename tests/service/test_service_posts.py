"""Where workers stand: a GPU each for every backend on NVIDIA's, once per machine for others."""

import os
import sys
from pathlib import Path

import pytest

from kernelsmith.errors import BackendUnavailable, UsageError
from kernelsmith.evaluate.backends import triton
from kernelsmith.service.posts import chosen_backends, posts_for
from kernelsmith.service.station import Station

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluate" / "cuda"))
from test_nvml import COMPILER, Driver, build

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> Driver:
    made = Driver(build(tmp_path_factory.mktemp("driver")))
    made.set("devices", 2)
    return made


@needs_compiler
@pytest.mark.parametrize("backend", ["triton", "cuda", "maca-emulated"])
def test_a_backend_on_nvidia_gpus_stands_at_each(backend, driver, monkeypatch):
    monkeypatch.setenv(triton.CHOICE, "gpu")
    posts = posts_for([backend], 2, library=driver.path)
    assert [(post.number, post.backend) for post in posts] == [(n, backend) for n in range(4)]
    assert [post.environment for post in posts] == [
        {"CUDA_VISIBLE_DEVICES": uuid} for uuid in ("GPU-0", "GPU-0", "GPU-1", "GPU-1")
    ]


@needs_compiler
def test_several_backends_share_the_gpus(driver, monkeypatch):
    monkeypatch.setenv(triton.CHOICE, "gpu")
    posts = posts_for(["cuda", "triton", "cpu", "maca"], 1, library=driver.path)
    assert [post.backend for post in posts] == ["cuda"] * 2 + ["triton"] * 2 + ["cpu", "maca"]
    assert [post.number for post in posts] == list(range(6))
    assert posts[4].environment == posts[5].environment == {}


@pytest.mark.parametrize("backend", ["triton", "cuda", "maca", "maca-emulated", "cpu", "null"])
def test_without_a_gpu_everyone_stands_at_the_machine_itself(backend, monkeypatch):
    monkeypatch.setenv(triton.CHOICE, "interpreter")
    (post,) = posts_for([backend], 1)
    assert (post.backend, post.environment) == (backend, {})


def test_cores_can_be_shared_out_among_judges_of_the_processor():
    own = sorted(os.sched_getaffinity(0))
    posts = posts_for(["null", "cpu"], 2, cores=1)
    assert [post.cores for post in posts[:2]] == [(), ()]
    assert sorted(post.cores for post in posts[2:]) == [(core,) for core in own for _ in range(2)]
    assert [post.number for post in posts] == list(range(len(posts)))
    with pytest.raises(UsageError, match=f"1 to {len(own)} cores here"):
        posts_for(["cpu"], 1, cores=len(own) + 1)


def test_any_backend_can_be_asked_for():
    assert chosen_backends(["maca", "cuda", "cuda"]) == ["maca", "cuda"]
    with pytest.raises(UsageError, match="no backend 'abacus'"):
        chosen_backends(["abacus"])


def test_a_compiler_without_its_device_does_not_serve(monkeypatch):
    """Else every candidate that builds would be lost, and judged again, and lost."""
    monkeypatch.setenv(triton.CHOICE, "interpreter")
    with pytest.raises(BackendUnavailable) as raised:
        Station("cuda")
    said = str(raised.value)
    assert "cuda" in said
    assert "no NVIDIA GPU is here" in said or "needs a compiler for CUDA" in said
    assert "\n" not in said
