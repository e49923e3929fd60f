"""All ways of writing candidates for one task, in the order of what they are expected to gain."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path

from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.chip import chip_of
from kernelsmith.propose.rules.compiled_families import (
    DECOY,
    OPTIONS,
    Reseeded,
    expected_gain,
    from_compiler,
)
from kernelsmith.propose.rules.compiler.capture import Capture
from kernelsmith.propose.rules.compiler.capture import Device as Kind
from kernelsmith.propose.rules.compiler.compiled import on_gpu
from kernelsmith.propose.rules.compiler.cpp_family import on_cpu
from kernelsmith.propose.rules.compiler.facts import facts_of
from kernelsmith.propose.rules.compiler.shelf import Shelf
from kernelsmith.propose.rules.exactness import Exactness
from kernelsmith.propose.rules.family import Family, owned
from kernelsmith.propose.rules.graph import UNFORESEEN, NotRecognised
from kernelsmith.propose.rules.kinds import kinds_for
from kernelsmith.propose.rules.maca import family as ports
from kernelsmith.propose.rules.products.standalone import ProductFamily, product_family
from kernelsmith.propose.rules.rewrite.cost import CPU, peaks_of
from kernelsmith.propose.rules.rewrite.forms import forms_of
from kernelsmith.propose.rules.space import Space
from kernelsmith.propose.rules.templates import Template, template_for

NOTHING_DOUBTED = Exactness()
_LONGEST_WALK = 4096
_LATE = 3
"""Turns after which a family begins that is late."""
_MUCH = 1.2
"""Gain that the cost model must expect of algebra before it goes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One choice of one family."""

    family: Family
    chosen: dict[str, str]

    @property
    def name(self) -> str:
        """Of its family."""
        return self.family.space.template


@dataclass(frozen=True, slots=True, kw_only=True)
class Families:
    """The families of one task, and why others are not among them."""

    members: tuple[Family, ...] = ()
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [each.space.template for each in self.members]
        if len(set(names)) != len(names):
            raise ValueError(f"families have names of their own; got {names}")

    def owner(self, source: str) -> Variant | None:
        """Who wrote a source, and with which parameters; none where someone else did."""
        for family in self.members:
            try:
                chosen = owned(family, source)
            except NotRecognised:
                continue
            if chosen is not None:
                return Variant(family=family, chosen=chosen)
        return None

    @property
    def spaces(self) -> dict[str, Space]:
        """By family."""
        return {each.space.template: each.space for each in self.members}

    def named(self, name: str) -> Family:
        """The family of that name."""
        return next(each for each in self.members if each.space.template == name)

    def starts(self, exactness: Exactness = NOTHING_DOUBTED) -> Iterator[Variant]:
        """The first variant of every family, then the second ones, and so on; late ones later."""
        begin = ([*_waits(family), *exactness.starts(family.space)] for family in self.members)
        for rank in zip_longest(*begin):
            for family, chosen in zip(self.members, rank, strict=True):
                if chosen is not None:
                    yield Variant(family=family, chosen=chosen)

    def walk(self, seed: int) -> Iterator[Variant]:
        """Through all spaces, the families in turn; comes after ``starts``."""
        spaces = [each.space for each in self.members]
        for step in range(min(_LONGEST_WALK, max((each.size for each in spaces), default=0))):
            for family in self.members:
                number = len(family.space.starts) + step
                if step < family.space.size:
                    yield Variant(family=family, chosen=family.space.seed(number, seed))


def _waits(family: Family) -> list[None]:
    """The turns that it lets others have."""
    return [None] * (_LATE if isinstance(family, Reseeded) and family.is_late else 0)


FindFamilies = Callable[[Task, str], Families]
logger = logging.getLogger(__name__)


def templates_only(task: Task, backend: str, device: Device | None = None) -> Families:
    """What is read from the source alone: no process is started, and torch is not loaded."""
    if backend in ports.BACKENDS:
        return _collected([lambda: ports.ported(task, backend)])
    chip = chip_of(device)
    found = [lambda: (template_for(task, backend, chip),), lambda: kinds_for(task, backend)]
    if _is_for_gpu(backend, device):
        found.append(lambda: (product_family(task, chip),))
    return _products_first(_collected(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What came of asking the compiler about a task; can be kept, and sent to other processes."""

    families: Families
    gain: float = 1.0
    """How much faster the cheapest form should be than the written one, by the cost model."""

    def joined(self, task: Task, backend: str, device: Device | None = None) -> Families:
        """These families and those that are read from the source, best expectation first."""
        written = _best_of(templates_only(task, backend, device))
        # Where the compiler has nothing but a convolution, it copies both ways around the product.
        own = any(_multiplies(each) and not _waits(each) for each in self.families.members)
        if own:
            # What fuses a little behind a library's product is called a decoy, and rightly so; and
            # what the compiler's family multiplies by itself, it multiplies by the same kernels,
            # unless it does not see that only a triangle is wanted.
            written = _kept(
                written, lambda e: _skips(e) or not (_follows_library(e) or _multiplies(e))
            )
        # Algebra that leaves out work goes before another schedule for the same work, and the
        # library's convolutions go before ours: on an H200, 1.73 ms against 2.04.
        first = own or self.gain >= _MUCH or any(_is_packed(each) for each in written.members)
        parts = [self.families, written] if first else [written, self.families]
        return Families(
            members=tuple(each for part in parts for each in part.members),
            reasons=tuple(dict.fromkeys(each for part in parts for each in part.reasons)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finder:
    """Finds everything that the rules know about a task. Takes seconds: the compiler is asked.

    It is asked here and now, not later: whoever times afterwards has the device alone.
    """

    options: tuple[str, ...] = tuple(each.name for each in OPTIONS)
    """What the compiler is asked for on a GPU, beside ``default``."""
    shelf: Shelf | None = None
    """Where its answers are kept; none: it is asked every time."""
    lock: Path | None = None
    """The file that says who has the GPU."""
    device: Device | None = None
    """What the candidates will run on; none: a GPU is taken for an H200. Torch's compiler writes
    for one that is not here, too, if its data sheet says enough; it tries nothing then."""

    def __call__(self, task: Task, backend: str) -> Families:
        """The task's families, by what they are expected to gain."""
        if backend in ports.BACKENDS:
            return templates_only(task, backend)
        return self.begun(task, backend).joined(task, backend, self.device)

    def begun(self, task: Task, backend: str) -> Begun:
        """Ask the compiler, in all forms of the task."""
        chip = chip_of(self.device)
        forms = forms_of(task, peaks=CPU if backend == "cpu" else peaks_of(chip))
        options = [each for each in OPTIONS if each.name in ("default", *self.options)]
        ask = self._asker(backend)
        found = _collected(
            [lambda: from_compiler(task, backend, forms, options=options, capture=ask, chip=chip)]
        )
        return Begun(families=found, gain=expected_gain(forms))

    def _asker(self, backend: str) -> Capture:
        """How the compiler is asked: by the shelf where there is one."""
        # Whoever has a GPU's lock has the GPU: nothing imagined may be taken for its own.
        gpu = facts_of(self.device) if self.lock is None else None
        ask: Capture = on_cpu if backend == "cpu" else partial(on_gpu, lock=self.lock, gpu=gpu)
        shelf = self.shelf
        if shelf is not None and not shelf.device and gpu is not None:
            shelf = replace(shelf, device=f"imagined: {gpu}")
        if shelf is None:
            return ask
        kind: Kind = "cpu" if backend == "cpu" else "cuda"
        return lambda task, requests: shelf.asked(task, requests, partial(ask, task), kind=kind)


families_for = Finder()
"""Everything, with all that the compiler can be asked for."""


def at_hand(task: Task, backend: str, *, find: Finder = families_for) -> Families:
    """For short runs: what is read from the source alone; the compiler only where that is nothing.

    Asking it takes half a minute, as long as judging a few candidates.
    """
    found = templates_only(task, backend, find.device)
    if backend in ports.BACKENDS:
        return found
    # On a GPU, what is fused behind a library's product hides float32's slowest part.
    hidden = _is_for_gpu(backend, find.device) and all(map(_follows_library, found.members))
    return find(task, backend) if hidden or not found.members else found


def _multiplies(family: Family) -> bool:
    """Whether it writes products of its own."""
    return any(each.name == "product" for each in family.space.parameters)


def _skips(family: Family) -> bool:
    """Whether it leaves out tiles of a product of which a triangle is kept."""
    return isinstance(family, ProductFamily) and family.skips


def _is_for_gpu(backend: str, device: Device | None) -> bool:
    """Not so in Triton's interpreter, which has no tensor cores to go through."""
    return backend == "triton" and (device is None or device.kind == "cuda")


def _follows_library(family: Family) -> bool:
    """Whether a library's product comes first."""
    return isinstance(family, Template) and family.follows_library


def _kept(families: Families, wanted: Callable[[Family], bool]) -> Families:
    """Without those that are not wanted; their reasons stay."""
    return Families(
        members=tuple(each for each in families.members if wanted(each)), reasons=families.reasons
    )


def _products_first(written: Families) -> Families:
    """Products of our own before all else, and in place of what would be a decoy.

    Where the library takes nearly all of the time, so is whatever follows its product.
    """
    own = [each for each in written.members if isinstance(each, ProductFamily)]
    others = [each for each in written.members if not isinstance(each, ProductFamily)]
    if any(each.library_share > DECOY for each in own):
        others = [each for each in others if not _follows_library(each)]
    return Families(members=(*own, *others), reasons=written.reasons)


def _is_packed(family: Family) -> bool:
    """Whether it is a convolution over a copy."""
    return family.space.template == "packed"


def _best_of(written: Families) -> Families:
    """Without products of convolutions read in place where there are those over a copy."""
    if not any(_is_packed(each) for each in written.members):
        return written
    return _kept(written, lambda each: not _multiplies_in_place(each))


def _multiplies_in_place(family: Family) -> bool:
    """Whether it reads tensors as they lie, and does not only add up a few channels' neighbours."""
    names = {each.name for each in family.space.parameters}
    return family.space.template == "neighbours" and "depth" in names


def _collected(sources: list[Callable[[], tuple[Family, ...]]]) -> Families:
    members: list[Family] = []
    reasons: list[str] = []
    for find in sources:
        try:
            members += find()
        except NotRecognised as error:
            reasons.append(str(error))
        except UNFORESEEN as error:
            logger.warning("a rule failed", exc_info=error)
            reasons.append(failed(error))
    return Families(members=tuple(members), reasons=tuple(dict.fromkeys(reasons)))


def failed(error: Exception) -> str:
    """A reason for people; the log has the rest."""
    return f"a rule failed ({type(error).__name__}: {' '.join(str(error).split())[:120]})"
