"""What a task cannot do without: bytes that every right answer reads or writes, and its products.

An input counts where every place tried in it matters. A place is one sector, the 32 bytes that a
GPU fetches at once: larger ones would count a table of which a gather reads every sixth row. Its
values are made 65,536 times larger, with the sign as it is or turned over, so that they show in a
sum over a billion others, past a ReLU, and in a maximum; zeros stay zero, so that the unused half
of a triangular matrix does not count. Where in doubt, a byte does not count: the floor is there to
show that a time is impossible, and must not accuse by itself.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from kernelsmith.evaluate.worker.answers import Case
from kernelsmith.evaluate.worker.inputs import InputSet
from kernelsmith.evaluate.worker.trees import flatten

Call = Callable[[list[Tensor]], list[Tensor]]

_SECTOR = 32
_FACTORS = (-65536.0, 65536.0)
_WORTH = 1 / 1024
"""Inputs of less than this share of all bytes do not count and are not tried."""
_INDEX_BYTES = 1 << 16
"""Smaller integer inputs do not count: they may be offsets, which are not to be tampered with."""
_NOISE = 16.0
"""By so many times what two equal runs differ, an output has to change to have changed."""
_BLOCK = 1 << 24


def needed(case: Case, chosen: InputSet, seed: int) -> dict[str, object]:
    """Both of a reference on one input set, on the device that this lies on."""

    def call(leaves: list[Tensor]) -> list[Tensor]:
        found: list[Tensor] = []
        with torch.no_grad():
            flatten(case.call(chosen, leaves, double=False), found, by_key=True)
        return found

    own = [leaf.clone(memory_format=torch.preserve_format) for leaf in chosen.leaves]
    generator = torch.Generator(own[0].device if own else "cpu").manual_seed(seed)
    return {"bytes": compulsory_bytes(call, own, generator=generator), "flops": flops(call, own)}


def compulsory_bytes(
    call: Call, leaves: list[Tensor], *, probes: int = 6, generator: torch.Generator
) -> int:
    """Count the bytes of the outputs, and of the inputs that are needed in every place tried.

    Runs ``call`` three times, and for each input up to twice a probe. Puts ``leaves`` back as they
    were; a call that changes its inputs is given copies. An output that is a view of an input, or
    memory that the module keeps, costs nothing.

    Args:
        call: From leaves to outputs; the same outputs for the same leaves, but for rounding.
        leaves: The input tensors of one launch.
        probes: Places tried in each input.
        generator: Where the places come from; on any device.
    """
    if probes < 1:
        raise ValueError(f"a count needs at least one probe; got {probes}")
    copies = [leaf.clone() for leaf in leaves]
    before = [copy._version for copy in copies]
    outputs = call(copies)
    changes = [copy._version != version for copy, version in zip(copies, before, strict=True)]
    views = {_storage(c) for c, changed in zip(copies, changes, strict=True) if not changed}
    written = [out for out in outputs if _storage(out) not in views]
    outputs = [out.clone() if _storage(out) in views else out for out in outputs]
    del copies
    watch = _Watch(call, leaves, outputs, copying=any(changes))
    found = _output_bytes([out for out in written if _storage(out) not in watch.kept])
    least = _WORTH * (found + sum(leaf.nbytes for leaf in leaves))
    for leaf in leaves:
        if leaf.nbytes >= least and _all_matter(watch, leaf, probes, generator):
            found += leaf.nbytes
    return found


def flops(call: Call, leaves: list[Tensor]) -> int | None:
    """Count operations in products and convolutions; ``None`` where there are none to count."""
    counter = _Counter()
    try:
        with counter:
            call(leaves)
    except (AssertionError, LookupError, NotImplementedError, TypeError, ValueError):
        return None  # an operator whose formula does not know this form of it
    return counter.total or None


class _Counter(TorchDispatchMode):
    """Adds up what torch's own formulas say; torch's counter would load its compiler for that."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        formula = flop_registry.get(func._overloadpacket)
        if formula is not None:
            self.total += int(formula(*args, **(kwargs or {}), out_val=result))
        return result


