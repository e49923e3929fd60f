"""Files of JSON lines: appended by one writer so that they last, read whatever happened to them."""

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Never, Self, TypeVar

from kernelsmith.domain.codec import decode
from kernelsmith.errors import UsageError

T = TypeVar("T")
_LARGEST = 1e100
"""Sums and squares of what is smaller stay finite, in every table."""
_DIGITS = 100
_REASON = 300


def lines_in(path: Path) -> Iterable[str]:
    """Every line of a file; bytes that are no text spoil their own line only.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    return content.decode("utf-8", "replace").split("\n")


def folder_at(path: Path) -> Path:
    """Make a folder, and those above it, where there is none yet.

    Raises:
        UsageError: There is a file in its place, or nothing may be written there.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    return path


def body_of(line: str, schema: str) -> dict[str, object]:
    """The object on a line, without its schema; every number in it is finite.

    Raises:
        ValueError: It is no JSON, no object, or of another schema.
    """
    try:
        body = json.loads(
            line, parse_constant=_no_number, parse_float=_number, parse_int=_whole_number
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    said = body.pop("schema", None) if isinstance(body, dict) else None
    if said != schema:
        raise ValueError(_short(f"its schema is {said!r}, not {schema!r}"))
    assert isinstance(body, dict)
    return body


def value_of(body: dict[str, object], kind: type[T]) -> T:
    """What an object describes.

    Raises:
        ValueError: It describes no value of this kind.
    """
    try:
        value = decode(body, kind)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except (TypeError, ValueError) as error:
        raise ValueError(_short(str(error))) from error
    assert isinstance(value, kind)
    return value


class Lines:
    """The one writer of a file of lines; the file is locked until it is closed."""

    def __init__(self, path: Path) -> None:
        """Open or begin a file.

        Raises:
            UsageError: It cannot be written, or another process writes it.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise UsageError(f"another bench writes {path}; wait for it, or end it") from error
        size = os.fstat(self._fd).st_size
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            self._write(b"\n")  # a torn line stays, is reported, and spoils nothing after it

    def append_lines(self, *lines: str) -> None:
        """Write lines, given without their ends; they last when this returns."""
        self._write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        """Let others write."""
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, content: bytes) -> None:
        try:
            while content:
                content = content[os.write(self._fd, content) :]
            os.fsync(self._fd)
        except OSError as error:
            raise UsageError(f"cannot write {self.path}: {error.strerror}") from error


def _number(text: str) -> float:
    value = float(text)
    return value if abs(value) < _LARGEST else _no_number(text)


def _whole_number(text: str) -> int:
    return int(text) if len(text) <= _DIGITS else _no_number(text)


def _no_number(text: str) -> Never:
    raise ValueError(f"no measurement is {_short(text)}")


def _short(text: str) -> str:
    return text if len(text) <= _REASON else f"{text[:_REASON]} ..."
