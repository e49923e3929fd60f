"""Short ways for these tests to make children and to talk to them."""

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from kernelsmith.evaluate.sandbox.child import Child
from kernelsmith.evaluate.sandbox.process import Zygote

HERE = Path(__file__).parent
INTERPRET = "sandbox_entries:interpret"

Ask = Callable[..., object]
Spawn = Callable[..., Child]


def a_zygote(*, preload: tuple[str, ...] = (), **options: object) -> Zygote:
    """A zygote that knows the entries of these tests."""
    return Zygote(preload=(*preload, "sandbox_entries"), search_path=(HERE,), **options)


def ask(child: Child, code: str, *, timeout_s: float = 10.0, fds: tuple[int, ...] = ()) -> object:
    """Have the child run ``code`` and return its ``value``, or the name of what it raised."""
    reply = child.call({"code": textwrap.dedent(code)}, timeout_s=timeout_s, fds=fds)
    return reply["error"] if "error" in reply else reply["value"]


def spawner(zygote: Zygote) -> Iterator[Spawn]:
    """Yield what spawns interpreting children that end with the test."""
    children: list[Child] = []

    def spawn(**options: object) -> Child:
        children.append(zygote.spawn(**{"entry": INTERPRET, **options}))
        return children[-1]

    yield spawn
    for child in children:
        child.kill()
