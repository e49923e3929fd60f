"""Coverage: whose code the sampled time ran in, told by what is mapped there, never by names alone.

Code is the candidate's own when its memory is a library that the judge itself handed over (device
and inode say so) and nobody has written to it since. Names only excuse: the interpreter and the
run time that every kernel leans on count for nobody, provided they lie in a system directory, which
the candidate cannot write to. All else is library: generated code, and code that has vanished, too.
"""

import os
import re
import site
import sys
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath

from kernelsmith.domain.evaluation import Coverage

ENOUGH = 20
"""Samples in own or library code below which there is nothing to say."""

_RUN_TIME = {
    "libm", "libmvec", "libc", "libpthread", "libdl", "librt", "ld", "libgcc_s", "libstdc++",
    "libc++", "libatomic", "libgomp", "libomp", "libiomp5", "libquadmath",
}  # fmt: skip
"""What a candidate's C++ calls: mathematical functions, memory, threads and their spinning."""
_INTERPRETER = {"python3", "python", "libpython3", "libffi", "_ctypes", "_cffi_backend"}
_GLUE = {"libtorch_python", "libc10", "libtorch_global_deps", "libshm"}
"""Arguments, reference counts, the allocator: every candidate pays for them, none computes."""
_KERNEL = {"[vdso]", "[vsyscall]"}


class Side(StrEnum):
    """To whom an address is counted."""

    OWN = "own"
    LIBRARY = "library"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """One area of a process's memory."""

    start: int
    end: int
    permissions: str
    """As the kernel prints them: ``r-xp``."""
    device: int
    """Like ``st_dev``."""
    inode: int
    """0 where no file lies behind."""
    path: str = ""
    altered: bool = False
    """Whether the process holds pages of its own here instead of the file's."""

    @property
    def is_executable(self) -> bool:
        """Whether instructions may be fetched here."""
        return "x" in self.permissions


_HEAD = re.compile(
    r"(?P<start>[0-9a-f]+)-(?P<end>[0-9a-f]+) (?P<permissions>[rwxsp-]{4}) [0-9a-f]+ "
    r"(?P<major>[0-9a-f]+):(?P<minor>[0-9a-f]+) (?P<inode>\d+)\s*(?P<path>.*)"
)


def read_maps(pid: int) -> list[Mapping]:
    """List the executable memory of a process, in order; to be called while it is frozen."""
    # smaps and not maps: only there does a library whose code was written over show itself.
    return parse_maps(Path(f"/proc/{pid}/smaps").read_text(errors="replace").splitlines())


def parse_maps(lines: Iterable[str]) -> list[Mapping]:
    """Read the kernel's ``smaps`` (or plain ``maps``); areas without code are left out."""
    found: list[Mapping] = []
    head: re.Match[str] | None = None
    altered = False

    def finish() -> None:
        if head is not None and "x" in head["permissions"]:
            found.append(
                Mapping(
                    start=int(head["start"], 16),
                    end=int(head["end"], 16),
                    permissions=head["permissions"],
                    device=os.makedev(int(head["major"], 16), int(head["minor"], 16)),
                    inode=int(head["inode"]),
                    path=head["path"],
                    altered=altered,
                )
            )

    for line in lines:
        if line.startswith("Anonymous:"):
            altered = line.split()[1] != "0"
        elif match := _HEAD.match(line):
            finish()
            head, altered = match, False
    finish()
    return found


def system_prefixes() -> tuple[str, ...]:
    """Name the directories where the interpreter, torch and the system's libraries live."""
    packages = [each for each in sys.path if each.endswith(("site-packages", "dist-packages"))]
    known = ["/usr", "/lib", "/lib64", sys.prefix, sys.base_prefix, *packages]
    known += [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return tuple(sorted({f"{os.path.realpath(each)}/" for each in known} | {"/lib/", "/lib64/"}))


def side_of(mapping: Mapping, own: Collection[tuple[int, int]], prefixes: tuple[str, ...]) -> Side:
    """Say to whom the time in one area is counted."""
    if (mapping.device, mapping.inode) in own:
        honest = "w" not in mapping.permissions and not mapping.altered
        return Side.OWN if honest else Side.LIBRARY
    if mapping.path in _KERNEL:
        return Side.NEUTRAL
    if mapping.inode == 0 or mapping.altered or not mapping.path.startswith(prefixes):
        return Side.LIBRARY
    path = PurePosixPath(mapping.path)
    stem = re.split(r"[-.]", path.name, maxsplit=1)[0]
    if stem in _RUN_TIME | _INTERPRETER | _GLUE or path.parent.name == "lib-dynload":
        return Side.NEUTRAL
    return Side.LIBRARY


def coverage(
    addresses: Iterable[int],
    maps: Sequence[Mapping],
    own: Collection[tuple[int, int]],
    *,
    prefixes: tuple[str, ...] | None = None,
    enough: int = ENOUGH,
) -> Coverage | None:
    """Count addresses by side; none when too few say anything.

    Args:
        addresses: What a sampler returned.
        maps: The process's memory, read while it was frozen after the sampled batch.
        own: Device and inode of every library the judge built for this candidate.
        prefixes: Directories the candidate cannot write to; the judge's own where absent.
        enough: Fewer relevant samples than this say nothing.
    """
    trusted = system_prefixes() if prefixes is None else prefixes
    ordered = sorted((each for each in maps if each.is_executable), key=lambda each: each.start)
    starts = [each.start for each in ordered]
    sides = [side_of(each, own, trusted) for each in ordered]
    counts = dict.fromkeys(Side, 0)
    for address in addresses:
        at = bisect_right(starts, address) - 1
        inside = at >= 0 and address < ordered[at].end
        counts[sides[at] if inside else Side.LIBRARY] += 1
    total = counts[Side.OWN] + counts[Side.LIBRARY]
    if total < enough:
        return None
    share = counts[Side.OWN] / total
    return Coverage(own=share, library=1 - share, samples=total)


def library_us(found: Coverage, *, frequency: float, launches: int) -> float:
    """Return the CPU time per launch that was spent in library code, in microseconds."""
    return found.library * found.samples / frequency * 1e6 / launches
