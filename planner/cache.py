"""A thread-safe least-recently-used cache with limits on entries and bytes.

Plans and level arrays range from a few bytes to tens of megabytes, so a limit on entries alone
would let a few large ones fill the memory.
"""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Keeps the most recently used values, within two limits.

    A value larger than the limit on bytes is not kept at all.
    """

    def __init__(self, *, n_entries_max: int, n_bytes_max: int) -> None:
        self._n_entries_max = n_entries_max
        self._n_bytes_max = n_bytes_max
        self._n_bytes = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """The value kept for `key`, if any."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def take(self, key: K) -> V | None:
        """The value kept for `key`, if any, which is then kept no longer."""
        with self._lock:
            value, n_bytes = self._entries.pop(key, (None, 0))
            self._n_bytes -= n_bytes
            return value

    def put(self, key: K, value: V, *, n_bytes: int) -> None:
        """Keep `value`, and drop the least recently used values if a limit is passed."""
        with self._lock:
            replaced = self._entries.pop(key, None)
            if replaced is not None:
                self._n_bytes -= replaced[1]
            self._entries[key] = (value, n_bytes)
            self._n_bytes += n_bytes
            while len(self._entries) > self._n_entries_max or self._n_bytes > self._n_bytes_max:
                _, (_, forgotten) = self._entries.popitem(last=False)
                self._n_bytes -= forgotten

    def __len__(self) -> int:
        return len(self._entries)
