"""Library products of a call, replaced by kernels of our own with what follows fused in."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelsmith.propose.rules.chip import H200, Chip
from kernelsmith.propose.rules.compiler.call import (
    Alias,
    Allocate,
    Call,
    Drop,
    Kernel,
    Launch,
    Library,
    Named,
    Operand,
    Step,
    Verbatim,
    Viewed,
)
from kernelsmith.propose.rules.compiler.launching import elements
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.products.choose import (
    BYTES,
    expected_us,
    parameters,
    scheduled,
    seeds,
)
from kernelsmith.propose.rules.products.epilogue import Epilogue, Store, read_epilogue
from kernelsmith.propose.rules.products.kept import kept_of
from kernelsmith.propose.rules.products.plan import Operands, write
from kernelsmith.propose.rules.products.product import Product, Schedule
from kernelsmith.propose.rules.products.recognise import Found, product_of, runs_in_tf32
from kernelsmith.propose.rules.products.tensors import Tensors, operands_of
from kernelsmith.propose.rules.space import Parameter, Parameters

_SCRATCH = '''
def scratch(size, alignment, stream):
    """Memory for the tensor descriptors that a kernel makes."""
    return torch.empty(size, dtype=torch.int8, device="cuda")
'''.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A product in a call, and the launch that finishes it."""

    at: int
    found: Found
    last: int
    """The step that is replaced last: its own, or the pointwise launch's."""
    epilogue: Epilogue | None = None
    operands: tuple[Operand, ...] = ()
    """Of the epilogue's pointers."""


def product_sites(call: Call) -> tuple[Site, ...]:
    """All library products of a call, with the epilogues that they could have."""
    tensors, sites, tf32 = Tensors(call), list[Site](), False
    for at, step in enumerate(call.steps):
        if isinstance(step, Library):
            tf32 = tf32 or runs_in_tf32(step, tensors)
            found = product_of(step, tensors)
            if found is not None:
                sites.append(_with_epilogue(call, at, found))
        tensors.follow(step)
    return tuple(_beside_tf32(each) for each in sites) if tf32 else tuple(sites)


def _beside_tf32(site: Site) -> Site:
    product = replace(site.found.product, beside_tf32=True)
    return replace(site, found=replace(site.found, product=product))


def library_share(call: Call, chip: Chip = H200) -> float:
    """How much of a call's time is the library's products, by what they and kernels should take."""
    sites = product_sites(call)
    products = sum(expected_us(each.found.product, "library", chip) for each in sites)
    # One float32 read and one written.
    own = 8 * sum(elements(call).values()) / (BYTES * chip.memory)
    return products / (products + own) if products else 0.0


def product_parameters(call: Call, chip: Chip = H200) -> tuple[Parameter, ...]:
    """What can be chosen about a call's products; empty where it has none."""
    return parameters([each.found.product for each in product_sites(call)], chip)


def product_seeds(call: Call, chip: Chip = H200) -> tuple[tuple[tuple[str, str], ...], ...]:
    """What differs from the defaults, best guess first; only of parameters that there are."""
    return seeds([each.found.product for each in product_sites(call)], chip)


def replaced(call: Call, chosen: Parameters, chip: Chip = H200) -> Call:
    """The call with its products as chosen; itself where all are left to the library.

    Raises:
        NotRecognised: The choices do not go together, or fit none of its products.
    """
    sites = product_sites(call)
    if not sites or chosen["product"] == "library":
        return call
    largest = max(sites, key=lambda each: each.found.product.flop).found.product
    made = _Rewriter(call, chip)
    for number, site in enumerate(sites):
        fused = site.epilogue is not None and chosen["product_epilogue"] == "fused"
        if not fused:
            # A triangle is what follows keeps, not what the product is.
            whole = replace(site.found, product=replace(site.found.product, kept=None))
            site = replace(site, found=whole, last=site.at, epilogue=None, operands=())
        leading = _alike(site.found.product, largest)
        schedule = scheduled(site.found.product, chosen, leading=leading, fused=fused, chip=chip)
        if schedule is not None:
            made.take(number, site, schedule)
    return made.call()


def _alike(one: Product, other: Product) -> bool:
    return (one.batch, one.m, one.n, one.k, one.dtype) == (
        other.batch, other.m, other.n, other.k, other.dtype,
    )  # fmt: skip


def _with_epilogue(call: Call, at: int, found: Found) -> Site:
    """A product with the pointwise launch that alone uses its result, where it can be fused."""
    alone = Site(at=at, found=found, last=at)
    tensors = _tensors_at(call, at + 1, found)
    for last in range(at + 1, len(call.steps)):
        step = call.steps[last]
        if isinstance(step, Allocate | Drop):
            tensors.follow(step)
            continue
        if isinstance(step, Alias):
            if tensors.root(step.of) in {tensors.root(found.a), tensors.root(found.b)}:
                return alone  # an operand's memory may be written next
            tensors.follow(step)
            continue
        if not isinstance(step, Launch):
            return alone
        return _fused(call, alone, last, step, tensors) or alone
    return alone


def _tensors_at(call: Call, end: int, found: Found) -> Tensors:
    tensors = Tensors(call)
    for step in call.steps[:end]:
        tensors.follow(step)
    if found.made is not None:
        tensors.follow(found.made)
    return tensors


