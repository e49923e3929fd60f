"""NVML through ctypes, against a library of our own that answers as the driver's does."""

import ctypes
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from kernelsmith.errors import BackendUnavailable
from kernelsmith.evaluate.cuda.nvml import ComputeMode, Memory, Nvml, mps_running

COMPILER = shutil.which("gcc") or shutil.which("g++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")

# Layouts as nvml.h declares them, written down a second time and by the compiler's own rules.
SOURCE = r"""
#include <string.h>
#include <stddef.h>
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct {
    unsigned int pid; unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_v2_t;
typedef struct {
    unsigned int pid; unsigned long long timeStamp;
    unsigned int smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;
typedef struct { int number; } *nvmlDevice_t;

static char broken[16][64]; static int codes[16]; static int failures;
int opened, devices = 2, processes = 3, samples = 2;
static struct { int number; } cards[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
void fail(const char *name, int code) {
    strcpy(broken[failures], name); codes[failures++] = code;
}
void mend(void) { failures = 0; devices = 2; processes = 3; samples = 2; }
static int code(const char *name) {
    if (!opened) return 1;
    for (int i = 0; i < failures; i++) if (!strcmp(broken[i], name)) return codes[i];
    return 0;
}
#define CHECK { int c = code(__func__); if (c) return c; }
static int text(const char *from, char *to, unsigned int length) {
    if (strlen(from) >= length) return 7;
    strcpy(to, from); return 0;
}
const char *nvmlErrorString(int c) { return c == 9 ? "Driver Not Loaded" : c == 15 ?
    "GPU is lost" : c == 4 ? "Insufficient Permissions" : "Unknown Error"; }
int nvmlInit_v2(void) { opened++; int c = code(__func__); if (c) opened--; return c; }
int nvmlShutdown(void) { if (!opened) return 1; opened--; return 0; }
int nvmlSystemGetDriverVersion(char *v, unsigned int n) { CHECK return text("580.65.06", v, n); }
int nvmlDeviceGetCount_v2(unsigned int *n) { CHECK *n = devices; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int i, nvmlDevice_t *d) {
    CHECK if ((int)i >= devices) return 2; *d = (nvmlDevice_t)&cards[i]; return 0;
}
int nvmlDeviceGetUUID(nvmlDevice_t d, char *u, unsigned int n) {
    CHECK char name[] = "GPU-0"; name[4] = '0' + d->number; return text(name, u, n);
}
int nvmlDeviceGetName(nvmlDevice_t d, char *s, unsigned int n) {
    CHECK return text("NVIDIA H200", s, n);
}
int nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *m) {
    CHECK m->total = 150754820096ull; m->free = 150000000000ull; m->used = 754820096ull; return 0;
}
int mode;
int nvmlDeviceGetComputeMode(nvmlDevice_t d, int *m) { CHECK *m = mode; return 0; }
int nvmlDeviceGetClockInfo(nvmlDevice_t d, int kind, unsigned int *mhz) {
    CHECK *mhz = kind == 1 ? 1755 : kind == 2 ? 3200 : 0; return 0;
}
int nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, int kind, unsigned int *mhz) {
    CHECK *mhz = kind == 1 ? 1980 : kind == 2 ? 3201 : 0; return 0;
}
int nvmlDeviceGetMemoryBusWidth(nvmlDevice_t d, unsigned int *b) { CHECK *b = 6144; return 0; }
int nvmlDeviceGetTemperature(nvmlDevice_t d, int sensor, unsigned int *c) {
    CHECK if (sensor) return 2; *c = 41; return 0;
}
int nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned int *mw) { CHECK *mw = 118500; return 0; }
unsigned long long reasons = 0x1;
#ifdef OLD
int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t d, unsigned long long *r) {
    CHECK *r = reasons; return 0; }
#else
int nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, unsigned long long *r) {
    CHECK *r = reasons; return 0; }
#endif
#ifdef OLD
int nvmlDeviceGetComputeRunningProcesses_v3
#else
int nvmlDeviceGetComputeRunningProcesses_v2
#endif
(nvmlDevice_t d, unsigned int *count, nvmlProcessInfo_v2_t *infos) {
    CHECK unsigned int room = *count; *count = processes;
    if ((int)room < processes) return 7;
    for (int i = 0; i < processes; i++) {
        infos[i].pid = 1000 + i; infos[i].usedGpuMemory = ~0ull;
        infos[i].gpuInstanceId = infos[i].computeInstanceId = 0xFFFFFFFF;
    }
    return 0;
}
int nvmlDeviceGetProcessUtilization(nvmlDevice_t d, nvmlProcessUtilizationSample_t *s,
                                    unsigned int *count, unsigned long long since) {
    CHECK unsigned int room = *count; *count = samples;
    if (!s || (int)room < samples) return 7;
    if (!samples) return 6;
    for (int i = 0; i < samples; i++) {
        memset(&s[i], 0, sizeof s[i]);
        if (i == 1) continue;  /* the driver leaves entries of other times at zero */
        s[i].pid = 2000 + i; s[i].timeStamp = since + 5; s[i].smUtil = 97; s[i].memUtil = 12;
    }
    return 0;
}
"""


