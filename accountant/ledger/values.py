"""Tools for the values of a ledger: strict fields, sequences that grow, and successors.

The fields of an entry's JSON text are each of exactly the type that is expected of it.

Sequences, sets and maps grow without being copied, each of them immutable to its holder. A history
has tens of thousands of measurements, and every entry makes a new history. A successor of the
longest sequence shares its list; a successor of a shorter one gets a list of its own, so no
sequence ever shows an item that does not belong to it.

The value that follows an immutable one is the same but for some fields. `dataclasses.replace` calls
the constructor with every field, which takes longer than everything else that most entries do to a
history; `successor` copies the fields. It is for values that do not check themselves when they are
made, and have no slots; others are replaced as usual.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Generic, TypeAlias, TypeVar, overload

Item = TypeVar("Item")


class AppendOnly(Sequence[Item]):
    """The first items of a list that only grows. Slices are tuples.

    >>> short = AppendOnly([1, 2])
    >>> long = short.followed_by([3])
    >>> list(short), long[1:], list(short.followed_by([4]))
    ([1, 2], (2, 3), [1, 2, 4])
    """

    __slots__ = ("_items", "_n_items")

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._items = list(items)
        self._n_items = len(self._items)

    def __len__(self) -> int:
        return self._n_items

    @overload
    def __getitem__(self, place: int) -> Item: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, place: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(place, slice):
            start, stop, step = place.indices(self._n_items)
            if step == 1:
                return tuple(self._items[start:stop])
            return tuple(self._items[at] for at in range(start, stop, step))
        return self._items[range(self._n_items)[place]]

    def __iter__(self) -> Iterator[Item]:
        return islice(self._items, self._n_items)

    def followed_by(self, items: Iterable[Item]) -> "AppendOnly[Item]":
        """The sequence with more items at its end. One thread at a time."""
        longer: AppendOnly[Item] = AppendOnly()
        is_longest = len(self._items) == self._n_items
        longer._items = self._items if is_longest else self._items[: self._n_items]
        longer._items.extend(items)
        longer._n_items = len(longer._items)
        return longer


class GrowingSet:
    """Whole numbers to which others are only added.

    >>> GrowingSet([7, 9]).numbers
    (7, 9)
    >>> few = GrowingSet().joined_by([7])
    >>> more = few.joined_by([9])
    >>> 9 in few, 9 in more, len(more)
    (False, True, 2)
    """

    __slots__ = ("_joined", "_size")

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        distinct = dict.fromkeys(numbers)
        # For each number, the size of the set when it joined.
        self._joined = {number: place for place, number in enumerate(distinct)}
        self._size = len(distinct)

    def __contains__(self, number: int) -> bool:
        return self._joined.get(number, self._size) < self._size

    def __len__(self) -> int:
        return self._size

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers, in the order in which they joined."""
        joined = list(self._joined.items())  # at once: a successor may grow meanwhile
        return tuple(number for number, when in joined if when < self._size)

    def joined_by(self, numbers: Iterable[int]) -> "GrowingSet":
        """The set with more numbers. One thread at a time."""
        larger = GrowingSet()
        is_largest = len(self._joined) == self._size
        larger._joined = self._joined if is_largest else self._only_own()
        for number in numbers:
            larger._joined.setdefault(number, len(larger._joined))
        larger._size = len(larger._joined)
        return larger

    def _only_own(self) -> dict[int, int]:
        return {number: when for number, when in self._joined.items() if when < self._size}


Key = TypeVar("Key")
Value = TypeVar("Value")


class GrowingMap(Generic[Key, Value]):
    """Keys with values, to which others are only added; each key once.

    >>> few = GrowingMap().joined_by("a", 1)
    >>> more = few.joined_by("b", 2)
    >>> few.get("b"), more.get("b"), len(more)
    (None, 2, 2)
    """

    __slots__ = ("_joined", "_size")

    def __init__(self, pairs: Iterable[tuple[Key, Value]] = ()) -> None:
        # For each key, the size of the map when it joined.
        self._joined = {key: (place, value) for place, (key, value) in enumerate(pairs)}
        self._size = len(self._joined)

    def get(self, key: Key) -> Value | None:
        """The value of a key; None if it has not joined."""
        found = self._joined.get(key)
        return None if found is None or found[0] >= self._size else found[1]

    def __len__(self) -> int:
        return self._size

    @property
    def pairs(self) -> tuple[tuple[Key, Value], ...]:
        """The keys with their values, in the order in which they joined."""
        joined = list(self._joined.items())  # at once: a successor may grow meanwhile
        return tuple((key, value) for key, (when, value) in joined if when < self._size)

    def joined_by(self, key: Key, value: Value) -> "GrowingMap[Key, Value]":
        """The map with one more key, which it must not have. One thread at a time."""
        is_largest = len(self._joined) == self._size
        larger: GrowingMap[Key, Value] = GrowingMap(() if is_largest else self.pairs)
        if is_largest:
            larger._joined = self._joined
        larger._joined[key] = (self._size, value)
        larger._size = self._size + 1
        return larger


def successor(before: Value, **changed: object) -> Value:
    """The value with other content in some of its fields.

    Raises
    ------
    AttributeError
        If the value has no such field, or is one that checks itself.
    """
    fields = vars(before)
    if hasattr(before, "__post_init__") or not changed.keys() <= fields.keys():
        raise AttributeError(f"{type(before).__name__} has no successor of {sorted(changed)}")
    after = object.__new__(type(before))
    vars(after).update(fields, **changed)
    return after


NUMBER_MAX: Final = (
    2**128
)  # of any number of an entry, whatever it is of: a precision is the largest

Fields: TypeAlias = dict[str, Any]


def typed(value: Any, expected: type[Any]) -> Any:
    """The value itself; TypeError unless it is of this very type.

    Raises
    ------
    TypeError
    ValueError
        If it is a number beyond any that an entry may hold.
    """
    if type(value) is not expected:  # bool is an int to isinstance, but not here
        raise TypeError(f"expected {expected.__name__}, found {type(value).__name__}")
    if expected is int and abs(value) > NUMBER_MAX:
        raise ValueError(f"a number of {value.bit_length()} bits is too large")
    return value