def _fused(call: Call, site: Site, last: int, launch: Launch, tensors: Tensors) -> Site | None:
    found = site.found
    kernel = next((each for each in call.kernels if each.name == launch.kernel), None)
    root = tensors.root(Named(name=found.c))
    if kernel is None or root is None or not kernel.types:
        return None
    names = [name for name, _ in kernel.types]
    given = dict(zip(names, launch.operands, strict=False))
    of_c = set()
    for name, operand in given.items():
        tensor = tensors.of(operand)
        if tensor is not None and tensor.root == root:
            if tensor.offset != 0:
                return None
            of_c.add(name)
    if not of_c:
        return None
    epilogue = read_epilogue(kernel, frozenset(of_c), found.product)
    if epilogue is None:
        return None
    stored = {each.pointer for each in epilogue.lines if isinstance(each, Store)}
    written = {tensors.root(given[name]) for name in stored}
    read = {tensors.root(given[name]) for name in epilogue.pointers if name not in stored}
    read |= {tensors.root(each) for each in (found.a, found.b, found.bias)}
    if None in written or written & read:
        return None
    if root not in written and _used_later(call, last, root, tensors):
        return None
    operands = tuple(given[name] for name in epilogue.pointers)
    product = replace(found.product, kept=kept_of(epilogue, found.product))
    found = replace(found, product=product)
    return replace(site, found=found, last=last, epilogue=epilogue, operands=operands)


def _used_later(call: Call, last: int, root: str, tensors: Tensors) -> bool:
    """Whether anything after a step looks at a tensor's memory."""
    later: list[Operand] = []
    for step in call.steps[last + 1 :]:
        later += operands_of(step)
        tensors.follow(step)
    return any(tensors.root(each) == root for each in (*later, *call.results))


class _Rewriter:
    """Puts the steps of a call together anew."""

    def __init__(self, call: Call, chip: Chip) -> None:
        self._call, self._chip = call, chip
        self._steps: dict[int, Sequence[Step]] = {}
        self._kernels: list[Kernel] = []
        self._descriptors = False
        self._conditions = dict(call.conditions)

    def take(self, number: int, site: Site, schedule: Schedule) -> None:
        """Replace one product, and the launch that is fused into it."""
        found = site.found
        operands = Operands(
            a=found.a, b=found.b, bias=found.bias,
            outputs=site.operands or (Named(name=found.c),),
        )  # fmt: skip
        written = write(
            number, found.product, schedule, operands, found.added, site.epilogue, chip=self._chip
        )  # fmt: skip
        needed = {_name(each) for each in (found.a, found.b, found.bias)}
        before: list[Step] = [] if found.made is None else [found.made]
        after: list[Step] = []
        for at in range(site.at + 1, site.last):
            step = self._call.steps[at]
            late = isinstance(step, Drop) and step.name in needed
            (after if late else before).append(step)
            self._steps[at] = ()
        if schedule.precision == "tf32":
            self._conditions["torch.backends.cudnn.allow_tf32"] = "True"
        if schedule.descriptors and schedule.planes == "tile":
            self._aligned(found.a)
            self._aligned(found.b)
        if schedule.descriptors:
            self._descriptors = True
            before.append(
                Library(target="triton.set_allocator", operands=(Verbatim(text="scratch"),))
            )
        self._steps[site.at] = ()
        self._steps[site.last] = (*before, *written.steps, *after)
        self._kernels += written.kernels

    def _aligned(self, operand: Operand) -> None:
        """Ask that what a descriptor begins with lies at a multiple of 16 bytes.

        What the call makes itself does so.

        Raises:
            NotRecognised: It is known not to, or nobody can tell.
        """
        if not isinstance(operand, Named | Viewed):
            raise NotRecognised("nobody can tell where an operand of a product begins")
        if isinstance(operand, Viewed) and operand.offset % 8:
            raise NotRecognised("operands that lie so are not copied by descriptor")
        made = {each.name for each in self._call.steps if isinstance(each, Allocate)}
        path = {each.name: each.path for each in self._call.arguments}.get(operand.name)
        if path is not None:
            self._conditions[f"{path}.data_ptr() % 16"] = "0"
        elif operand.name not in made:
            raise NotRecognised("nobody can tell where an operand of a product begins")

    def call(self) -> Call:
        """The whole, without kernels that nothing launches any more."""
        call = self._call
        steps: list[Step] = []
        for at, step in enumerate(call.steps):
            steps += self._steps.get(at, (step,))
        launched = {each.kernel for each in steps if isinstance(each, Launch)}
        kernels = (*call.kernels, *self._kernels)
        prelude = call.prelude
        if self._descriptors:
            prelude = f"{prelude}\n\n\n{_SCRATCH}" if prelude else _SCRATCH
        return replace(
            call, steps=tuple(steps), prelude=prelude, conditions=tuple(self._conditions.items()),
            kernels=tuple(each for each in kernels if each.name in launched),
        )  # fmt: skip


def _name(operand: Operand) -> str | None:
    return operand.name if isinstance(operand, Named | Viewed) else None
