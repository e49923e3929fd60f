"""What runs in the sandbox beside rehearsals: launches on tensors that have memory."""

import os
import socket
from types import SimpleNamespace

import torch
import triton.compiler.compiler
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from kernelsmith.evaluate.sandbox.channel import receive, send
from kernelsmith.evaluate.worker.cuda import cached
from kernelsmith.evaluate.worker.program import execute, explain


def launch(control: socket.socket, fds: list[int]) -> None:
    """Begin with files, launch as far as that goes without a device, say what was compiled anew."""
    message, _ = receive(control)
    os.environ["TRITON_CACHE_DIR"] = str(cached.folder())
    cached.take(message["files"])
    anew = []
    build, run = triton.compiler.compiler.ASTSource.make_ir, JITFunction.run

    def noted(self, *given, **others):
        anew.append(self.name)
        return build(self, *given, **others)

    triton.compiler.compiler.ASTSource.make_ir = noted
    JITFunction.run = lambda self, *given, warmup, **more: run(self, *given, warmup=True, **more)
    driver.set_active(SimpleNamespace(
        get_current_device=lambda: 0, get_current_stream=lambda _: 0,
        get_current_target=lambda: GPUTarget("cuda", 90, 32),
    ))  # fmt: skip
    try:
        _forward(message)
    except BaseException as error:
        anew.append(explain(error))
    send(control, {"anew": anew})


def _forward(message: dict) -> None:
    task: dict = {}
    exec(message["task"], task)
    new = execute(message["source"]).ModelNew
    for each in message["workloads"]:
        model = new(*task["get_init_inputs"](**each["init"]))
        values = task["get_inputs"](**each["arguments"])
        if each["dtype"]:
            dtype = getattr(torch, each["dtype"])
            model = model.to(dtype)
            values = [value.to(dtype) if value.is_floating_point() else value for value in values]
        with torch.no_grad():
            model(*values)
