"""What was written from public sources and never ran on its hardware here; ``doctor`` lists it.

Whoever runs one of these and sees it work takes its line out, here and in ``docs/hardware.md``.
"""

METAX = "never ran on MetaX hardware here: untested"
AMD = "no judge for AMD GPUs, never ran on one here: untested"
HUAWEI = "no judge for Ascend NPUs, never ran on one here: untested"
CUTE = "CuTe DSL never ran on a GPU here: untested"

UNTESTED = (
    ("maca on MetaX GPUs", "written from public sources; the emulated backend is what ran"),
    ("triton on MetaX GPUs", "the judge of NVIDIA GPUs over MetaX's torch, Triton and cu-bridge"),
    ("triton with torch for AMD ROCm", "recognised; checked in the interpreter, never timed"),
    ("triton with torch for Huawei Ascend", "recognised; checked in the interpreter, never timed"),
    ("CuTe DSL candidates of cuda", "recognised; run where nvidia-cutlass-dsl is installed"),
)
"""Each with what there is of it."""
