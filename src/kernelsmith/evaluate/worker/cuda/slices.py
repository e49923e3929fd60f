"""Float64 answers for tasks that the device cannot hold twice over: in slices, or on the host."""

import copy
from contextlib import nullcontext, suppress

import torch

from kernelsmith.evaluate.failure import lacks_memory
from kernelsmith.evaluate.worker.answers import Case, Run, double_by_default
from kernelsmith.evaluate.worker.closeness import close
from kernelsmith.evaluate.worker.cuda.convolutions import ByProducts
from kernelsmith.evaluate.worker.inputs import InputSet
from kernelsmith.evaluate.worker.trees import unflatten

_TIMES = 3
"""Inputs and outputs as float64 take twice their bytes, and a forward some more of such."""
_PARTS = (8, 64)


class DeviceCase(Case):
    """A reference whose float64 run takes as much of the device as there is."""

    crowded = False
    """Whether others use the device meanwhile. They wait for who times and, where it is in the
    middle of an answer, for who checks; the host takes minutes where the device takes a second."""

    def call(self, chosen: InputSet, leaves: list[torch.Tensor], *, double: bool) -> object:
        """Run once; in float64 without the library's convolutions, which are slow at that."""
        with ByProducts() if double else nullcontext():
            return super().call(chosen, leaves, double=double)

    def free_bytes(self) -> int:
        """What could be allocated now."""
        free, _ = torch.cuda.mem_get_info()
        return free + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()

    def exactly(self, chosen: InputSet, eager: Run) -> tuple[Run, bool]:
        """In one go where there is room, else slice by slice, else on the host.

        Beside others slices stay on the device, too: the host's memory is too far away.

        Raises:
            OutOfMemoryError: There is no room beside others.
        """
        needed = _TIMES * sum(each.nbytes for each in (*chosen.leaves, *eager.leaves))
        if needed <= self.free_bytes():
            with suppress(torch.OutOfMemoryError):
                return super().exactly(chosen, eager)
        for parts in _PARTS:
            torch.cuda.empty_cache()  # an error that is still at hand holds what it was about
            try:
                found = self.sliced(chosen, eager, parts)
            except torch.OutOfMemoryError:
                continue
            except (RuntimeError, TypeError, ValueError, LookupError):
                break  # an input that only happens to have as many rows was cut, too
            if found is not None:
                return found, True
            break
        if self.crowded:
            raise torch.OutOfMemoryError("float64 answers: out of memory beside others")
        return self.on_the_host(chosen, eager)

    def give_up(self, error: Exception) -> None:
        """Libraries that find no memory say so in words of their own; alone there may be some."""
        if self.crowded and lacks_memory(str(error)):
            raise torch.OutOfMemoryError(f"out of memory beside others: {error}") from error

    def sliced(self, chosen: InputSet, eager: Run, parts: int) -> Run | None:
        """Exact outputs by slices of the batch; none where slices are not alike.

        They are kept on the host, or beside others on the device. Slices may be taken where every
        output has the batch's size first, nothing is changed in place, and eager gives a slice
        alone what it gives it among the others.
        """
        batch = chosen.leaves[0].shape[0] if chosen.leaves and chosen.leaves[0].dim() else 0
        follows = [leaf.dim() > 0 and leaf.shape[0] == batch for leaf in chosen.leaves]
        alike = batch > 1 and all(out.dim() and out.shape[0] == batch for out in eager.leaves)
        kept = all(torch.equal(a, b) for a, b in zip(chosen.leaves, eager.inputs, strict=True))
        if not alike or not kept or self._changes_buffers(eager):
            return None
        step = -(-batch // parts)

        def part(start: int, *, double: bool) -> list[torch.Tensor]:
            leaves = [
                leaf[start : start + step] if follow else leaf
                for leaf, follow in zip(chosen.leaves, follows, strict=True)
            ]
            if double:
                leaves = [x.double() if x.is_floating_point() else x for x in leaves]
            return self.run(chosen, leaves, double=double).leaves

        for alone, among in zip(part(0, double=False), eager.leaves, strict=True):
            if not _alike(alone, among[:step]):
                return None
        exact = [
            torch.empty(
                out.shape, dtype=torch.float64 if out.is_floating_point() else out.dtype,
                device=out.device if self.crowded else "cpu",
            )
            for out in eager.leaves
        ]  # fmt: skip
        with double_by_default():
            for start in range(0, batch, step):
                for whole, piece in zip(exact, part(start, double=True), strict=True):
                    if piece.dtype is not whole.dtype:
                        return None  # it insists on its own precision
                    whole[start : start + step].copy_(piece)
        return Run(eager.tree, exact, eager.inputs, eager.state, eager.aliases, eager.kept)

    def on_the_host(self, chosen: InputSet, eager: Run) -> tuple[Run, bool]:
        """Run the whole reference in float64 where memory is plenty and time is not."""
        leaves = [x.double().cpu() if x.is_floating_point() else x.cpu() for x in chosen.leaves]
        arguments = unflatten(chosen.tree, leaves)
        assert isinstance(arguments, list)
        host = InputSet(chosen.tree, leaves, chosen.keywords)
        model = None if self.model is None else copy.deepcopy(self.model).cpu()
        case = Case(model, self.function, self.dtype, None, None)
        with torch.device("cpu"):
            return case.exactly(host, eager)

    def _changes_buffers(self, eager: Run) -> bool:
        before = {} if self.model is None else self.model.state_dict()
        return any(not torch.equal(before[key], after) for key, after in eager.state.items())


def _alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape:
        return False
    if not a.is_floating_point():
        return bool(torch.equal(a, b))
    return close(a, b, rtol=1e-2, atol=1e-3)