def build(folder: Path, *flags: str) -> Path:
    assert COMPILER is not None
    source, library = folder / "nvml.c", folder / "libnvml.so"
    source.write_text(SOURCE)
    command = [COMPILER, "-x", "c", "-shared", "-fPIC", *flags, "-o", str(library), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return library


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


class Driver:
    """The other end of the fake library."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.library = ctypes.CDLL(self.path)
        self.library.mend()

    def fails(self, name: str, code: int) -> None:
        self.library.fail(name.encode(), code)

    def set(self, name: str, value: int, kind: type = ctypes.c_int) -> None:
        kind.in_dll(self.library, name).value = value

    @property
    def opened(self) -> int:
        return ctypes.c_int.in_dll(self.library, "opened").value


@pytest.fixture
def driver(built):
    driver = Driver(built)
    driver.set("mode", 0)
    driver.set("reasons", 1, ctypes.c_ulonglong)
    yield driver
    driver.library.mend()
    assert driver.opened == 0, "every library that was opened is closed again"


@pytest.fixture
def gpu(driver):
    with Nvml(driver.path) as nvml:
        yield nvml.devices()[0]


def test_devices_say_who_they_are(driver):
    with Nvml(driver.path) as nvml:
        assert nvml.driver_version() == "580.65.06"
        assert [(g.index, g.uuid, g.name) for g in nvml.devices()] == [
            (0, "GPU-0", "NVIDIA H200"),
            (1, "GPU-1", "NVIDIA H200"),
        ]
        assert nvml.device("GPU-1").index == 1


def test_memory_and_bandwidth(gpu):
    assert gpu.memory() == Memory(total=150754820096, free=150000000000, used=754820096)
    assert (gpu.max_sm_mhz, gpu.max_memory_mhz, gpu.bus_bits) == (1980, 3201, 6144)
    assert gpu.bandwidth_bytes_s == pytest.approx(4.917e12, rel=1e-3)


@pytest.mark.parametrize(
    ("number", "mode"),
    [(0, "default"), (1, "exclusive_thread"), (2, "prohibited"), (3, "exclusive_process")],
)
def test_compute_modes_in_the_drivers_order(driver, gpu, number, mode):
    driver.set("mode", number)
    assert gpu.compute_mode() is ComputeMode(mode)


def test_an_unknown_compute_mode_is_not_guessed(driver, gpu):
    driver.set("mode", 9)
    assert gpu.compute_mode() is None


def test_a_snapshot_has_clocks_heat_power_and_processes(gpu):
    found = gpu.snapshot()
    assert (found.sm_mhz, found.memory_mhz, found.celsius, found.watts) == (1755, 3200, 41, 118.5)
    assert found.pids == {1000, 1001, 1002}
    assert found.reasons == {"gpu_idle"}
    assert found.throttled == frozenset()


def test_a_snapshot_costs_little_on_our_side(gpu):
    begun = time.perf_counter()
    for _ in range(200):
        gpu.snapshot()
    assert (time.perf_counter() - begun) / 200 < 1e-3


def test_reasons_are_named_and_choices_are_not_bad(driver, gpu):
    driver.set("reasons", 0x1 | 0x2 | 0x4 | 0x40 | 0x4000, ctypes.c_ulonglong)
    found = gpu.snapshot()
    assert found.reasons == {
        "gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_thermal_slowdown",
        "unknown_0x4000",
    }  # fmt: skip
    assert found.throttled == {"sw_power_cap", "hw_thermal_slowdown", "unknown_0x4000"}


@pytest.mark.parametrize("count", [0, 32, 33, 500])
def test_any_number_of_processes_fits(driver, gpu, count):
    driver.set("processes", count)
    assert gpu.pids() == set(range(1000, 1000 + count))


def test_utilisation_is_of_processes_seen_since(gpu):
    (found,) = gpu.utilisation(1_700_000_000_000_000)
    assert (found.pid, found.sm_percent, found.timestamp_us) == (2000, 97, 1_700_000_000_000_005)


def test_no_sample_is_not_the_same_as_no_support(driver, gpu):
    driver.set("samples", 0)
    assert gpu.utilisation(0) == []
    driver.fails("nvmlDeviceGetProcessUtilization", 3)
    assert gpu.utilisation(0) is None


def test_what_a_device_does_not_support_is_none(driver):
    unsupported = (
        "ClockInfo", "MaxClockInfo", "MemoryBusWidth", "Temperature", "PowerUsage",
        "ComputeMode", "CurrentClocksEventReasons", "ComputeRunningProcesses_v2",
    )  # fmt: skip
    for name in unsupported:
        driver.fails(f"nvmlDeviceGet{name}", 3)
    with Nvml(driver.path) as nvml:
        gpu = nvml.devices()[0]
        assert (gpu.max_sm_mhz, gpu.bandwidth_bytes_s, gpu.compute_mode()) == (None, None, None)
        found = gpu.snapshot()
    assert (found.sm_mhz, found.celsius, found.watts, found.pids) == (None, None, None, None)
    assert found.reasons == frozenset()


def test_an_older_driver_is_asked_by_its_older_names(tmp_path):
    driver = Driver(build(tmp_path, "-DOLD"))
    driver.set("reasons", 0x8, ctypes.c_ulonglong)
    with Nvml(driver.path) as nvml:
        found = nvml.devices()[0].snapshot()
    assert (found.reasons, found.pids) == ({"hw_slowdown"}, {1000, 1001, 1002})


def test_no_library_is_said_in_a_line():
    with pytest.raises(BackendUnavailable, match=r"no NVIDIA driver here: libnvidia-none\.so"):
        Nvml("libnvidia-none.so.1")


def test_a_library_of_another_kind_is_refused():
    with pytest.raises(BackendUnavailable, match="is not NVIDIA's library"):
        Nvml("libc.so.6")


def test_a_driver_that_is_not_loaded_says_so(driver):
    driver.fails("nvmlInit_v2", 9)
    with pytest.raises(BackendUnavailable, match=r"nvmlInit_v2: Driver Not Loaded \(code 9\)"):
        Nvml(driver.path)


def test_no_device_is_an_error(driver):
    driver.set("devices", 0)
    with Nvml(driver.path) as nvml, pytest.raises(BackendUnavailable, match="shows no GPU"):
        nvml.devices()


@pytest.mark.parametrize("code", [4, 15])
def test_devices_that_may_not_be_used_or_are_lost_are_left_out(driver, code):
    driver.fails("nvmlDeviceGetHandleByIndex_v2", code)
    with Nvml(driver.path) as nvml, pytest.raises(BackendUnavailable, match="of 2 there are"):
        nvml.devices()


def test_another_device_is_an_error_that_names_those_there_are(driver):
    with Nvml(driver.path) as nvml, pytest.raises(BackendUnavailable, match=r"'GPU-0', 'GPU-1'"):
        nvml.device("GPU-7")


@pytest.mark.parametrize(("code", "said"), [(999, "Unknown Error"), (15, "GPU is lost")])
def test_an_unexpected_failure_is_not_taken_for_missing_support(driver, gpu, code, said):
    driver.fails("nvmlDeviceGetTemperature", code)
    with pytest.raises(BackendUnavailable, match=rf"{said} \(code {code}\)"):
        gpu.snapshot()


def test_closing_twice_closes_once(driver):
    nvml = Nvml(driver.path)
    nvml.close()
    nvml.close()
    assert driver.opened == 0


def processes(folder: Path, *names: str) -> Path:
    for pid, name in enumerate(names, start=1):
        (folder / str(pid)).mkdir(parents=True)
        (folder / str(pid) / "comm").write_text(f"{name[:15]}\n")
    (folder / "self").mkdir(parents=True)
    (folder / "77").mkdir()  # gone while we look
    return folder


def test_mps_is_seen_by_its_processes(tmp_path):
    quiet = processes(tmp_path / "quiet", "python", "nvidia-persistenced")
    busy = processes(tmp_path / "busy", "python", "nvidia-cuda-mps-server")
    assert not mps_running(pipes=tmp_path / "none", proc=quiet)
    assert mps_running(pipes=tmp_path / "none", proc=busy)


def test_mps_outside_this_container_is_seen_by_who_reads_its_pipe(tmp_path):
    proc = processes(tmp_path / "proc")
    os.mkfifo(tmp_path / "control")
    assert not mps_running(pipes=tmp_path, proc=proc)
    reader = os.open(tmp_path / "control", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert mps_running(pipes=tmp_path, proc=proc)
    finally:
        os.close(reader)


def test_mps_is_seen_by_who_listens_on_its_socket(tmp_path, monkeypatch):
    proc = processes(tmp_path / "proc")
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "control"))
        server.listen()
        assert mps_running(proc=proc)
    assert not mps_running(proc=proc)


def test_a_plain_file_is_no_server(tmp_path):
    (tmp_path / "control").write_text("")
    assert not mps_running(pipes=tmp_path, proc=processes(tmp_path / "proc"))


def test_this_machine_is_looked_at_without_harm():
    assert mps_running() in (True, False)
