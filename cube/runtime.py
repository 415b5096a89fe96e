"""Faster ways around Python's runtime: properties without a lock, and objects that all stay.

`cached_property` takes no lock. Up to Python 3.11 the standard library's version takes one lock for
all instances of a class, so that one long computation keeps every other thread waiting. Here, two
threads that ask at the same time may both compute the value, and either result is kept: so it is
only for values that do not depend on who computes them.

`uncollected` is for making many objects that all stay: meanwhile the garbage collector has nothing
to find. It would look at all of them again and again, which takes a fifth of the time in which a
long ledger is read; and once more right afterwards, as they are all new. So they join the oldest
objects, which are looked at once there are a quarter more of them.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class cached_property(Generic[Value]):  # noqa: N801 - it is used as a decorator
    """As `functools.cached_property`, without a lock.

    >>> class Circle:
    ...     @cached_property
    ...     def area(self) -> float:
    ...         print("computed")
    ...         return 3.0
    >>> one = Circle()
    >>> one.area + one.area
    computed
    6.0
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self._function = function
        self._name = ""
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "cached_property[Value]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: object | None, owner: type) -> "cached_property[Value] | Value":
        if instance is None:
            return self
        # From now on the instance's attribute is found first: this descriptor defines no __set__.
        value = self._function(instance)
        instance.__dict__[self._name] = value
        return value


@contextmanager
def uncollected() -> Iterator[None]:
    """Without collections of cycles, in the whole process; as it was before, afterwards."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():  # what a server froze for good stays so
                gc.freeze()
                gc.unfreeze()  # all is old now: both only move lists
            gc.enable()
