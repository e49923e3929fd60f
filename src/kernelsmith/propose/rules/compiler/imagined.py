"""A GPU that is not here, as far as torch's compiler asks about one; the child's own.

The compiler writes its text from shapes and from a few facts about the device; only trying out
variants needs the device itself. So it is told the facts, works on tensors without contents, and
what it writes can be read and checked on a machine that has no GPU. For a process that does nothing
else: torch believes in the device from then on.
"""

import ctypes
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map_only

from kernelsmith.propose.rules.compiler.facts import Facts
from kernelsmith.propose.rules.hollow import hollowed

_GUARD = """
#include <c10/core/impl/DeviceGuardImplInterface.h>
namespace c10::impl { C10_REGISTER_GUARD_IMPL(CUDA, NoOpDeviceGuardImpl<DeviceType::CUDA>) }
"""
_THREADS = {75: 1024, 86: 1536, 89: 1536}
"""Of a multiprocessor, where they are not 2,048."""
IMAGINED = "cuda:0"
"""By number: which one is current is asked of the driver."""
NOT_TRIED = {"shape_padding": False}
"""Settings of the compiler without what it decides by trying, such as whether to pad a product."""
_asks = torch.cuda.is_available


def is_here() -> bool:
    """Whether there is a GPU, whatever is imagined."""
    return bool(_asks())


@cache
def imagine(gpu: Facts) -> None:
    """Let this process's torch take a GPU for present, as long as nothing runs on it."""
    _answer_for(gpu)
    _compile_for(gpu)
    guard_nothing()
    _lay_out_convolutions()
    _fold_on_the_processor()
    _follow_no_constants()


class Hollow:
    """Where models and inputs are made without contents, on the GPU that is not here."""

    def __init__(self) -> None:
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)

    def made(self, make: Callable[[], Any]) -> Any:
        """What ``make`` returns, on the device; in full at first where it looks at contents."""
        try:
            with self.mode, torch.device(IMAGINED):
                found = make()
        except (RuntimeError, TypeError):
            # ``[rate.item() for rate in torch.linspace(...)]``, arrays of numpy, and the like
            found = make()
        return hollowed(found, self._moved)

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        """A module's own way of moving swaps tensors, which those without contents do not allow."""
        with self.mode:
            empty = torch.empty_strided(
                tensor.shape, tensor.stride(), dtype=tensor.dtype, device=IMAGINED
            )
            if isinstance(tensor, torch.nn.Parameter):
                return _parameter(empty)
            return empty

    def cast(self, model: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
        """``model.to(dtype)``, for the same reason; tied weights stay tied."""
        made: dict[torch.Tensor, torch.Tensor] = {}
        with self.mode:
            for each in (*model.parameters(), *model.buffers()):
                if each.is_floating_point():
                    cast = each.to(dtype)
                    made[each] = _parameter(cast) if isinstance(each, torch.nn.Parameter) else cast
        for module in model.modules():
            for held in (module._parameters, module._buffers):
                held.update({k: made.get(v, v) for k, v in held.items() if v is not None})
        return model


def _parameter(tensor: torch.Tensor) -> torch.nn.Parameter:
    """Without gradients, for which autograd would ask the driver; nobody wants them here."""
    return torch.nn.Parameter(tensor, requires_grad=False)


def _answer_for(gpu: Facts) -> None:
    """Everything that is asked of a CUDA device while text is written."""
    major, minor = divmod(gpu.architecture, 10)
    properties = SimpleNamespace(
        name=gpu.name, major=major, minor=minor, multi_processor_count=gpu.processors,
        regs_per_multiprocessor=65536, warp_size=32, max_threads_per_block=1024,
        max_threads_per_multi_processor=_THREADS.get(gpu.architecture, 2048),
        shared_memory_per_block=48 << 10, shared_memory_per_block_optin=gpu.shared_bytes,
        shared_memory_per_multiprocessor=gpu.shared_bytes + 1024, total_memory=64 << 30,
        L2_cache_size=gpu.l2_bytes, is_integrated=0, gcnArchName="",
    )  # fmt: skip

    def answers(value: object) -> Callable[..., object]:
        return lambda *args, **keywords: value

    cuda: Any = torch.cuda
    known = {
        "is_available": True, "is_initialized": True, "device_count": 1, "current_device": 0,
        "get_device_properties": properties, "_get_device_properties": properties,
        "get_device_capability": (major, minor), "get_device_name": gpu.name,
        "_exchange_device": 0, "_maybe_exchange_device": 0, "get_rng_state": torch.zeros(16),
        "is_bf16_supported": gpu.architecture >= 80,
    }  # fmt: skip
    done = ("_lazy_init", "synchronize", "set_device", "set_rng_state", "empty_cache")
    for name, value in {**known, **dict.fromkeys(done)}.items():
        setattr(cuda, name, answers(value))
    mode: Any = FakeTensorMode
    mode.avoid_device_init = True  # as where torch knows that there is no device


def _lay_out_convolutions() -> None:
    """Results of convolutions lie as cuDNN leaves them; this build of torch knows no cuDNN."""
    from torch._prims_common import suggest_memory_format

    def layout(x: torch.Tensor, weight: torch.Tensor, _: object) -> torch.memory_format:
        found = [suggest_memory_format(each) for each in (x, weight)]
        last = [each for each in found if each is not torch.contiguous_format]
        return last[0] if last else torch.contiguous_format

    library: Any = torch._C
    library._conv_determine_backend_memory_format = layout


def _compile_for(gpu: Facts) -> None:
    """The part of Triton's driver that says what code is for."""
    import torch.utils._triton as helpers
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    class Driver:
        def get_current_target(self) -> Any:
            return GPUTarget("cuda", gpu.architecture, 32)

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, device: int) -> int:
            return 0

        def get_active_torch_device(self) -> torch.device:
            return torch.device(IMAGINED)

    driver.set_active(Driver())
    helpers.triton_hash_with_backend = lambda: f"imagined {gpu.architecture}"


