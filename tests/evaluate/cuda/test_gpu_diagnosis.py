"""What the doctor says of GPUs, by a driver of our own making; in the machine's own words."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_nvml import COMPILER, Driver, build

from kernelsmith.evaluate import diagnosis
from kernelsmith.evaluate.diagnosis import Finding, look_at_gpus

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("doctor"))


@pytest.fixture
def driver(library, monkeypatch):
    monkeypatch.setattr(diagnosis, "mps_running", lambda: False)
    driver = Driver(library)
    driver.set("mode", 0)
    driver.set("devices", 1)
    driver.set("reasons", 1, ctypes.c_ulonglong)
    yield driver
    driver.library.mend()
    assert driver.opened == 0, "the library is closed again"


def by_name(driver: Driver) -> dict[str, Finding]:
    return {each.name: each for each in look_at_gpus(driver.path)}


def test_a_gpu_is_named_with_uuid_driver_memory_clocks_and_bandwidth(driver):
    found = by_name(driver)
    assert {name: each.detail for name, each in found.items()} == {
        "gpu 0": "NVIDIA H200, GPU-0, driver 580.65.06",
        "gpu 0 memory": "150.0 of 150.8 GB free",
        "gpu 0 compute mode": "default",
        "gpu 0 clocks": "processors 1755 MHz of 1980 MHz; memory 3200 MHz of 3201 MHz; "
        "not held down",
        "gpu 0 bandwidth": "4,917 GB/s in theory (clock and width; not measured)",
        "mps": "not running",
    }
    assert all(each.usable for each in found.values())


def test_every_gpu_has_its_lines_and_mps_has_one(driver):
    driver.set("devices", 2)
    names = [each.name for each in look_at_gpus(driver.path)]
    assert names.count("mps") == 1
    assert [name for name in names if name.endswith("memory")] == ["gpu 0 memory", "gpu 1 memory"]


def test_a_mode_that_keeps_others_out_is_named_with_its_remedy(driver):
    driver.set("mode", 3)
    found = by_name(driver)["gpu 0 compute mode"]
    assert not found.usable
    assert found.detail.startswith("exclusive_process; ")
    assert found.detail.endswith("nvidia-smi -c DEFAULT")


def test_mps_is_named_with_its_remedy(driver, monkeypatch):
    monkeypatch.setattr(diagnosis, "mps_running", lambda: True)
    found = by_name(driver)["mps"]
    assert not found.usable
    assert "nvidia-cuda-mps-control" in found.detail


def test_a_device_that_holds_its_clocks_down_says_why(driver):
    driver.set("reasons", 0x4 | 0x20, ctypes.c_ulonglong)
    found = by_name(driver)["gpu 0 clocks"]
    assert not found.usable
    assert found.detail.endswith("held down by sw_power_cap, sw_thermal_slowdown")


def test_what_the_driver_does_not_say_is_not_made_up(driver):
    for name in ("nvmlDeviceGetComputeMode", "nvmlDeviceGetClockInfo"):
        driver.fails(name, 3)
    driver.fails("nvmlDeviceGetMemoryBusWidth", 3)
    found = by_name(driver)
    assert found["gpu 0 compute mode"].detail == "the driver does not say"
    assert found["gpu 0 clocks"].detail.startswith("processors unknown of 1980 MHz")
    assert found["gpu 0 bandwidth"].detail == "the driver does not say"


@pytest.mark.parametrize(
    ("function", "code", "words"),
    [
        ("nvmlInit_v2", 9, "Driver Not Loaded"),
        ("nvmlDeviceGetMemoryInfo", 15, "GPU is lost"),
    ],
)
def test_a_driver_that_refuses_is_one_line_in_its_own_words(driver, function, code, words):
    driver.fails(function, code)
    (found,) = look_at_gpus(driver.path)
    assert not found.usable
    assert words in found.detail


def test_without_a_driver_there_is_one_line():
    (found,) = look_at_gpus("libno-such-driver.so.1")
    assert str(found).startswith("no  gpu: no NVIDIA driver here: libno-such-driver.so.1")


def test_the_doctor_shows_them_on_the_command_line(library, tmp_path):
    shutil.copy(library, tmp_path / "libnvidia-ml.so.1")
    done = subprocess.run(
        [sys.executable, "-m", "kernelsmith.cli.main", "doctor", "--fast"],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "KERNELSMITH_TRITON": "interpreter"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert (
        "  ok  gpu 0: NVIDIA H200, GPU-0, driver 580.65.06" in lines[lines.index("NVIDIA GPUs") :]
    )
