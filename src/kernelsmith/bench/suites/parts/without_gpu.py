# mypy: ignore-errors
"""What a Triton reference asks about a GPU when it is loaded, answered where there is none.

Goes before a reference that is surveyed and not run; never into a task.
"""

import contextlib
import types

import torch
import triton

if not torch.cuda.is_available():
    torch.cuda.device = lambda *_, **__: contextlib.nullcontext()
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_name = lambda *_: "none"
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(
        multi_processor_count=132, name="none", major=9, minor=0, total_memory=1 << 36
    )
    torch._C._cuda_getCurrentRawStream = lambda *_: 0
    with contextlib.suppress(AttributeError):
        triton.runtime.driver.set_active(
            types.SimpleNamespace(
                get_current_target=lambda: types.SimpleNamespace(
                    backend="cuda", arch=90, warp_size=32
                ),
                get_current_device=lambda: 0,
                get_benchmarker=lambda: lambda *_, **__: [1.0],
                get_active_torch_device=lambda: torch.device("cpu"),
            )
        )
