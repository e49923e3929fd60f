"""Builds of torch, recognised from facts that their makers' builds state."""

import subprocess
import sys
from pathlib import Path

import pytest

from kernelsmith.errors import BackendUnavailable
from kernelsmith.evaluate.backends import triton
from kernelsmith.evaluate.backends.triton import InterpreterBackend, TritonBackend
from kernelsmith.evaluate.maca import metax
from kernelsmith.evaluate.torch_build import (
    Maker,
    TorchFacts,
    constants_of,
    installed_torch,
    torch_build,
)
from kernelsmith.evaluate.untested import AMD, HUAWEI, UNTESTED

METAX = TorchFacts(version="2.8.0+metax3.5.3.9", cuda="11.6", maca="3.5.3.9")
ROCM = TorchFacts(version="2.9.1+rocm6.4", hip="6.4.43484-123eb5128")
ASCEND = TorchFacts(version="2.8.0+cpu", torch_npu="2.8.0")
NVIDIA = TorchFacts(version="2.9.1+cu128", cuda="12.8")
PLAIN = TorchFacts(version="2.13.0+cpu")


@pytest.mark.parametrize(
    ("facts", "maker", "words"),
    [
        (METAX, Maker.METAX, "MetaX hardware (MACA 3.5.3.9)"),
        (ROCM, Maker.AMD, "AMD hardware (ROCm 6.4.43484-123eb5128)"),
        (ASCEND, Maker.HUAWEI, "Huawei hardware (Ascend torch_npu 2.8.0)"),
        (NVIDIA, Maker.NVIDIA, "NVIDIA hardware (CUDA 12.8)"),
        (PLAIN, Maker.NONE, "processors alone"),
        (TorchFacts(), Maker.NONE, "processors alone"),
        (TorchFacts(version="2.8.0", ascend="8.3.RC1"), Maker.HUAWEI,
         "Huawei hardware (Ascend 8.3.RC1)"),
    ],
)  # fmt: skip
def test_a_build_is_recognised_by_what_it_says_of_itself(facts, maker, words):
    found = torch_build(facts)
    assert found.maker is maker
    assert str(found) == words


def test_a_tag_in_the_version_is_enough():
    assert torch_build(TorchFacts(version="2.8.0+metax3.5.3.9")).version == "3.5.3.9"
    assert torch_build(TorchFacts(version="2.9.1+rocm6.4")).stack == "ROCm"


def test_metax_is_not_taken_for_nvidia_though_it_names_a_version_of_cuda():
    assert METAX.cuda is not None
    assert torch_build(METAX).maker is Maker.METAX


def test_a_version_file_is_read_and_not_run():
    said = constants_of(
        "from typing import Optional\n__version__ = '2.9.1+rocm6.4'\ndebug = False\n"
        "cuda: Optional[str] = None\nhip: Optional[str] = '6.4.43484'\nraise SystemExit\n"
    )
    assert said == {"__version__": "2.9.1+rocm6.4", "hip": "6.4.43484"}
    assert constants_of("hip = (") == {}


def test_the_torch_that_is_installed_here_says_the_same_when_it_is_imported():
    code = (
        "import sys, torch; from kernelsmith.evaluate.torch_build import installed_torch\n"
        "found = installed_torch()\n"
        "sys.exit((found.version, found.cuda) != (torch.__version__, torch.version.cuda))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_facts_are_had_without_importing_torch():
    code = (
        "import sys; from kernelsmith.evaluate.torch_build import installed_torch\n"
        "assert installed_torch().version; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture(scope="module")
def interpreter():
    backend = InterpreterBackend()
    yield backend
    backend.close()


@pytest.mark.parametrize(
    ("facts", "stack", "state"), [(ROCM, "ROCm", AMD), (ASCEND, "Ascend torch_npu", HUAWEI)]
)
def test_the_device_record_says_whose_build_it_is_and_that_nothing_ran_there(
    facts, stack, state, interpreter
):
    interpreter.build = torch_build(facts)
    device = interpreter.device()
    versions = dict(device.versions)
    assert device.kind == "cpu", "candidates run on the processor, whatever torch is built for"
    assert f"torch is built for {torch_build(facts)}" in device.name
    assert versions[stack] == torch_build(facts).version
    assert versions["state"] == state
    assert "untested" in state


def test_a_build_for_processors_alone_is_no_news(interpreter):
    interpreter.build = torch_build(PLAIN)
    device = interpreter.device()
    assert device.name.endswith("(Triton interpreter)")
    assert "state" not in dict(device.versions)


@pytest.mark.parametrize("facts", [ROCM, ASCEND, METAX])
def test_a_gpu_that_torch_is_not_built_for_is_not_timed(facts, monkeypatch):
    monkeypatch.setenv(triton.CHOICE, "gpu")
    monkeypatch.setattr(triton, "installed_torch", lambda: facts)
    with pytest.raises(BackendUnavailable, match="cannot time here: torch") as raised:
        TritonBackend()
    said = str(raised.value)
    assert str(torch_build(facts)) in said
    assert "KERNELSMITH_TRITON=interpreter" in said
    assert "\n" not in said


def test_this_installation_is_for_what_it_says():
    facts = installed_torch()
    reaches = torch_build(facts).maker is Maker.NVIDIA
    assert reaches is (facts.cuda is not None)


def test_triton_is_opened_on_a_metax_gpu_where_torch_is_metaxs(monkeypatch, tmp_path):
    for place, says in (("mxgpu_llvm/bin/mxcc", ""), ("bin/mx-smi", "GPU#0  MetaX C500")):
        tool = tmp_path / place
        tool.parent.mkdir(parents=True, exist_ok=True)
        tool.write_text(f"#!/bin/sh\necho '{says}'\n")
        tool.chmod(0o755)
    monkeypatch.setenv("MACA_PATH", str(tmp_path))
    monkeypatch.delenv(triton.CHOICE, raising=False)
    for module in (triton, metax):
        monkeypatch.setattr(module, "installed_torch", lambda: METAX)
    backend = TritonBackend()
    assert (backend.name, backend.gpu.name) == ("triton", "MetaX C500")
    assert backend._environment()["MACA_PATH"] == str(tmp_path)
    assert tmp_path in backend._folders(), "Triton calls mxcc"
    assert backend._tools()[0][0] == "triton"
    monkeypatch.setenv(triton.CHOICE, "interpreter")
    assert isinstance(TritonBackend(), InterpreterBackend)


def test_the_page_on_hardware_names_all_that_is_untested():
    page = (Path(__file__).parents[2] / "docs" / "hardware.md").read_text()
    for what, _ in UNTESTED:
        assert f"| {what} |" in page
