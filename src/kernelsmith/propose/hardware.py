"""What is known of a device beyond its name: the data sheet, in lines for a prompt."""

import re

from kernelsmith.domain.device import Device

_SHEETS: tuple[tuple[str, str], ...] = (
    (
        r"\bB200\b|\bGB200\b",
        "Blackwell, 148 SMs, 180 to 192 GB HBM3e at about 8 TB/s, 228 KB shared memory per SM",
    ),
    (
        r"\bH200\b",
        "Hopper (sm_90), 132 SMs, 141 GB HBM3e at 4.8 TB/s, 50 MB L2, 228 KB shared memory per SM "
        "(227 KB per block), 67 TFLOP/s float32, 989 TFLOP/s bfloat16 on tensor cores",
    ),
    (
        r"\bH100\b.*PCIe",
        "Hopper (sm_90), 114 SMs, 80 GB HBM2e at 2.0 TB/s, 50 MB L2, 228 KB shared memory per SM, "
        "51 TFLOP/s float32, 756 TFLOP/s bfloat16 on tensor cores",
    ),
    (
        r"\bG?H100\b|\bGH200\b",
        "Hopper (sm_90), 132 SMs, HBM3 at 3.35 TB/s or more, 50 MB L2, 228 KB shared memory per "
        "SM, 67 TFLOP/s float32, 989 TFLOP/s bfloat16 on tensor cores",
    ),
    (
        r"\bH20\b",
        "Hopper (sm_90), 78 SMs, 96 GB HBM3 at 4.0 TB/s, 60 MB L2, 228 KB shared memory per SM: "
        "much bandwidth, little arithmetic (148 TFLOP/s bfloat16 on tensor cores)",
    ),
    (
        r"\bA100\b",
        "Ampere (sm_80), 108 SMs, HBM2e at 1.6 (40 GB) or 2.0 TB/s (80 GB), 40 MB L2, 164 KB "
        "shared memory per SM, 19.5 TFLOP/s float32, 312 TFLOP/s bfloat16 on tensor cores",
    ),
    (r"\bL40S?\b", "Ada (sm_89), 142 SMs, 48 GB GDDR6 at 864 GB/s, 96 MB L2, 100 KB shared per SM"),
    (r"\bRTX 4090\b", "Ada (sm_89), 128 SMs, 24 GB at 1.0 TB/s, 72 MB L2, 100 KB shared per SM"),
    (r"\bRTX 3090\b", "Ampere (sm_86), 82 SMs, 24 GB at 936 GB/s, 6 MB L2, 100 KB shared per SM"),
    (r"\bA10G?\b", "Ampere (sm_86), 24 GB GDDR6 at 600 GB/s, 6 MB L2, 100 KB shared per SM"),
    (r"\bV100\b", "Volta (sm_70), 80 SMs, HBM2 at 0.9 TB/s, 6 MB L2, 96 KB shared per SM"),
    (r"\bT4\b", "Turing (sm_75), 40 SMs, 16 GB GDDR6 at 320 GB/s, 4 MB L2, 64 KB shared per SM"),
    (
        r"\bC5\d\d\b|MetaX|XCORE1000",
        "MetaX C500: 104 processors, a wave holds 64 threads, 1024 threads a block, 131072 "
        "registers and 64 KB shared memory a block, 32 KB L1, 8 MB L2, 64 GB HBM2e at about "
        "1.8 TB/s (derived from its clock); sizes tuned for 32 lanes leave half idle",
    ),
)
_HOPPER = re.compile(r"\b(G?H(100|200|20|800)|G?B[12]00|GH200)\b")


def facts(device: Device | None) -> tuple[str, ...]:
    """One fact a line, the name first; nothing is said that the name does not settle."""
    if device is None:
        return ()
    lines = [f"device: {device}"]
    # Of a device that stands in for another, what counts is the other one.
    name = device.name.rpartition(" standing in for ")[2]
    for pattern, sheet in _SHEETS:
        if re.search(pattern, name):
            lines.append(f"data sheet: {sheet}")
            break
    if device.versions:
        lines.append("versions: " + ", ".join(f"{name} {said}" for name, said in device.versions))
    return tuple(lines)


def is_hopper_or_later(device: Device | None) -> bool:
    """Whether it copies tiles asynchronously by descriptor (TMA)."""
    return device is not None and _HOPPER.search(device.name) is not None
