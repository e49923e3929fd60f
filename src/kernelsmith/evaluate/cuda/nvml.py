"""What the driver says about the GPUs, and about who uses them, asked without a CUDA context."""

import contextlib
import ctypes
import errno
import os
import socket
import stat
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_int, c_uint, c_ulonglong, c_void_p
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelsmith.errors import BackendUnavailable

LIBRARY = "libnvidia-ml.so.1"

_SUCCESS, _NOT_FOUND, _INSUFFICIENT_SIZE, _NO_DATA = 0, 6, 7, 21
_ABSENT = (3, 4, 13)
"""Not supported, not permitted, not in this library: there is no number to be had."""
_LOST = 15
_SM, _MEMORY = 1, 2
_CORE_SENSOR = 0

REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
"""Why the clocks are where they are, by NVML's bits."""
_BY_CHOICE = frozenset({"gpu_idle", "applications_clocks_setting", "display_clock_setting"})


class ComputeMode(StrEnum):
    """Who may have a context on the device."""

    DEFAULT = "default"
    EXCLUSIVE_THREAD = "exclusive_thread"
    PROHIBITED = "prohibited"
    EXCLUSIVE_PROCESS = "exclusive_process"


_MODES = tuple(ComputeMode)  # NVML counts them in this order


class _Memory(ctypes.Structure):
    _fields_ = (("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong))


class _Process(ctypes.Structure):
    """``nvmlProcessInfo_v2_t``: 24 bytes, also what ``_v3`` fills in since driver 535.98."""

    _fields_ = (
        ("pid", c_uint),
        ("used", c_ulonglong),
        ("gpu_instance", c_uint),
        ("compute_instance", c_uint),
    )


class _Utilisation(ctypes.Structure):
    """``nvmlProcessUtilizationSample_t``: 32 bytes."""

    _fields_ = (
        ("pid", c_uint),
        ("timestamp", c_ulonglong),
        ("sm", c_uint),
        ("memory", c_uint),
        ("encoder", c_uint),
        ("decoder", c_uint),
    )


_SIGNATURES: dict[str, tuple[object, ...]] = {
    "nvmlInit_v2": (),
    "nvmlShutdown": (),
    "nvmlSystemGetDriverVersion": (c_char_p, c_uint),
    "nvmlDeviceGetCount_v2": (POINTER(c_uint),),
    "nvmlDeviceGetHandleByIndex_v2": (c_uint, POINTER(c_void_p)),
    "nvmlDeviceGetUUID": (c_void_p, c_char_p, c_uint),
    "nvmlDeviceGetName": (c_void_p, c_char_p, c_uint),
    "nvmlDeviceGetMemoryInfo": (c_void_p, POINTER(_Memory)),
    "nvmlDeviceGetComputeMode": (c_void_p, POINTER(c_int)),
    "nvmlDeviceGetCudaComputeCapability": (c_void_p, POINTER(c_int), POINTER(c_int)),
    "nvmlDeviceGetClockInfo": (c_void_p, c_int, POINTER(c_uint)),
    "nvmlDeviceGetMaxClockInfo": (c_void_p, c_int, POINTER(c_uint)),
    "nvmlDeviceGetMemoryBusWidth": (c_void_p, POINTER(c_uint)),
    "nvmlDeviceGetTemperature": (c_void_p, c_int, POINTER(c_uint)),
    "nvmlDeviceGetPowerUsage": (c_void_p, POINTER(c_uint)),
    "nvmlDeviceGetCurrentClocksEventReasons": (c_void_p, POINTER(c_ulonglong)),
    "nvmlDeviceGetCurrentClocksThrottleReasons": (c_void_p, POINTER(c_ulonglong)),
    "nvmlDeviceGetComputeRunningProcesses_v2": (c_void_p, POINTER(c_uint), POINTER(_Process)),
    "nvmlDeviceGetComputeRunningProcesses_v3": (c_void_p, POINTER(c_uint), POINTER(_Process)),
    "nvmlDeviceGetProcessUtilization": (
        c_void_p, POINTER(_Utilisation), POINTER(c_uint), c_ulonglong,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Device memory in bytes. ``used`` counts what the driver keeps for itself."""

    total: int
    free: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A device at one moment. ``None`` where the driver does not say."""

    sm_mhz: int | None
    memory_mhz: int | None
    celsius: int | None
    watts: float | None
    reasons: frozenset[str]
    """Why the clocks are where they are, by NVML's names."""
    pids: frozenset[int] | None
    """Processes with a context, as the driver numbers them: in a container with its own process
    numbers these are the host's, and some drivers then show none at all."""

    @property
    def throttled(self) -> frozenset[str]:
        """Reasons that make times incomparable: heat, power, slowdown; not idleness or a choice."""
        return self.reasons - _BY_CHOICE


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """How busy one process kept the device of late."""

    pid: int
    sm_percent: int
    timestamp_us: int
    """Of the driver's last sample of this process."""


class Nvml:
    """The driver's management library, opened; ``with Nvml() as nvml``."""

    def __init__(self, library: str = LIBRARY) -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise BackendUnavailable(
                f"no NVIDIA driver here: {library} cannot be loaded ({error})"
            ) from error
        self._functions: dict[str, Callable[..., int] | None] = {}
        try:
            error_string = self._library.nvmlErrorString
            error_string.argtypes, error_string.restype = (c_int,), c_char_p
        except AttributeError as error:
            raise BackendUnavailable(f"{library} is not NVIDIA's library: {error}") from error
        self._error_string = error_string
        self.must("nvmlInit_v2")
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the library. Its devices answer no more."""
        if self._open:
            self._open = False
            self.call("nvmlShutdown")

    def call(self, name: str, *arguments: object) -> int:
        """Call one function by its name and return NVML's code; 13 where it does not exist."""
        if name not in self._functions:
            function = getattr(self._library, name, None)
            if function is not None:
                function.argtypes, function.restype = _SIGNATURES[name], c_int
            self._functions[name] = function
        chosen = self._functions[name]
        return 13 if chosen is None else int(chosen(*arguments))

    def must(self, name: str, *arguments: object) -> None:
        """Call a function without which there is no device.

        Raises:
            BackendUnavailable: It failed; the message is NVML's own.
        """
        code = self.call(name, *arguments)
        if code != _SUCCESS:
            raise self._failure(name, code)

    def may(self, name: str, *arguments: object) -> bool:
        """Call a function that some devices do not support, and say whether it answered.

        Raises:
            BackendUnavailable: It failed in another way than by not being supported.
        """
        code = self.call(name, *arguments)
        if code not in (_SUCCESS, *_ABSENT):
            raise self._failure(name, code)
        return code == _SUCCESS

    def driver_version(self) -> str:
        """The driver's version, such as ``580.65.06``."""
        return self._text("nvmlSystemGetDriverVersion")

    def devices(self) -> "list[Gpu]":
        """Every GPU that this user may ask about.

        Raises:
            BackendUnavailable: There is none.
        """
        count = c_uint()
        self.must("nvmlDeviceGetCount_v2", byref(count))
        found = []
        for index in range(count.value):
            handle = c_void_p()
            code = self.call("nvmlDeviceGetHandleByIndex_v2", index, byref(handle))
            if code == _SUCCESS:
                found.append(Gpu(self, handle, index))
            elif code not in (*_ABSENT, _LOST):
                raise self._failure("nvmlDeviceGetHandleByIndex_v2", code)
        if not found:
            raise BackendUnavailable(
                f"the NVIDIA driver shows no GPU that may be used, of {count.value} there are"
            )
        return found

    def device(self, uuid: str) -> "Gpu":
        """The GPU of that name.

        Raises:
            BackendUnavailable: There is no such GPU.
        """
        found = self.devices()
        for each in found:
            if each.uuid == uuid:
                return each
        raise BackendUnavailable(f"no GPU {uuid!r}; there are {[each.uuid for each in found]}")

    def _text(self, name: str, *device: c_void_p) -> str:
        buffer = ctypes.create_string_buffer(96)
        self.must(name, *device, buffer, len(buffer))
        return buffer.value.decode(errors="replace")

    def _failure(self, name: str, code: int) -> BackendUnavailable:
        said = self._error_string(code)
        text = said.decode(errors="replace") if said else "no such error"
        return BackendUnavailable(f"the NVIDIA driver refuses {name}: {text} (code {code})")


class Gpu:
    """One device. What never changes is read once; everything else is asked anew."""

    def __init__(self, nvml: Nvml, handle: c_void_p, index: int) -> None:
        self._nvml, self._handle = nvml, handle
        self.index = index
        self.uuid = nvml._text("nvmlDeviceGetUUID", handle)
        self.name = nvml._text("nvmlDeviceGetName", handle)
        self.driver_version = nvml.driver_version()
        self.max_sm_mhz = self._number("nvmlDeviceGetMaxClockInfo", _SM)
        self.max_memory_mhz = self._number("nvmlDeviceGetMaxClockInfo", _MEMORY)
        self.bus_bits = self._number("nvmlDeviceGetMemoryBusWidth")

    @property
    def bandwidth_bytes_s(self) -> float | None:
        """What the memory could deliver by its clock and width: two transfers a cycle."""
        if self.max_memory_mhz is None or self.bus_bits is None:
            return None
        return 2 * self.max_memory_mhz * 1e6 * self.bus_bits / 8

    @property
    def capability(self) -> tuple[int, int] | None:
        """Major and minor number of its architecture, where the driver says."""
        major, minor = c_int(), c_int()
        asked = "nvmlDeviceGetCudaComputeCapability"
        if not self._nvml.may(asked, self._handle, byref(major), byref(minor)):
            return None
        return major.value, minor.value

    def memory(self) -> Memory:
        """Bytes there are, free and taken."""
        found = _Memory()
        self._nvml.must("nvmlDeviceGetMemoryInfo", self._handle, byref(found))
        return Memory(total=found.total, free=found.free, used=found.used)

    def compute_mode(self) -> ComputeMode | None:
        """Who may have a context; ``None`` where the driver does not say."""
        mode = c_int()
        if not self._nvml.may("nvmlDeviceGetComputeMode", self._handle, byref(mode)):
            return None
        return _MODES[mode.value] if 0 <= mode.value < len(_MODES) else None

    def snapshot(self) -> Snapshot:
        """Clocks, heat, what holds the clocks down and who is there: under a millisecond."""
        milliwatts = self._number("nvmlDeviceGetPowerUsage")
        return Snapshot(
            sm_mhz=self._number("nvmlDeviceGetClockInfo", _SM),
            memory_mhz=self._number("nvmlDeviceGetClockInfo", _MEMORY),
            celsius=self._number("nvmlDeviceGetTemperature", _CORE_SENSOR),
            watts=None if milliwatts is None else milliwatts / 1000,
            reasons=self._reasons(),
            pids=self.pids(),
        )

    def pids(self) -> frozenset[int] | None:
        """Processes with a compute context; ``None`` where the driver does not say."""
        # The layout that _v3 filled in changed between drivers of the 535 branch; _v2's never did.
        for name in (
            "nvmlDeviceGetComputeRunningProcesses_v2",
            "nvmlDeviceGetComputeRunningProcesses_v3",
        ):
            room = 32
            for _ in range(4):  # others may start in between
                count = c_uint(room)
                found = (_Process * room)()
                code = self._nvml.call(name, self._handle, byref(count), found)
                if code == _SUCCESS:
                    return frozenset(found[i].pid for i in range(min(count.value, room)))
                if code != _INSUFFICIENT_SIZE:
                    break
                room = 2 * max(room, count.value)
        return None

    def utilisation(self, since_us: int) -> list[Utilisation] | None:
        """Processes that kept the device busy after ``since_us``, microseconds since 1970.

        The driver samples several times a second, so this sees what ran for long and not one
        kernel. ``None`` where it is not supported.
        """
        name = "nvmlDeviceGetProcessUtilization"
        room = 64
        for _ in range(4):
            count = c_uint(room)
            found = (_Utilisation * room)()
            code = self._nvml.call(name, self._handle, found, byref(count), since_us)
            if code in (_NOT_FOUND, _NO_DATA):
                return []
            if code == _SUCCESS:
                return [
                    Utilisation(pid=each.pid, sm_percent=each.sm, timestamp_us=each.timestamp)
                    for each in found[: min(count.value, room)]
                    if each.timestamp > since_us  # the rest of the buffer is not filled in
                ]
            if code != _INSUFFICIENT_SIZE:
                return None
            room = 2 * max(room, count.value)
        return None

    def _number(self, name: str, *which: int) -> int | None:
        value = c_uint()
        return value.value if self._nvml.may(name, self._handle, *which, byref(value)) else None

    def _reasons(self) -> frozenset[str]:
        bits = c_ulonglong()
        for name in (
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetCurrentClocksThrottleReasons",  # drivers before 535
        ):
            if self._nvml.may(name, self._handle, byref(bits)):
                known = {text for bit, text in REASONS.items() if bits.value & bit}
                other = bits.value & ~sum(REASONS)
                return frozenset(known | ({f"unknown_{other:#x}"} if other else set()))
        return frozenset()


def mps_running(*, pipes: Path | None = None, proc: Path = Path("/proc")) -> bool:
    """Whether processes may share the GPU through MPS, so that kernels of two run at once.

    Sees a server of this process namespace by its name, and one outside of it by its pipe.
    """
    folder = pipes or Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY") or "/tmp/nvidia-mps")
    if _answered(folder / "control"):
        return True
    for entry in proc.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # gone in the meantime, or hidden
                # The kernel keeps 15 characters of nvidia-cuda-mps-control and -server.
                if (entry / "comm").read_text().startswith("nvidia-cuda-mps"):
                    return True
    return False


def _answered(control: Path) -> bool:
    """Whether anyone reads this pipe or socket; its file outlives the server."""
    try:
        mode = control.stat().st_mode
    except OSError:
        return False
    if stat.S_ISSOCK(mode):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            refused = (errno.ECONNREFUSED, errno.ENOENT)
            return probe.connect_ex(os.fspath(control)) not in refused
    if not stat.S_ISFIFO(mode):
        return False
    try:
        os.close(os.open(control, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return error.errno not in (errno.ENXIO, errno.ENOENT)
    return True
