"""What the sandboxed children of these tests run."""

import socket
import sys
import traceback

from kernelsmith.evaluate.sandbox import channel

EXPECTED = (OSError, MemoryError, RuntimeError, ImportError, ValueError, LookupError)


def interpret(control: socket.socket, fds: list[int]) -> None:
    """Run each piece of Python that the test sends, and answer with what it left in ``value``."""
    while True:
        message, passed = channel.receive(control)
        scope: dict[str, object] = {"control": control, "fds": fds, "passed": passed}
        try:
            exec(str(message["code"]), scope)
        except EXPECTED as error:
            traceback.print_exc(file=sys.stderr)
            channel.send(control, {"error": type(error).__name__, "text": str(error)})
        else:
            channel.send(control, {"value": scope.get("value")})


def fail(control: socket.socket, fds: list[int]) -> None:
    """Be an entry that raises."""
    raise RuntimeError("this entry fails")
