"""What the compiler launches its kernels with, once it has measured its choices.

Seen at the launch, not afterwards in its modules: with its caches off, the compiler forgets every
module as soon as it is compiled (torch 2.11).
"""

import functools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def launched() -> Iterator[list[Any]]:
    """Note every kernel of the compiler that is launched meanwhile."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    own, found = CachingAutotuner.run, list[Any]()

    @functools.wraps(own)
    def run(self: Any, *args: Any, **keywords: Any) -> Any:
        found.append(self)
        return own(self, *args, **keywords)

    CachingAutotuner.run = run
    try:
        yield found
    finally:
        CachingAutotuner.run = own


def tuned(kernels: Iterable[Any]) -> dict[str, dict[str, int]]:
    """Block sizes, warps and stages of each kernel that the compiler has settled, by its name."""
    found: dict[str, dict[str, int]] = {}
    for kernel in kernels:
        if len(kernel.launchers) != 1:  # it did not come to measuring them
            continue
        chosen = kernel.launchers[0].config
        sizes = {k: v for k, v in chosen.kwargs.items() if isinstance(v, int)}
        found[kernel.inductor_meta["kernel_name"]] = sizes | {
            "num_warps": chosen.num_warps, "num_stages": chosen.num_stages,
        }  # fmt: skip
    return found
