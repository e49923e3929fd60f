"""Torch's compiler, loaded without leaving a thread behind: processes are forked afterwards.

While it is loaded it asks whether there is a device, and the driver's library that is asked for it
keeps a thread from then on. Whether torch was built for a device is answer enough at that point:
who compiles for one asks again, in a process of its own.
"""

import importlib

import torch

_asks = torch.cuda.is_available
torch.cuda.is_available = lambda: torch.version.cuda is not None
try:
    importlib.import_module("torch._dynamo")
    importlib.import_module("torch._inductor.compile_fx")
finally:
    torch.cuda.is_available = _asks
