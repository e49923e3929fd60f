"""Rows put in order, and what is computed with the value of some rank in them."""

from kernelsmith.propose.rules.graph import POLYNOMIAL
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.candidate import Parts, Written
from kernelsmith.propose.rules.kinds.sort import cpu, triton
from kernelsmith.propose.rules.kinds.sort.graph import Selected, Sorted
from kernelsmith.propose.rules.kinds.sort.reading import read
from kernelsmith.propose.rules.kinds.trace import Traced
from kernelsmith.propose.rules.plan import can_keep
from kernelsmith.propose.rules.space import Parameters, Space


def recognise(traced: Traced, backend: str) -> Written:
    """``sort``, ``argsort`` or a large ``topk`` over the last dimension, or a value by its rank.

    Raises:
        NotRecognised: It is something else.
    """
    found = read(traced)
    if backend != "cpu":
        triton.check(found)

    def render(chosen: Parameters) -> Parts:
        if isinstance(found, Sorted):
            write = cpu.render_sorted if backend == "cpu" else triton.render_sorted
            return write(found, chosen)
        select = cpu.render_selected if backend == "cpu" else triton.render_selected
        return select(found, chosen)

    if isinstance(found, Sorted):
        does = "Rows are put in order in one kernel, with what is computed before and behind."
    else:
        does = "One kernel finds the value of a rank in each row, and computes the rest with it."
    return Written(backend=backend, module=traced.module, space=_space(found, backend),
                   render=render, does=does)  # fmt: skip


def _space(found: Sorted | Selected, backend: str) -> Space:
    if backend != "cpu":
        if isinstance(found, Sorted):
            made = [p.sized("block", "1024", "elements per program, where rows are short",
                            "256", "512", "1024", "2048", "4096")]  # fmt: skip
        else:
            made = [p.sized("block", "4096", "elements per step", "1024", "2048", "4096", "8192")]
        made.append(p.warps("8"))
        return p.a_space("sort", made, (
            {}, {"warps": "16"}, {"block": "2048", "warps": "4"}, {"warps": "4"},
            {"block": "8192", "warps": "16"}, {"block": "512", "warps": "4"},
        ))  # fmt: skip
    ops = {node.op for node in found.nodes}
    if isinstance(found, Sorted):
        made = [
            p.width(), *p.threads("4096"),
            p.sized("digits", "9", "most bits of a key per pass", "8", "9", "10", "11"),
            p.sized("small", "128", "rows up to this length are ordered by counting",
                    "64", "128", "256", "512"),
        ]  # fmt: skip
    else:
        made = [p.width(), p.unroll("4", "vectors per step", "1", "2", "4"), *p.threads("4096")]
        if can_keep(found.graph):
            made.append(p.choice("keep", ("scratch", "recompute"), "costly values of two sweeps"))
    made += [p.math()] if ops & POLYNOMIAL else []
    return p.a_space("sort", made, (
        {}, {"schedule": "dynamic"}, {"digits": "11"}, {"small": "256"}, {"keep": "recompute"},
        {"width": "8"}, {"digits": "8"}, {"unroll": "2"},
    ))  # fmt: skip
