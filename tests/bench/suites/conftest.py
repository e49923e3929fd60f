"""What is surveyed here is kept here, not in the user's cache."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELSMITH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def put(tmp_path):
    """Write a file of a made-up checkout."""

    def write(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return write
