"""How a candidate's process gets C++ compiled: it asks, the judge builds elsewhere."""

import ctypes
import importlib.machinery
import importlib.util
import re
import socket
import sys
from collections.abc import Sequence
from types import ModuleType

from kernelsmith import kernels
from kernelsmith.evaluate.sandbox.channel import receive, send
from kernelsmith.kernels import building


class BuildRefused(RuntimeError):
    """The judge's compiler said no; the judge keeps the compiler's words itself."""


class RemoteCompiler:
    """Stands in for the local compiler inside the sandbox, where no process can be started."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._files: list[int] = []

    def shared_object(self, request: kernels.BuildRequest) -> str:
        """Have ``request`` built and return a path that ``dlopen`` takes."""
        send(self._control, {"need": "build", "request": request.to_json()})
        reply, fds = receive(self._control)
        if not reply.get("built"):
            raise BuildRefused(str(reply.get("message", "the build failed")))
        self._files.extend(fds)  # the path is good for as long as the file is open
        return f"/proc/self/fd/{fds[0]}"

    def load_inline(
        self,
        name: str,
        cpp_sources: str | Sequence[str],
        cuda_sources: str | Sequence[str] | None = None,
        functions: str | Sequence[str] | dict[str, str] | None = None,
        extra_cflags: Sequence[str] | None = None,
        extra_cuda_cflags: Sequence[str] | None = None,
        extra_ldflags: Sequence[str] | None = None,
        **_: object,
    ) -> ModuleType:
        """Do what ``torch.utils.cpp_extension.load_inline`` does, built by the judge."""
        request = kernels.extension_request(
            name, _list(cpp_sources), functions=functions or {}, flags=_plain(extra_cflags),
            device_sources=_list(cuda_sources or ()),
            device_flags=(*_plain(extra_cuda_cflags), *_plain(extra_ldflags)),
        )  # fmt: skip
        path = self.shared_object(request)
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        if cuda_sources and building.on_load is not None:
            building.on_load(ctypes.CDLL(path))  # the same library once more: nothing is loaded
        return module


def _list(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _plain(flags: Sequence[str] | None) -> tuple[str, ...]:
    """Flags without those that say for which device to build, or what to report: ours to say."""
    kept, skip = [], False
    for flag in flags or ():
        if (
            flag
            and not skip
            and not re.match(r"-{1,2}(gencode|generate-code|arch|gpu-arch|Xptxas)", flag)
        ):
            kept.append(flag)
        skip = flag in ("-gencode", "-arch", "-Xptxas", "--generate-code") and not skip
    return tuple(kept)


def install(control: socket.socket, source: str) -> None:
    """Route ``kernels.cpp`` and, where the source mentions it, ``load_inline`` to the judge."""
    compiler = RemoteCompiler(control)
    kernels.compile_with(compiler.shared_object)
    if "cpp_extension" in source:
        import torch.utils.cpp_extension as extension  # slow to import; rarely needed

        extension.load_inline = compiler.load_inline  # type: ignore[assignment]
        sys.modules["torch.utils.cpp_extension"] = extension
