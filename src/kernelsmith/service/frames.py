"""JSON between the server and a worker process: a length, then the text."""

import asyncio
import json
import socket
import struct

from kernelsmith.domain.codec import Json

_HEAD = struct.Struct("!I")
_MOST = 64 << 20
"""No order or report is nearly as large; more means that the other side has gone mad."""


class Broken(ConnectionError):
    """The other side said something that is no frame."""


def packed(value: Json) -> bytes:
    """A value as a frame."""
    body = json.dumps(value).encode()
    return _HEAD.pack(len(body)) + body


async def read(reader: asyncio.StreamReader) -> Json:
    """Read one frame; the server's side.

    Raises:
        EOFError: There are no more.
        ConnectionError: The other side is gone, or talks nonsense.
    """
    (size,) = _HEAD.unpack(await reader.readexactly(_HEAD.size))
    return _value(await reader.readexactly(_checked(size)))


def receive(sock: socket.socket) -> Json:
    """Read one frame; the worker's side.

    Raises:
        EOFError: There are no more.
        ConnectionError: The other side is gone, or talks nonsense.
    """
    (size,) = _HEAD.unpack(_exactly(sock, _HEAD.size))
    return _value(_exactly(sock, _checked(size)))


def _exactly(sock: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = sock.recv(min(1 << 20, size - len(parts)))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def _checked(size: int) -> int:
    if size > _MOST:
        raise Broken(f"a frame of {size} bytes")
    return size


def _value(body: bytes) -> Json:
    try:
        value: Json = json.loads(body)
    except ValueError as error:
        raise Broken("a frame that is no JSON") from error
    return value
