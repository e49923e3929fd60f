"""A program behind ``torch.compile`` on a processor, with the compiler's files handed on.

Compiling takes seconds to minutes, and a judgement opens several processes of one source. So the
first one hands out what it compiled, and the next ones begin with it, as kernels on a GPU do.
"""

import base64
import gc
import os
import socket
from pathlib import Path

from kernelsmith.evaluate.sandbox.channel import FILES_BYTES
from kernelsmith.evaluate.worker.program import Message, Program, answer


class CompilingProgram(Program):
    """One loaded source that may start a compiler."""

    def load(self, message: Message, fds: list[int]) -> Message:
        """Put the files of earlier processes where the compiler looks, then run the source."""
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(_cache())
        files = message.get("cache") or {}
        assert isinstance(files, dict)
        for relative, text in files.items():
            path = _cache() / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(base64.b64decode(text))
            path.chmod(0o700)
        return super().load(message, fds)

    def compiled(self, _: Message, __: list[int]) -> Message:
        """Hand out what was compiled so far."""
        found: dict[str, str] = {}
        size = 0
        for path in sorted(_cache().rglob("*")):
            if not path.is_file() or path.suffix in (".lock", ".gch", ".o"):
                continue
            size += path.stat().st_size
            if size > FILES_BYTES:  # every process compiles for itself
                return {"cache": {}}
            name = str(path.relative_to(_cache()))
            found[name] = base64.b64encode(path.read_bytes()).decode()
        return {"cache": found}


def _cache() -> Path:
    return Path(os.environ.get("TMPDIR", "/tmp")) / "inductor"


def serve(control: socket.socket, fds: list[int]) -> None:
    """Answer the judge until it hangs up."""
    del fds
    program = CompilingProgram(control)
    gc.disable()  # a collection in the middle of a sample would be charged to its side
    answer(
        control,
        {
            "load": program.load,
            "weights": program.weights,
            "arrange": program.arrange,
            "run": program.run,
            "release": program.release,
            "modules": program.modules,
            "compiled": program.compiled,
        },
    )
