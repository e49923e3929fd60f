"""MetaX's compiler by its exact command line, and what is missing where it is not there."""

import os
import stat
from pathlib import Path

import pytest

from kernelsmith.errors import BackendUnavailable
from kernelsmith.evaluate.backend import load_backend
from kernelsmith.evaluate.builder import BuildFailed
from kernelsmith.evaluate.maca import metax
from kernelsmith.evaluate.maca.builder import MacaBuilder
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.evaluate.untested import METAX
from kernelsmith.kernels.building import BuildRequest
from kernelsmith.kernels.toolkit import find_maca

STAND_IN = """#!/bin/sh
echo "$@" >&2
for last in "$@"; do :; done
echo "$@" > "$last"
"""
SOURCE = '#include <mc_runtime.h>\n__global__ void k(float* y) {}\nextern "C" void f(float* y) {}\n'


@pytest.fixture(scope="module")
def zygote():
    with Zygote(preload=["kernelsmith.evaluate.worker.compiling"]) as made:
        yield made


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder laid out like the SDK, with compilers that write down how they were called."""
    for place in ("mxgpu_llvm/bin/mxcc", "tools/cu-bridge/bin/cucc"):
        tool = tmp_path / "maca" / place
        tool.parent.mkdir(parents=True)
        tool.write_text(STAND_IN)
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)  # the sandbox is another user
    monkeypatch.setenv("MACA_PATH", str(tmp_path / "maca"))
    monkeypatch.delenv("MACA_ARCH", raising=False)
    return tmp_path / "maca"


def test_mxcc_is_called_as_metax_samples_call_it(zygote, home, tmp_path):
    builder = MacaBuilder(zygote, cache=tmp_path / "cache", sdk=find_maca())
    request = BuildRequest(kind="maca", source=SOURCE, flags=("-DBLOCK=256",))
    command, file = builder.command(request)
    assert file == "kernel.maca"
    assert command == [
        f"{home}/mxgpu_llvm/bin/mxcc", "-x", "maca", "-O3", "-std=c++17",
        "--offload-arch=xcore1000", f"--maca-path={home}", "-DBLOCK=256", "-resource-usage",
        "-shared", "-fPIC", "kernel.maca", "-o", "built",
    ]  # fmt: skip


def test_cuda_sources_go_through_cu_bridge(zygote, home, tmp_path):
    builder = MacaBuilder(zygote, cache=tmp_path / "cache", sdk=find_maca())
    command, file = builder.command(BuildRequest(kind="cuda", source=SOURCE))
    bridge = f"{home}/tools/cu-bridge"
    assert file == "kernel.cu"
    assert command == [
        f"{bridge}/bin/cucc", "-O3", "-std=c++17", "-shared", "-fPIC", "kernel.cu",
        f"-I{bridge}/include", f"-L{bridge}/lib", f"-L{home}/lib", "-lcuda", "-o", "built",
    ]  # fmt: skip


def test_the_architecture_can_be_chosen(zygote, home, tmp_path, monkeypatch):
    monkeypatch.setenv("MACA_ARCH", "xcore1500")
    builder = MacaBuilder(zygote, cache=tmp_path / "cache", sdk=find_maca())
    command, _ = builder.command(BuildRequest(kind="maca", source=SOURCE))
    assert "--offload-arch=xcore1500" in command


def test_the_command_is_what_runs_in_the_sandbox(zygote, home, tmp_path):
    builder = MacaBuilder(zygote, cache=tmp_path / "cache", sdk=find_maca())
    request = BuildRequest(kind="maca", source=SOURCE)
    made = builder.build(request)
    said = os.pread(made.fd, 10000, 0).decode().split()
    assert said == builder.command(request)[0][1:]
    assert [kernel.name for kernel in made.kernels] == ["k"]


def test_other_kinds_are_refused_with_what_to_use(zygote, home, tmp_path):
    builder = MacaBuilder(zygote, cache=tmp_path / "cache", sdk=find_maca())
    with pytest.raises(BuildFailed, match=r"use maca\(\) or cuda_library\(\)"):
        builder.command(BuildRequest(kind="cuda_extension", source=""))


def test_without_the_sdk_everything_that_is_missing_is_said(monkeypatch):
    monkeypatch.delenv("MACA_PATH", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BackendUnavailable) as raised:
        load_backend("maca")
    said = str(raised.value)
    assert "\n" not in said
    for part in ("mxcc is missing", "MACA_PATH", "torch.version.maca", "mx-smi", "maca-emulated"):
        assert part in said


def test_a_path_that_holds_no_compiler_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("MACA_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BackendUnavailable, match="holds no mxgpu_llvm/bin/mxcc"):
        load_backend("maca")


def test_with_the_compiler_alone_candidates_are_built_and_not_judged(home, monkeypatch):
    backend = load_backend("maca")
    try:
        assert backend.name == "maca"
        assert not backend.timed
        assert not backend.runs
        assert "no MetaX GPU" in backend.device().name
        assert ("state", METAX) in backend.device().versions
    finally:
        backend.close()


def test_the_device_is_named_by_its_own_tool(monkeypatch, tmp_path):
    tool = tmp_path / "mx-smi"
    tool.write_text("#!/bin/sh\necho 'GPU#0  MetaX C500  0000:0e:00.0'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert metax.device_name() == "MetaX C500"
