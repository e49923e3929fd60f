"""All rules, those that never cost anything first."""

from kernelsmith.propose.rules.rewrite.algebra import (
    fold,
    monotone,
    norms,
    pools,
    products,
    ranges,
    reductions,
    shift,
    tidy,
)
from kernelsmith.propose.rules.rewrite.algebra.rule import Rule

RULES: tuple[Rule, ...] = (
    *tidy.RULES, *ranges.RULES, *reductions.RULES, *pools.RULES, *fold.RULES, *shift.RULES,
    *norms.RULES, *products.RULES, *monotone.RULES,
)  # fmt: skip

TIDY = tuple(each for each in RULES if each.tidy)
COSTED = tuple(each for each in RULES if not each.tidy)
