"""A property that is worked out once for each instance.

It takes no lock. Up to Python 3.11 the standard library's takes one that all instances of a class
share, so that whoever works out something long keeps everybody else waiting. Of two threads that
ask at once, both work it out here, and either result is kept: it is for values that are the same.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class cached_property(Generic[Value]):  # noqa: N801 - it is used as a decorator
    """As `functools.cached_property`, without a lock.

    >>> class Circle:
    ...     @cached_property
    ...     def area(self) -> float:
    ...         print("worked out")
    ...         return 3.0
    >>> one = Circle()
    >>> one.area + one.area
    worked out
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
        # From here on the attribute is found before this descriptor, which sets none, is asked.
        value = self._function(instance)
        instance.__dict__[self._name] = value
        return value