@cache
def guard_nothing() -> None:
    """Operators make a device the current one before they run; here there is nothing to make so.

    Torch brings along a guard that does nothing, and takes it where it was built for a device that
    is not there. Where it was not built for it, registering that guard takes a line of C++ and a
    second or two; what is forked afterwards has it.
    """
    if torch.version.cuda is not None or torch.version.hip is not None:
        library: Any = torch._C
        library._ensureCUDADeviceGuardSet()
        return
    where = Path(torch.__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        source, guard = Path(folder, "guard.cpp"), Path(folder, "guard.so")
        source.write_text(_GUARD)
        command = [
            *shlex.split(os.environ.get("CXX", "g++")), "-std=c++20", "-O0", "-shared", "-fPIC",
            f"-I{where / 'include'}", str(source), "-o", str(guard), f"-L{where / 'lib'}", "-lc10",
        ]  # fmt: skip
        try:
            subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            said = str(getattr(error, "stderr", error)).strip().splitlines() or ["it ended early"]
            raise RuntimeError(
                f"no guard for a GPU that is not here: {command[0]}: {said[0][:160]}; install g++"
            ) from None
        ctypes.CDLL(str(guard))


def _fold_on_the_processor() -> None:
    """Constants are folded, and patterns of graphs traced, with real tensors: so not on the GPU."""
    from torch._inductor.fx_passes import joint_graph

    module: Any = joint_graph
    begin, folder = module.lazy_init, module.UniformValueConstantFolder
    deduce, here = folder._deduce_value, torch.device("cpu")

    def deduced(self: Any, node: Any) -> Any:
        given = node.args, node.kwargs
        node.args, node.kwargs = tree_map_only(torch.device, lambda _: here, given)
        try:
            return deduce(self, node)
        finally:
            node.args, node.kwargs = given

    module.lazy_init = lambda *args, **keywords: begin(here)
    folder._deduce_value = deduced


def _follow_no_constants() -> None:
    """What is made of a small constant is found for real beside the graph: not on a GPU here."""
    from torch.fx.experimental import proxy_tensor

    tracing: Any = proxy_tensor
    tracing.CONSTANT_NUMEL_LIMIT = -1
