"""Small things that the trusted process says about tensors."""

import torch

from kernelsmith.evaluate.worker.answers import Answer, Output
from kernelsmith.evaluate.worker.cuda import compare
from kernelsmith.evaluate.worker.inputs import InputSet
from kernelsmith.evaluate.worker.trees import describe


def described(each: Output) -> dict[str, object]:
    """The form of an answer, and the numbers that a judge needs of it."""
    eager = each.eager
    is_float = eager.is_floating_point()
    error = 0.0
    if is_float:
        error = compare.distance(
            eager, each.exact, eager, atol=float("inf"), rtol=0.0, allowed=float("inf")
        ).error
    return {
        "path": each.path,
        "eager": describe(eager),
        "eager_error": plain(error),
        "scale": compare.rms(each.exact) if is_float else 0.0,
        "finite": compare.is_finite(eager) if is_float else True,
        "aliases": each.aliases,
        "kept": each.kept,
    }


def summary(found: Answer) -> dict[str, object]:
    """All that a judge is told of an answer."""
    return {
        "tree": found.tree,
        "outputs": [described(each) for each in found.outputs],
        "mutated": [[leaf, described(each)] for leaf, each in found.mutated],
        "buffers": [[key, described(each)] for key, each in found.buffers],
        "exact": found.exact,
    }


def plain(value: float) -> float | str:
    """JSON has no infinity."""
    return value if value - value == 0 else repr(value)


def attach_scores(output: Output, leaves: list[torch.Tensor]) -> None:
    """Find out what an integer output indexes, so that ties are judged by value."""
    if output.scores is not None or output.eager.dtype not in (torch.int64, torch.int32):
        return
    if found := compare.infer_scores(output.eager, leaves):
        position, output.dim, flattened = found
        scores = leaves[position]
        output.scores = scores.reshape(-1) if flattened else scores


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors hold the same bytes, NaN or not."""
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    return bool(torch.equal(a.view(whole), b.view(whole)))


def set_bytes(chosen: InputSet) -> int:
    """Memory of an input set."""
    return sum(leaf.untyped_storage().nbytes() for leaf in chosen.leaves)


def answer_bytes(found: Answer) -> int:
    """Memory of an answer."""
    return sum(each.eager.nbytes + each.exact.nbytes for each in found.outputs)
