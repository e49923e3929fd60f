"""Where code comes from: folders, git, wheels, source archives, installed packages. Read only."""

import os
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath

from kernelsmith.corpus.harvest import licence
from kernelsmith.errors import UsageError

_SKIPPED = {
    ".git",
    "node_modules",
    "__pycache__",
    ".venv",
    "venv",
    "build",
    ".tox",
    "site-packages",
}
_CLONE_S = 600
_MOST_FILES = 200_000


@dataclass(frozen=True, slots=True)
class File:
    """One file as it lies in its source."""

    path: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One package or repository: its name, where it is from, and its licence as a whole."""

    name: str
    version: str
    origin: str
    licence: str
    path: Path
    kind: str

    def files(self) -> Iterator[File]:
        """Every Python file."""
        if self.kind == "zip":
            yield from _zipped(self.path)
        elif self.kind == "tar":
            yield from _tarred(self.path)
        elif self.kind == "installed":
            yield from _installed(self.name)
        else:
            yield from _folder(self.path)


def open_source(spec: str, clones: Path) -> Source:
    """Find a source by what the user wrote.

    A path to a folder, wheel, zip or tar archive; a git URL (``https://...``, ``git@...``,
    ``git+...``); ``installed:NAME``.

    Raises:
        UsageError: There is no such thing.
    """
    if spec.startswith("installed:"):
        return _of_installed(spec.partition(":")[2])
    if re.match(r"(git\+|https?://|ssh://|git@|git://|file://)", spec):
        return _cloned(spec.removeprefix("git+"), clones)
    path = Path(spec).expanduser()
    if not path.exists():
        raise UsageError(f"no source {spec!r}: neither a path, a git URL nor installed:NAME")
    if path.is_dir():
        return _of_folder(path, path.resolve().name, str(path))
    if zipfile.is_zipfile(path):
        return _of_archive(path, "zip")
    if tarfile.is_tarfile(path):
        return _of_archive(path, "tar")
    raise UsageError(f"{spec!r} is neither a folder nor a wheel, zip or tar archive")


def _of_folder(path: Path, name: str, origin: str) -> Source:
    version = _commit(path)
    texts = sorted(
        p for p in path.iterdir() if re.match(r"(licen[cs]e|copying)", p.name, re.IGNORECASE)
    )
    found = licence.UNKNOWN
    for text in texts:
        if text.is_file():
            found = licence.named(text.read_text(errors="replace")[:3000])
            break
    info = path / "PKG-INFO"
    if found == licence.UNKNOWN and info.is_file():
        found = licence.of_metadata(info.read_text(errors="replace"))
    return Source(
        name=_word(name), version=version, origin=origin, licence=found, path=path, kind="folder"
    )


def _of_archive(path: Path, kind: str) -> Source:
    name, version = _named(path.name)
    texts = _texts(path, kind)
    found = licence.UNKNOWN
    for base, text in texts.items():
        if base in ("METADATA", "PKG-INFO"):
            found = licence.of_metadata(text)
            break
    if found == licence.UNKNOWN:
        for base, text in texts.items():
            if base not in ("METADATA", "PKG-INFO"):
                found = licence.named(text[:3000])
    return Source(
        name=_word(name), version=version, origin=path.name, licence=found, path=path, kind=kind
    )


def _of_installed(name: str) -> Source:
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError as error:
        raise UsageError(f"no package {name!r} is installed here") from error
    return Source(
        name=_word(name), version=found.version, origin=f"installed:{name}",
        licence=licence.of_metadata(str(found.metadata)), path=Path(), kind="installed",
    )  # fmt: skip


def _cloned(url: str, clones: Path) -> Source:
    name = re.sub(r"\.git$", "", url.rstrip("/")).rpartition("/")[2] or "repository"
    target = clones / _word(name)
    if not target.exists():
        clones.mkdir(parents=True, exist_ok=True)
        # No hooks, no helpers, no prompts: a clone only copies.
        command = ["git", "-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null",
                   "-c", "core.fsmonitor=false", "clone", "--quiet", "--depth", "1",
                   "--no-recurse-submodules", "--", url, str(target)]  # fmt: skip
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_CLONE_S, check=False,
                env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UsageError(f"cannot clone {url!r}: {error}") from error
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["git failed"])[-1]
            raise UsageError(f"cannot clone {url!r}: {said}")
    return _of_folder(target, name, url)


def _commit(path: Path) -> str:
    """The commit of a checkout, from its files alone."""
    head = path / ".git" / "HEAD"
    if not head.is_file():
        return ""
    text = head.read_text(errors="replace").strip()
    if not text.startswith("ref: "):
        return text[:40]
    ref = text.removeprefix("ref: ")
    loose = path / ".git" / ref
    if loose.is_file() and ".." not in ref:
        return loose.read_text(errors="replace").strip()[:40]
    packed = path / ".git" / "packed-refs"
    if packed.is_file():
        for line in packed.read_text(errors="replace").splitlines():
            if line.endswith(f" {ref}"):
                return line[:40]
    return ""


def _folder(root: Path) -> Iterator[File]:
    count = 0
    for folder, inner, files in os.walk(root):
        inner[:] = sorted(d for d in inner if d not in _SKIPPED and not d.startswith("."))
        for name in sorted(files):
            path = Path(folder) / name
            if name.endswith(".py") and path.is_file() and not path.is_symlink():
                count += 1
                if count > _MOST_FILES:
                    return
                yield File(path.relative_to(root).as_posix(), path.read_bytes())


def _zipped(path: Path) -> Iterator[File]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            inside = _inside(info.filename)
            if inside and inside.endswith(".py") and info.file_size < 1 << 24:
                yield File(inside, archive.read(info))


def _tarred(path: Path) -> Iterator[File]:
    with tarfile.open(path) as archive:
        for member in archive:
            inside = _inside(member.name)
            if not inside or not member.isfile() or not inside.endswith(".py"):
                continue
            # A source archive has one folder around everything.
            short = inside.partition("/")[2] or inside
            opened = archive.extractfile(member)
            if opened is not None and member.size < 1 << 24:
                yield File(short, opened.read())


def _installed(name: str) -> Iterator[File]:
    found = metadata.distribution(name)
    for each in found.files or ():
        inside = _inside(str(each))
        path = Path(str(found.locate_file(each)))
        if inside and inside.endswith(".py") and path.is_file():
            yield File(inside, path.read_bytes())


def _inside(name: str) -> str:
    """A path that stays where it is put; empty for one that does not."""
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\\" in name or "\0" in name:
        return ""
    return pure.as_posix()


def _texts(path: Path, kind: str) -> dict[str, str]:
    """Metadata and licence texts of an archive, by the last part of their names."""
    pattern = re.compile(r"(METADATA|PKG-INFO|(?i:licen[cs]e|copying)[^/]*)$")
    found: dict[str, str] = {}
    if kind == "zip":
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                base = info.filename.rpartition("/")[2]
                if pattern.match(base) and info.file_size < 1 << 20 and base not in found:
                    found[base] = archive.read(info).decode(errors="replace")
        return found
    with tarfile.open(path) as tar:
        for member in tar:
            base = member.name.rpartition("/")[2]
            if pattern.match(base) and member.isfile() and member.size < 1 << 20:
                opened = tar.extractfile(member)
                if opened is not None and base not in found:
                    found[base] = opened.read().decode(errors="replace")
    return found


def _named(file: str) -> tuple[str, str]:
    stem = re.sub(r"\.(whl|zip|tar|tgz|tar\.\w+)$", "", file)
    match = re.match(r"(.+?)-(\d[^-]*)", stem)
    return (match[1], match[2]) if match else (stem, "")


def _word(name: str) -> str:
    return re.sub(r"[^\w.]+", "_", name).strip("._") or "source"
