"""The one network that a confined process may have: to itself, in a namespace of its own."""

import fcntl
import socket
import struct

_SIOCSIFFLAGS = 0x8914
_IFF_UP, _IFF_RUNNING = 0x01, 0x40


def raise_loopback() -> None:
    """Switch on the loopback of this process's network namespace, where it starts switched off."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", _IFF_UP | _IFF_RUNNING)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)
