"""The compiler's side of the boundary: source in, shared object out, in a sandbox of its own."""

import ctypes
import os
import socket
import subprocess
from pathlib import Path

from kernelsmith.evaluate.sandbox.channel import receive, send


def serve(control: socket.socket, fds: list[int]) -> None:
    """Run compiler commands in the scratch directory until the judge hangs up."""
    del fds
    kept: list[object] = []
    while True:
        message, _ = receive(control)
        files, command = message["files"], message["command"]
        assert isinstance(files, dict)
        assert isinstance(command, list)
        for name, text in files.items():
            Path("/tmp", name).write_text(text)
        done = subprocess.run(
            command,
            capture_output=True,
            cwd="/tmp",
            env={**os.environ, "LC_ALL": "C"},  # messages that every proposer reads alike
            text=True,
            errors="replace",
            check=False,
        )
        reply: dict[str, object] = {
            "status": done.returncode,
            "stderr": done.stderr[-20000:],
            "outputs": {},
        }
        outputs = {}
        wanted = message["outputs"]
        assert isinstance(wanted, list)
        for name in wanted:
            path = Path("/tmp", name)
            if done.returncode == 0 and path.exists():
                content = path.read_bytes()
                buffer = ctypes.create_string_buffer(content, len(content))
                kept.append(buffer)
                outputs[name] = [ctypes.addressof(buffer), len(content)]
                path.unlink()
        reply["outputs"] = outputs
        send(control, reply)
