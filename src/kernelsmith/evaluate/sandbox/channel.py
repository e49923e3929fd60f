"""How both ends talk: four bytes of length, one JSON object, file descriptors beside it."""

import array
import json
import socket
import struct
from collections.abc import Mapping, Sequence

MAX_BYTES = 96 << 20
"""The longest message; a child that sends a longer one has broken the protocol."""
FILES_BYTES = 60 << 20
"""Of files that one message may carry: in base64 they take a third more."""
HEADER = struct.Struct("!I")
_MAX_FDS = 64


class NotAMessage(ValueError):
    """The bytes are not a message of this protocol."""


def encode(message: Mapping[str, object]) -> bytes:
    """Return the message as it travels."""
    payload = json.dumps(message, separators=(",", ":")).encode()
    if len(payload) > MAX_BYTES:
        raise ValueError(f"a message of {len(payload)} bytes; {MAX_BYTES} is the most")
    return HEADER.pack(len(payload)) + payload


def payload_length(header: bytes | bytearray) -> int:
    """Return how many bytes follow the header."""
    length: int = HEADER.unpack(header)[0]
    if length > MAX_BYTES:
        raise NotAMessage(f"announces {length} bytes; {MAX_BYTES} is the most")
    return length


def decode(payload: bytes | bytearray) -> dict[str, object]:
    """Read one JSON object written by someone who may be hostile."""
    try:
        text = payload.decode()
        message = json.loads(text)
        if r"\ud" in text.lower():
            # A lone surrogate would pass here and fail later, where the judge writes its journal.
            json.dumps(message, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise NotAMessage(f"not JSON: {type(error).__name__}: {str(error)[:200]}") from error
    if not isinstance(message, dict):
        raise NotAMessage(f"a JSON {type(message).__name__}, not an object")
    return message


def ancillary(fds: Sequence[int]) -> list[tuple[int, int, bytes]]:
    """Return what makes ``sendmsg`` pass the descriptors along."""
    if not fds:
        return []
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds).tobytes())]


def send(sock: socket.socket, message: Mapping[str, object], fds: Sequence[int] = ()) -> None:
    """Send one message over a blocking socket."""
    data = encode(message)
    sent = sock.sendmsg([data], ancillary(fds))
    sock.sendall(memoryview(data)[sent:])


def receive(sock: socket.socket) -> tuple[dict[str, object], list[int]]:
    """Wait for one message on a blocking socket; the caller owns the descriptors.

    Raises:
        EOFError: The other end is gone.
    """
    fds: list[int] = []
    header = _exactly(sock, HEADER.size, fds)
    return decode(_exactly(sock, payload_length(header), fds)), fds


def _exactly(sock: socket.socket, count: int, fds: list[int]) -> bytes:
    data = bytearray()
    while len(data) < count:
        part, found, _, _ = socket.recv_fds(
            sock, count - len(data), _MAX_FDS, socket.MSG_CMSG_CLOEXEC
        )
        fds.extend(found)
        if not part:
            raise EOFError("the other end of the channel is gone")
        data += part
    return bytes(data)
