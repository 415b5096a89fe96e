"""The fields of an entry's JSON text, each of exactly the type that is expected of it."""

from typing import Any, Final, TypeAlias

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
        raise ValueError(f"a number of {value.bit_length()} bits")
    return value
