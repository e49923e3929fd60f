"""Who comes in: tokens, hosts, rates, and how large a body may be."""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest

from kernelsmith.errors import SmithError
from kernelsmith.service.limits import Limits, Pace, TooMuch
from kernelsmith.service.tokens import LOCAL, Tokens


class Refused(SmithError):
    """A request that is not even looked at; ``status`` and ``code`` say why."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Door:
    """Lets clients in, and remembers how much each of them asks for."""

    def __init__(self, tokens: Tokens | None, limits: Limits, clock: Callable[[], float]) -> None:
        """Take the tokens; without any, only requests to this very machine are let in."""
        self._tokens, self._limits = tokens, limits
        self._pace = Pace(limits.rate, 10 * limits.rate, clock)
        self._waiting: Counter[str] = Counter()

    async def admit(self, http: HttpRequest) -> str:
        """Say who asks.

        Raises:
            Refused: Nobody we know.
            TooMuch: Somebody who asks too often.
        """
        client = self._client(http)
        self._pace.take(client)
        return client

    def _client(self, http: HttpRequest) -> str:
        if self._tokens is None:
            # A page in a browser can be made to send here under a name of its own.
            if not is_loopback(http.url.hostname or ""):
                raise Refused(403, "host", "without tokens only this machine may ask")
            return LOCAL
        scheme, _, token = http.headers.get("authorization", "").partition(" ")
        client = self._tokens.client(token.strip())
        if scheme.lower() != "bearer" or client is None:
            raise Refused(401, "token", "a token is needed: Authorization: Bearer TOKEN")
        return client

    @contextmanager
    def waiting(self, client: str) -> Iterator[None]:
        """Count a long poll or a stream.

        Raises:
            TooMuch: The client holds enough of them.
        """
        if self._waiting[client] >= self._limits.waiting_each:
            raise TooMuch(f"{self._limits.waiting_each} requests of yours are waiting already")
        self._waiting[client] += 1
        try:
            yield
        finally:
            self._waiting[client] -= 1

    async def body(self, http: HttpRequest) -> bytes:
        """Read a JSON body.

        Raises:
            Refused: It is too large, too slow, or something else.
        """
        kind = http.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refused(415, "content_type", "the body is application/json")
        most = self._limits.body_bytes
        said = http.headers.get("content-length", "")
        if said.isdecimal() and int(said) > most:
            raise Refused(413, "too_large", f"the body may hold {most} bytes")
        found = bytearray()
        try:
            async with asyncio.timeout(self._limits.read_s):
                async for part in http.stream():
                    found += part
                    if len(found) > most:
                        raise Refused(413, "too_large", f"the body may hold {most} bytes")
        except TimeoutError as error:
            raise Refused(408, "too_slow", "the body took too long") from error
        except ClientDisconnect as error:
            raise Refused(400, "gone", "the client went away") from error
        return bytes(found)


def is_loopback(host: str) -> bool:
    """Whether only this machine is reached by this name."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
