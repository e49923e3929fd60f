"""How a candidate's process gets C++ compiled: it asks, the judge builds elsewhere."""

import importlib.machinery
import importlib.util
import socket
import sys
from collections.abc import Sequence
from types import ModuleType

from kernelsmith import kernels
from kernelsmith.evaluate.sandbox.channel import receive, send


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
        functions: Sequence[str] | dict[str, str] | None = None,
        extra_cflags: Sequence[str] | None = None,
        **_: object,
    ) -> ModuleType:
        """Do what ``torch.utils.cpp_extension.load_inline`` does, built by the judge."""
        if cuda_sources:
            raise BuildRefused("this backend builds C++; cuda_sources needs the cuda backend")
        sources = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
        request = kernels.extension_request(
            name, sources, functions=functions or {}, flags=tuple(extra_cflags or ())
        )
        path = self.shared_object(request)
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return module


def install(control: socket.socket, source: str) -> None:
    """Route ``kernels.cpp`` and, where the source mentions it, ``load_inline`` to the judge."""
    compiler = RemoteCompiler(control)
    kernels.compile_with(compiler.shared_object)
    if "cpp_extension" in source:
        import torch.utils.cpp_extension as extension  # slow to import; rarely needed

        extension.load_inline = compiler.load_inline  # type: ignore[assignment]
        sys.modules["torch.utils.cpp_extension"] = extension
