"""A task's own CUDA kernel with another schedule: for CUDA as it is, for MACA translated."""

import re
from dataclasses import dataclass
from functools import cached_property

from kernelsmith.domain.task import Task, cuda_in
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.maca.translation import to_maca
from kernelsmith.propose.rules.space import Parameter, Parameters, Space

BACKENDS = ("cuda", "maca", "maca-emulated")
_CONFIG = re.compile(r"(<<<[^;]*?,\s*)(\d+)(\s*[,>])")
_BOUNDS = re.compile(r"(__launch_bounds__\s*\(\s*)(\d+)(\s*\))")
_THREADS = re.compile(r"(\bconst int threads = )(\d+)(;)")
_CEILING = re.compile(r"(\+\s*)(\d+)(\s*\)\s*/\s*)(\d+)\b")
_LOOP = re.compile(
    r"^([ \t]*)(for \((?:int|int64_t) i = [^;\n]*threadIdx\.x; i < \w+; i \+= \w[\w.]*\))",
    re.MULTILINE,
)
_CAP = re.compile(r"\b65536(u?)\b")


def cuda_of(task: Task) -> str | None:
    """The verified CUDA candidate that a task brings along as its constant ``CUDA``."""
    return cuda_in(task.source)


@dataclass(frozen=True)
class PortFamily:
    """One CUDA candidate, for one backend."""

    backend: str
    cuda: str

    @cached_property
    def space(self) -> Space:
        """Threads of a block, how far loops are unrolled, how many blocks there are at most."""
        found = [int(size) for _, size, _ in _BOUNDS.findall(self.cuda)]
        found += [int(size) for _, size, _ in _CONFIG.findall(self.cuda)]
        found += [int(size) for _, size, _ in _THREADS.findall(self.cuda)]
        usual = str(max(found, default=256))
        made = [
            Parameter(
                name="threads",
                choices=("64", "128", "256", "512", "1024"),
                default=usual if usual in ("64", "128", "256", "512", "1024") else "256",
                why="threads of a block",
            )
        ]
        if _LOOP.search(self.cuda):
            made.append(
                Parameter(
                    name="unroll",
                    choices=("1", "2", "4", "8"),
                    default="1",
                    why="loads in flight hide latency",
                )
            )
        if _CAP.search(self.cuda):
            made.append(
                Parameter(
                    name="blocks",
                    choices=("1024", "4096", "16384", "65536"),
                    default="65536",
                    why="blocks at most; each takes several turns",
                )
            )
        seeds = ((), (("threads", "512"),), (("threads", "128"), ("unroll", "4")))
        known = {each.name for each in made}
        kept = tuple(tuple(pair for pair in seed if pair[0] in known) for seed in seeds)
        name = "port" if self.backend == "cuda" else "port_maca"
        return Space(template=name, parameters=tuple(made), seeds=tuple(dict.fromkeys(kept)))

    def source(self, chosen: Parameters) -> str:
        """The candidate of that schedule.

        Raises:
            NotRecognised: It cannot be translated.
        """
        text = _scheduled(self.cuda, chosen, self.space)
        if self.backend != "cuda":
            text = to_maca(text)
        return f"{self.space.header(chosen)}\n{text}"

    def words(self, chosen: Parameters) -> str:
        """What this choice tries."""
        verb = "the task's CUDA kernel" if self.backend == "cuda" else "its CUDA kernel in MACA"
        return f"{verb} with {self.space.differing(chosen) or 'its own schedule'}"


def ported(task: Task, backend: str) -> tuple[PortFamily, ...]:
    """The family of a task that brings a CUDA kernel along.

    Raises:
        NotRecognised: It brings none, or one that cannot be translated.
    """
    cuda = cuda_of(task)
    if cuda is None:
        raise NotRecognised("the task brings no CUDA kernel along (a constant CUDA)")
    family = PortFamily(backend, cuda)
    family.source(family.space.defaults)
    return (family,)


def _scheduled(text: str, chosen: Parameters, space: Space) -> str:
    threads = int(chosen["threads"])
    if str(threads) != space.named("threads").default:
        text = _CONFIG.sub(rf"\g<1>{threads}\3", text)
        text = _BOUNDS.sub(rf"\g<1>{threads}\3", text)
        text = _THREADS.sub(rf"\g<1>{threads}\3", text)
        text = _CEILING.sub(lambda m: _ceiling(m, threads), text)
    if chosen.get("unroll", "1") != "1":
        text = _LOOP.sub(rf"\1#pragma unroll {chosen['unroll']}\n\1\2", text)
    if "blocks" in chosen:
        text = _CAP.sub(rf"{chosen['blocks']}\1", text)
    return text


def _ceiling(match: re.Match[str], threads: int) -> str:
    """``(n + 255) / 256`` counts blocks; ``(n + 31) / 32`` counts waves and stays."""
    added, size = int(match[2]), int(match[4])
    if added != size - 1 or size < 64:
        return match.group()
    return f"{match[1]}{threads - 1}{match[3]}{threads}"
