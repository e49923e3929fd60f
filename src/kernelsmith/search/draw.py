"""Random draws that depend on the seed and the number of the ask, and on nothing else."""

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """One ask's own stream: how many draws another ask took, or when, changes nothing here."""

    def __init__(self, seed: int, number: int) -> None:
        digest = hashlib.sha256(f"{seed}/{number}".encode()).digest()
        self.proposer_seed = int.from_bytes(digest[:4]) >> 1
        """For the proposer; 31 bits, which every endpoint takes."""
        self._random = random.Random(int.from_bytes(digest[8:16]))

    def share(self) -> float:
        """A number in [0, 1). The only draw there is: its values are fixed across Pythons."""
        return self._random.random()

    def below(self, count: int) -> int:
        """An index below ``count``, each as likely."""
        return int(self.share() * count)

    def one(self, items: Sequence[T]) -> T:
        """One item, each as likely; O(1)."""
        return items[self.below(len(items))]

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """One item, as likely as its weight says."""
        mark = self.share() * sum(weights)
        for item, weight in zip(items, weights, strict=True):
            mark -= weight
            if mark < 0:
                return item
        return items[-1]
