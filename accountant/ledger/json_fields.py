"""The fields of an entry's JSON text, each of exactly the type that is expected of it."""

from typing import Any, TypeAlias

Fields: TypeAlias = dict[str, Any]


def typed(value: Any, expected: type[Any]) -> Any:
    """The value itself; TypeError unless it is of this very type."""
    if type(value) is not expected:  # bool is an int to isinstance, but not here
        raise TypeError(f"expected {expected.__name__}, found {type(value).__name__}")
    return value
