"""Values that can be made again, kept while there is room for them."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """The most recently used values, up to a number of bytes; always at least one."""

    def __init__(self, most: int, size: Callable[[Value], int]) -> None:
        self.most, self._size = most, size
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of ``key``, made where it is not there (any more)."""
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key][0]
        self._make_room()
        value = make()
        self.put(key, value)
        return value

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a value that was made elsewhere."""
        self._make_room()
        self._values[key] = value, self._size(value)

    def _make_room(self) -> None:
        while sum(size for _, size in self._values.values()) > self.most:
            self._values.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
