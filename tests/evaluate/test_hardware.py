"""One table says which backends are for GPUs, and everybody asks it."""

import pytest

from kernelsmith.evaluate.backend import _BUILTIN
from kernelsmith.evaluate.backends import here, triton
from kernelsmith.evaluate.backends.here import runs_on_gpu, usual_backend
from kernelsmith.evaluate.hardware import Hardware, hardware_of, uses_gpu


def test_every_backend_of_ours_has_its_hardware():
    assert {name: hardware_of(name) for name in _BUILTIN} == {
        "null": Hardware.PROCESSOR,
        "cpu": Hardware.PROCESSOR,
        "triton": Hardware.NVIDIA,
        "cuda": Hardware.NVIDIA,
        "maca": Hardware.METAX,
        "maca-emulated": Hardware.NVIDIA,
    }
    assert [name for name in _BUILTIN if uses_gpu(name)] == [
        "triton", "cuda", "maca", "maca-emulated"
    ]  # fmt: skip


def test_what_somebody_elses_backend_runs_on_is_not_guessed():
    assert hardware_of("mine") is Hardware.OTHER
    assert not uses_gpu("mine")


@pytest.mark.parametrize("choice", ["gpu", "interpreter"])
def test_what_runs_on_a_gpu_here_depends_on_whose_gpu_is_here(choice, monkeypatch):
    monkeypatch.setenv(triton.CHOICE, choice)
    monkeypatch.setattr(here, "device_name", lambda: "MetaX C500")
    nvidia = choice == "gpu"
    assert [runs_on_gpu(name) for name in ("cpu", "null")] == [False, False]
    assert [runs_on_gpu(name) for name in ("triton", "cuda", "maca-emulated")] == [nvidia] * 3
    assert runs_on_gpu("maca")
    assert usual_backend() == ("triton" if nvidia else "cpu")
