"""A worker process: takes jobs from its socket, judges them, and says that it is alive meanwhile.

Started as ``python -m kernelsmith.service.worker FD BACKEND BEAT_S [CORE ...]``. When whoever
started it dies in whatever way, the socket closes and it ends at once, with all that it started.
"""

import os
import select
import signal
import socket
import sys
import threading

from kernelsmith.errors import SmithError
from kernelsmith.evaluate.sandbox.syscalls import PR_SET_PDEATHSIG, prctl
from kernelsmith.service import frames
from kernelsmith.service.station import Station, job_from, to_json

ALIVE = b"\x00\x00\x00\x04null"
"""The frame that says nothing but that somebody is there."""
SECRETS = ("KERNELSMITH_TOKEN", "KERNELSMITH_TOKEN_FILE")
"""Variables that no worker gets to see."""


def main() -> None:
    """Serve one server until it hangs up."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # even if we are stopped and cannot see it
    fd, backend, beat_s = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    if cores := {int(each) for each in sys.argv[4:]}:
        os.sched_setaffinity(0, cores)  # and with it everything that is started from here on
    os.set_inheritable(fd, False)  # a program that we judge must not have it
    sock = socket.socket(fileno=fd)
    speaking = threading.Lock()
    threading.Thread(target=_beat, args=(sock, speaking, beat_s), daemon=True).start()
    try:
        station = Station(backend)
        hello = to_json(station.hello())
    except SmithError as error:
        _say(sock, speaking, frames.packed({"trouble": str(error)}))
        return
    _say(sock, speaking, frames.packed({"hello": hello}))
    try:
        while True:
            said = frames.receive(sock)
            assert isinstance(said, dict)
            report = station.judge(job_from(said["job"]))
            answer = frames.packed({"number": said["number"], "report": to_json(report)})
            _say(sock, speaking, answer)
    except (EOFError, ConnectionError):
        station.close()


def _say(sock: socket.socket, speaking: threading.Lock, frame: bytes) -> None:
    with speaking:
        sock.sendall(frame)


def _beat(sock: socket.socket, speaking: threading.Lock, beat_s: float) -> None:
    """Say now and then that we live, and end at once when nobody is there to hear it."""
    poll = select.poll()
    poll.register(sock, select.POLLRDHUP)
    while not poll.poll(beat_s * 1000):
        try:
            _say(sock, speaking, ALIVE)
        except OSError:
            break
    os._exit(0)


if __name__ == "__main__":
    main()
