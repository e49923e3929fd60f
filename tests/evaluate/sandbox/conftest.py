"""A zygote shared by these tests, and short ways to talk to its children."""

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelsmith.evaluate.sandbox.child import Child
from kernelsmith.evaluate.sandbox.process import Zygote

HERE = Path(__file__).parent
INTERPRET = "entries:interpret"

Ask = Callable[..., object]
Spawn = Callable[..., Child]


def a_zygote(*, preload: tuple[str, ...] = (), **options: object) -> Zygote:
    """A zygote that knows the entries of these tests."""
    return Zygote(preload=(*preload, "entries"), search_path=(HERE,), **options)


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


@pytest.fixture(scope="package")
def zygote() -> Iterator[Zygote]:
    """One with torch, as the judge has it."""
    with a_zygote(preload=("torch", "numpy")) as found:
        yield found


@pytest.fixture
def spawn(zygote: Zygote) -> Iterator[Spawn]:
    """Spawn confined children."""
    yield from spawner(zygote)


@pytest.fixture
def child(spawn: Spawn) -> Child:
    """One confined child."""
    return spawn()
