"""The family of candidates whose one matrix product is our own, read from the source alone."""

from collections.abc import Sequence
from dataclasses import replace

from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.chip import H200, Chip
from kernelsmith.propose.rules.compiler.call import Call
from kernelsmith.propose.rules.compiler.triton_writer import Shaped, named_apart, triton_candidate
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.products.choose import (
    best_way,
    parameters,
    scheduled,
    seeds,
)
from kernelsmith.propose.rules.products.product import Product
from kernelsmith.propose.rules.products.replace import library_share, product_sites, replaced
from kernelsmith.propose.rules.products.written import written_products
from kernelsmith.propose.rules.space import Parameters, Space

_PRECISION = {
    "fp16x3": "three float16 products of operands split once, at float32's accuracy",
    "bf16x6": "six bfloat16 products that keep all 24 bits",
    "bf16x3": "three bfloat16 products, of about 16 bits",
    "tf32x3": "three TF32 products of split operands",
    "ieee": "plain float32",
    "tf32": "TF32, as the library's convolutions",
}


class ProductFamily:
    """Candidates for a task that is a product and what is elementwise behind it.

    It becomes one kernel (and those that split and repair); where there are several sets of shapes,
    a product that is better left to the library in one of them is left to it there.
    """

    def __init__(self, task: Task, shaped: Sequence[Shaped], chip: Chip = H200) -> None:
        self._task, self._chip = task, chip
        self._shaped = tuple(shaped)
        products = [each for one in shaped for each in _products(one.call)]
        self._space = Space(
            template="products", parameters=parameters(products, chip), seeds=seeds(products, chip)
        )

    @property
    def space(self) -> Space:
        """How the product is computed."""
        return self._space

    @property
    def skips(self) -> bool:
        """Whether only a triangle of a product is kept, and no more of it multiplied."""
        return any(each.kept for one in self._shaped for each in _products(one.call))

    @property
    def library_share(self) -> float:
        """How much of the time would be the library's if the product were left to it."""
        return max(library_share(each.call, self._chip) for each in self._shaped)

    def source(self, chosen: Parameters) -> str:
        """A stand-alone candidate.

        Raises:
            NotRecognised: These choices do not go together; the text says why.
        """
        calls = [replaced(each.call, chosen, self._chip) for each in self._shaped]
        if all(after is each.call for after, each in zip(calls, self._shaped, strict=True)):
            raise NotRecognised("all products are left to the library")
        changed: list[Shaped] = [
            replace(each, call=call)
            for each, call in zip(self._shaped, named_apart(calls), strict=True)
        ]
        words = self.words(chosen)
        return triton_candidate(
            self._task, changed, header=self._space.header(chosen),
            words=f"{words[0].upper()}{words[1:]}.", launches={}, origin="from its source",
        )  # fmt: skip

    def words(self, chosen: Parameters) -> str:
        """What this choice tries and why it may be faster, in one sentence."""
        how = _PRECISION.get(self._precision(chosen), "half precision")
        text = f"products in kernels of their own: {how}"
        if chosen["product_epilogue"] == "fused":
            text += ", with what follows computed before the result is stored"
        changed = self._space.differing(chosen)
        return f"{text}; {changed}" if changed else text

    def _precision(self, chosen: Parameters) -> str:
        """What the largest product is computed in."""
        found = max((p for one in self._shaped for p in _products(one.call)), key=lambda p: p.flop)
        fused = chosen["product_epilogue"] == "fused"
        made = scheduled(found, chosen, leading=False, fused=fused, chip=self._chip)
        return chosen.get("precision", "") if made is None else made.precision


def _products(call: Call) -> list[Product]:
    return [each.found.product for each in product_sites(call)]


def product_family(task: Task, chip: Chip = H200) -> ProductFamily:
    """A family for a task whose source is one product.

    Raises:
        NotRecognised: It is not, or the library is the better choice for it.
    """
    shaped = written_products(task)
    ways = [
        best_way(each.found.product, fused=each.epilogue is not None, chip=chip)
        for one in shaped
        for each in product_sites(one.call)
    ]
    if not ways or set(ways) == {"library"}:
        raise NotRecognised("rules leave this product to the library")
    return ProductFamily(task, shaped, chip)
