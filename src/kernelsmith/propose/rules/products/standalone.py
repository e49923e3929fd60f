"""The family of candidates whose matrix products are our own, the rest as the compiler has it."""

from collections.abc import Sequence
from dataclasses import replace

from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.compiler.call import Call
from kernelsmith.propose.rules.compiler.compiled import CompiledFamily
from kernelsmith.propose.rules.compiler.triton_writer import Shaped, named_apart, triton_candidate
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.products.choose import parameters, seeds
from kernelsmith.propose.rules.products.product import Product
from kernelsmith.propose.rules.products.replace import product_sites, replaced
from kernelsmith.propose.rules.space import Parameter, Parameters, Space

_PRECISION = {
    "fp16x3": "three float16 products of operands split once, at float32's accuracy",
    "bf16x6": "six bfloat16 products that keep all 24 bits",
    "bf16x3": "three bfloat16 products, of about 16 bits",
    "tf32x3": "three TF32 products of split operands",
    "ieee": "plain float32",
}


class ProductFamily:
    """Candidates from captured calls, with library products replaced by Triton kernels.

    A task that is just a product, with or without a pointwise end, becomes one kernel (and those
    that split and repair); in a larger one each product is replaced where it stands.
    """

    def __init__(
        self, task: Task, compiled: CompiledFamily, pairs: Sequence[tuple[str, str]]
    ) -> None:
        self._task = task
        self._compiled = compiled
        self._pairs = tuple(pairs)
        self._space = self._made_space()

    @property
    def space(self) -> Space:
        """Forms and options that have products, and how those are computed."""
        return self._space

    def source(self, chosen: Parameters) -> str:
        """A stand-alone candidate.

        Raises:
            NotRecognised: These choices do not go together; the text says why.
        """
        if (chosen["form"], chosen["option"]) not in self._pairs:
            raise NotRecognised(f"{chosen['form']} was not captured with {chosen['option']}")
        captured = self._compiled.shaped(chosen["form"], chosen["option"])
        calls = [replaced(each.call, chosen) for each in captured]
        if all(after is each.call for after, each in zip(calls, captured, strict=True)):
            raise NotRecognised("all products are left to the library")
        changed: list[Shaped] = [
            replace(each, call=call)
            for each, call in zip(captured, named_apart(calls), strict=True)
        ]
        return triton_candidate(
            self._task, changed, header=self._space.header(chosen),
            words=f"{self.words(chosen).capitalize()}.", launches={},
        )  # fmt: skip

    def words(self, chosen: Parameters) -> str:
        """What this choice tries and why it may be faster, in one sentence."""
        how = _PRECISION.get(chosen.get("precision", ""), "half precision")
        text = f"products in kernels of their own: {how}"
        if chosen["product_epilogue"] == "fused":
            text += ", with what follows computed before the result is stored"
        changed = self._space.differing(chosen)
        return f"{text}; {changed}" if changed else text

    def _made_space(self) -> Space:
        products = [
            each for pair in self._pairs for call in self._calls(pair) for each in _products(call)
        ]
        if not products:
            raise NotRecognised("the task has no matrix product that rules know")
        forms = tuple(dict.fromkeys(form for form, _ in self._pairs))
        options = tuple(dict.fromkeys(option for _, option in self._pairs))
        made = (
            Parameter(name="form", choices=forms, default=forms[0], ordered=False,
                      safe="written" if "written" in forms else None,
                      why="less to compute, by algebra that holds for all inputs"),
            Parameter(name="option", choices=options, default=options[0], ordered=False,
                      why="what the compiler is asked for decides what it fuses"),
            *parameters(products),
        )  # fmt: skip
        begin = seeds(products)
        others = [(("form", form),) for form in forms[1:]]
        others += [(("option", option),) for option in options[1:]]
        return Space(
            template="products", parameters=made, seeds=(*begin[:1], *others, *begin[1:])
        )  # fmt: skip

    def _calls(self, pair: tuple[str, str]) -> tuple[Call, ...]:
        try:
            return self._compiled.calls(*pair)
        except NotRecognised:
            return ()


def _products(call: Call) -> list[Product]:
    return [each.found.product for each in product_sites(call)]


def product_family(
    task: Task, compiled: CompiledFamily, forms: Sequence[str],
    options: Sequence[str] = ("default",),
) -> ProductFamily:  # fmt: skip
    """A family from what torch's compiler was asked already.

    Args:
        task: What to compute.
        compiled: Holds the captured calls, or asks for them.
        forms: Names of forms; those without a product are left out.
        options: Names of compiler options, the default first.

    Raises:
        NotRecognised: No form has a product that rules know.
    """
    pairs = [(form, option) for form in forms for option in options]
    kept = []
    for pair in pairs:
        try:
            calls = compiled.calls(*pair)
        except NotRecognised:
            continue
        if any(_products(call) for call in calls):
            kept.append(pair)
    if not kept:
        raise NotRecognised("the task has no matrix product that rules know")
    return ProductFamily(task, compiled, kept)