class _Watch:
    """Runs the call again and says whether the outputs are others."""

    def __init__(
        self, call: Call, leaves: list[Tensor], outputs: list[Tensor], *, copying: bool
    ) -> None:
        self._call, self._leaves, self._outputs = call, leaves, outputs
        self._copying = copying
        self._noise = [0.0] * len(outputs)
        self.kept: set[int] = set()
        """Storages that one call after the other hands out."""
        for _ in range(2):
            again = self._run()
            assert again is not None
            self.kept = {_storage(a) for a in outputs} & {_storage(b) for b in again}
            apart = [_apart(a, b) for a, b in zip(self._outputs, again, strict=True)]
            self._noise = [max(pair) for pair in zip(self._noise, apart, strict=True)]

    def changed(self) -> bool:
        """Whether any output is another than on the leaves as they were."""
        again = self._run()
        if again is None or len(again) != len(self._outputs):
            return False
        pairs = zip(self._outputs, again, self._noise, strict=True)
        return any(a.shape == b.shape and _apart(a, b) > _NOISE * noise for a, b, noise in pairs)

    def _run(self) -> list[Tensor] | None:
        leaves = [leaf.clone() for leaf in self._leaves] if self._copying else self._leaves
        try:
            return self._call(leaves)
        except (ValueError, torch.linalg.LinAlgError):
            return None


def _all_matter(watch: _Watch, leaf: Tensor, probes: int, generator: torch.Generator) -> bool:
    flat = _flat(leaf)
    if flat is None or flat.numel() == 0:
        return False
    exact = not leaf.is_floating_point()
    if exact and (leaf.is_complex() or leaf.nbytes < _INDEX_BYTES or _is_sorted(flat)):
        return False
    size = max(1, _SECTOR // leaf.element_size())
    for _ in range(probes):
        start = size * _below(-(-flat.numel() // size), generator)
        place = flat[start : start + size]
        donor = _below(max(1, flat.numel() - size), generator)
        kept = place.clone()
        changes = (
            [flat[donor : donor + len(place)].clone()]
            if exact
            else [_scaled(kept, factor) for factor in _FACTORS]
        )
        if not any(_matters(watch, place, kept, values) for values in changes):
            return False
    return True


def _matters(watch: _Watch, place: Tensor, kept: Tensor, values: Tensor) -> bool:
    place.copy_(values)
    try:
        return watch.changed()
    finally:
        place.copy_(kept)


def _scaled(values: Tensor, factor: float) -> Tensor:
    limit = torch.finfo(values.dtype).max / 8
    return (values.double() * factor).clamp(-limit, limit).to(values.dtype)


def _flat(leaf: Tensor) -> Tensor | None:
    """The same memory as one dimension, or ``None`` where it has gaps or is seen twice."""
    order = sorted(range(leaf.dim()), key=lambda dim: (-leaf.stride(dim), dim))
    dense = leaf.detach().permute(order)
    return dense.view(-1) if dense.is_contiguous() else None


def _is_sorted(flat: Tensor) -> bool:
    return bool((flat[1:] >= flat[:-1]).all())


def _below(bound: int, generator: torch.Generator) -> int:
    return int(torch.randint(bound, (), generator=generator, device=generator.device).item())


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _output_bytes(outputs: list[Tensor]) -> int:
    """What has to be written: views of one another, and repeated values, once."""
    sizes: dict[int, int] = {}
    limits: dict[int, int] = {}
    for out in outputs:
        which = _storage(out)
        sizes[which] = sizes.get(which, 0) + out.nbytes
        limits[which] = out.untyped_storage().nbytes()
    return sum(min(size, limits[which]) for which, size in sizes.items())


def _apart(a: Tensor, b: Tensor) -> float:
    """The largest difference; infinite between unequal integers, forms, or a number and none.

    Goes block by block: a mask over an output of 8 GB would take 2 GB.
    """
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if torch.equal(a, b):
        return 0.0
    a, b = a.reshape(-1), b.reshape(-1)
    worst = 0.0
    for start in range(0, a.numel(), _BLOCK):
        x, y = (each[start : start + _BLOCK] for each in (a, b))
        if not x.is_floating_point():
            return float("inf")
        x, y = x.double(), y.double()
        same = (x == y) | (x.isnan() & y.isnan())
        far = (x - y).abs().masked_fill(same, 0.0)
        worst = max(worst, float(far.nan_to_num(nan=float("inf"), posinf=float("inf")).max()))
    return worst
