"""Who may ask: names and tokens from a file, compared in constant time."""

import hashlib
import hmac
import re
import stat
from pathlib import Path

from kernelsmith.errors import UsageError

LOCAL = "local"
"""Whoever asks where no tokens are needed."""
_LINE = re.compile(r"([\w.-]{1,64}):(\S+)")
_LEAST = 16
"""Characters; ``secrets.token_urlsafe()`` gives 43."""


class Tokens:
    """Knows tokens by their hashes; asking takes as long whoever asks."""

    def __init__(self, named: dict[str, str]) -> None:
        """Take tokens by client name."""
        self._hashes = [(name, _hash(token)) for name, token in named.items()]

    def client(self, token: str) -> str | None:
        """Whose token it is; none where it is nobody's."""
        asked, found = _hash(token), None
        for name, known in self._hashes:
            if hmac.compare_digest(asked, known):
                found = name
        return found


def read_tokens(path: Path) -> Tokens:
    """Read lines of ``name:token``; empty ones and those that begin with ``#`` are skipped.

    Raises:
        UsageError: It cannot be read, everybody can read it, or a line is of another form.
    """
    try:
        mode = path.stat().st_mode
        text = path.read_text()
    except OSError as error:
        raise UsageError(f"cannot read the token file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the token file {path} is not text: {error.reason}") from error
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        raise UsageError(f"everybody on this machine can read {path}; do: chmod 600 {path}")
    named: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        # The line itself is not quoted: it may hold a secret.
        if match is None:
            raise UsageError(f"{path}, line {number}: not of the form name:token")
        name, token = match.groups()
        if len(token) < _LEAST:
            raise UsageError(f"{path}, line {number}: a token has at least {_LEAST} characters")
        if name in named:
            raise UsageError(f"{path}, line {number}: {name!r} has a token already")
        named[name] = token
    if not named:
        raise UsageError(f"{path} holds no token; a line is name:token")
    return Tokens(named)


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()
