"""Values of the combinations of a campaign, by place, each made when it is first asked for.

A wide campaign has thousands of combinations, and a question touches a few of them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar

Value = TypeVar("Value")


class ByPlace(Mapping[int, Value]):
    """A value for each of some places. Thread-safe, if the function is.

    It takes no lock: two threads that ask at the same time may both make a value, so it is only for
    values that come out the same.

    Parameters
    ----------
    places : collection of int
    make : callable
        Makes the value of a place.
    is_kept : bool
        Whether a value is kept once it is made.
    """

    def __init__(
        self, places: Collection[int], make: Callable[[int], Value], *, is_kept: bool = True
    ) -> None:
        self._places = dict.fromkeys(sorted(places))
        self._make = make
        self._is_kept = is_kept
        self._made: dict[int, Value] = {}

    def __getitem__(self, place: int) -> Value:
        if place in self._made:
            return self._made[place]
        if place not in self._places:
            raise KeyError(place)
        value = self._make(place)
        if self._is_kept:
            self._made[place] = value
        return value

    def __contains__(self, place: object) -> bool:
        return place in self._places

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
