"""A property that is computed once for each instance.

It takes no lock. Up to Python 3.11 the standard library's version takes one lock for all instances
of a class, so that one long computation keeps every other thread waiting. Here, two threads that
ask at the same time may both compute the value, and either result is kept: so it is only for
values that come out the same.
"""

from collections.abc import Callable
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
