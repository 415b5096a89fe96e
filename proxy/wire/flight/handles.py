"""What the server keeps between two calls of one client: prepared statements and results.

A key is 128 random bits, and gives an item only to the caller who stored it. Everything kept can be
obtained again without charge (a result from history, a statement by preparing it again), so a full
store may forget its least recently used items. Nothing here is durable.

If a server has several workers, a key begins with the place of the one that holds its item, and the
others ask that one. Whether the caller may have it is decided where it is held.
"""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from cube.refusals import UnknownTicket
from proxy.workers.crew import ALONE, Crew

KEY_BYTES = 16

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class _Held(Generic[Item]):
    """An item, its owner, and its size."""

    item: Item
    owner: Hashable
    n_bytes: int


class HandleStore(Generic[Item]):
    """Items under unguessable keys, bounded in number and in bytes.

    The newest item is always kept, whatever its size: a client that was just charged must be able
    to fetch its result.

    Parameters
    ----------
    item_name : str
        The name of an item in messages, such as "result".
    again : str
        A sentence that says how a client gets a forgotten item again.
    n_items_max, n_bytes_max : int
        Beyond either limit, the least recently used items are forgotten.
    crew : Crew
        The workers that have stores of the same name.
    """

    def __init__(
        self,
        item_name: str,
        *,
        again: str,
        n_items_max: int,
        n_bytes_max: int,
        crew: Crew = ALONE,
    ) -> None:
        self._item_name = item_name
        self._again = again
        self._crew = crew
        self._mark = b"" if crew.seat.is_alone else bytes([crew.seat.place])
        self._n_items_max = n_items_max
        self._n_bytes_max = n_bytes_max
        self._lock = threading.Lock()
        self._held: OrderedDict[bytes, _Held[Item]] = OrderedDict()
        self._n_bytes = 0
        crew.answer(item_name, self._answer)

    def put(self, item: Item, n_bytes: int, owner: Hashable) -> bytes:
        """Keep an item of a stated size for its owner; the key to it."""
        key = self._mark + secrets.token_bytes(KEY_BYTES)
        with self._lock:
            self._held[key] = _Held(item, owner, n_bytes)
            self._n_bytes += n_bytes
            while len(self._held) > 1 and self._is_over_full():
                _, forgotten = self._held.popitem(last=False)
                self._n_bytes -= forgotten.n_bytes
        return key

    def get(self, key: bytes, owner: Hashable) -> Item:
        """The item under a key, which becomes the most recently used.

        Raises
        ------
        UnknownTicket
            If it was forgotten, closed, never here, or belongs to another caller.
        """
        found = self._found(key, owner)
        if found is None:
            found = self._asked("get", key, owner)
        if found is None:
            raise UnknownTicket(
                f"This server no longer holds that {self._item_name}.", hint=self._again
            )
        return found

    def change(self, key: bytes, item: Item, owner: Hashable) -> None:
        """Keep a changed item under the key of the one that it was; nothing if that is gone."""
        with self._lock:
            if self._is_held(key, owner):
                self._held[key] = replace(self._held[key], item=item)
                return
        self._asked("change", key, owner, item)

    def discard(self, key: bytes, owner: Hashable) -> None:
        """Forget an item; no error if it is not here, so that closing twice is harmless."""
        with self._lock:
            if self._is_held(key, owner):
                self._n_bytes -= self._held.pop(key).n_bytes
                return
        self._asked("discard", key, owner)

    def __len__(self) -> int:
        with self._lock:
            return len(self._held)

    def _found(self, key: bytes, owner: Hashable) -> Item | None:
        """The item under a key of this worker, which becomes the most recently used."""
        with self._lock:
            if not self._is_held(key, owner):
                return None
            self._held.move_to_end(key)
            return self._held[key].item

    def _asked(self, what: str, key: bytes, owner: Hashable, item: Item | None = None) -> Any:
        """What the worker that holds a key says; None if this one does, or would."""
        if not self._mark or len(key) != len(self._mark) + KEY_BYTES or key[:1] == self._mark:
            return None
        return self._crew.ask(key[0], self._item_name, (what, key, owner, item))

    def _answer(self, question: tuple[str, bytes, Hashable, Any]) -> Item | None:
        """What another worker is told of an item here."""
        what, key, owner, item = question
        match what:
            case "get":
                return self._found(key, owner)
            case "change" if item is not None:
                self.change(key, item, owner)
            case "discard":
                self.discard(key, owner)
        return None

    def _is_held(self, key: bytes, owner: Hashable) -> bool:
        return key in self._held and self._held[key].owner == owner

    def _is_over_full(self) -> bool:
        return len(self._held) > self._n_items_max or self._n_bytes > self._n_bytes_max
