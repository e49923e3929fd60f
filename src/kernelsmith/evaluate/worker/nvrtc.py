"""The compiler's side of the boundary for CUDA kernels: NVRTC, in a sandbox of its own."""

import ctypes
import socket
from pathlib import Path

from kernelsmith.evaluate.sandbox.channel import receive, send
from kernelsmith.kernels import nvrtc


def serve(control: socket.socket, fds: list[int]) -> None:
    """Compile sources until the judge hangs up."""
    del fds
    kept: list[object] = []
    while True:
        message, _ = receive(control)
        flags, include = message["flags"], message["include"]
        assert isinstance(flags, list)
        assert isinstance(include, list)
        try:
            made = nvrtc.compiled(
                nvrtc.load(Path(str(message["nvrtc"]))), str(message["source"]),
                arch=str(message["arch"]), flags=flags, include=[Path(each) for each in include],
            )  # fmt: skip
        except nvrtc.NvrtcError as error:
            send(control, {"status": 1, "stderr": str(error)[-20000:], "outputs": {}})
            continue
        outputs = {}
        for name, content in (("built", made.cubin), ("kernel.ptx", made.ptx.encode())):
            buffer = ctypes.create_string_buffer(content, max(len(content), 1))
            kept.append(buffer)
            outputs[name] = [ctypes.addressof(buffer), len(content)]
        send(control, {"status": 0, "stderr": made.log[-20000:], "outputs": outputs})
