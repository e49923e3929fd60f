"""Tensors without memory, loaded once in the process that rehearsals are forked from.

Their first use brings a symbolic algebra along: seconds in every process. No process that sees the
device is forked from one that loads this, and nothing here may ask whether there is one: the
driver's library, once asked, leaves a thread behind.
"""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

torch.cuda.is_available = lambda: False
_guard = torch._C._ensureCUDADeviceGuardSet
torch._C._ensureCUDADeviceGuardSet = lambda: None  # counts devices
try:
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        torch.nn.Linear(2, 2)(torch.randn(2, 2))
finally:
    torch._C._ensureCUDADeviceGuardSet = _guard
