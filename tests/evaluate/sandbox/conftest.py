"""The zygote that these tests share, and children of it."""

from collections.abc import Iterator

import pytest
from sandbox_children import Spawn, a_zygote, spawner

from kernelsmith.evaluate.sandbox.child import Child
from kernelsmith.evaluate.sandbox.process import Zygote


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
