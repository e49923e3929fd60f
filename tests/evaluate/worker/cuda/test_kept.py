"""What is kept at hand, what has to be made again, and how much lies there at most."""

from kernelsmith.evaluate.worker.cuda.kept import Kept


class Shelf:
    """Values of a size that says itself, and a record of what was made."""

    def __init__(self, most: int) -> None:
        self.made: list[str] = []
        self.kept: Kept[str] = Kept(most, len)

    def get(self, key: str, size: int = 10) -> str:
        def make() -> str:
            self.made.append(key)
            return key * size

        return self.kept.get(key, make)


def test_a_value_is_made_once_while_there_is_room():
    shelf = Shelf(most=100)
    assert shelf.get("a") is shelf.get("a")
    assert shelf.made == ["a"]


def test_the_least_recently_used_goes_first():
    shelf = Shelf(most=20)
    for key in "abc":  # three are there: room is made before one more is added
        shelf.get(key)
    shelf.get("a")
    shelf.get("d")
    assert shelf.made == ["a", "b", "c", "d"]
    shelf.get("a")
    assert shelf.made == ["a", "b", "c", "d"], "it was asked for in between"
    shelf.get("b")
    assert shelf.made[-1] == "b", "it was not"


def test_room_is_made_before_a_value_and_not_after_it():
    alive = []

    def make(key: str) -> str:
        alive.append(sum(len(value) for value, _ in kept._values.values()))
        return key * 60

    kept: Kept[str] = Kept(100, len)
    for key in "abcdef":
        kept.get(key, lambda key=key: make(key))
    assert max(alive) <= 100


def test_one_value_is_kept_however_large():
    shelf = Shelf(most=1)
    shelf.get("a", size=1000)
    shelf.get("a", size=1000)
    assert shelf.made == ["a"]
    shelf.get("b", size=1000)
    shelf.get("a", size=1000)
    assert shelf.made == ["a", "b", "a"]


def test_what_was_made_elsewhere_is_not_made_again():
    shelf = Shelf(most=100)
    shelf.kept.put("a", "from elsewhere")
    assert shelf.get("a") == "from elsewhere"
    assert shelf.made == []


def test_a_value_put_again_counts_once():
    shelf = Shelf(most=100)
    for _ in range(20):
        shelf.kept.put("a", "x" * 60)
    shelf.get("b")
    shelf.get("a")
    assert shelf.made == ["b"]


def test_clearing_forgets_everything():
    shelf = Shelf(most=100)
    shelf.get("a")
    shelf.kept.clear()
    shelf.get("a")
    assert shelf.made == ["a", "a"]
