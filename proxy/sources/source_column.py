"""A column of a source as SQL sees it."""

from dataclasses import dataclass
from typing import Final

DECIMAL_DIGITS_MAX: Final = 38  # the most that a DECIMAL of DuckDB has


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of the source.

    Parameters
    ----------
    sql : str
        The SQL that names it.
    type_name : str
        Its type, without parameters.
    is_csv : bool
    decimal_places : int, optional
        The digits behind the point, if it is a DECIMAL.
    missing : str
        SQL for whether it has no value, if `sql` may be NULL for a value that is no number.
    decimal_digits : int
        All of its digits, if it is a DECIMAL: at most so many.
    decimal_sign : str
        What stands before the decimals of a number in text.
    """

    sql: str
    type_name: str
    is_csv: bool
    decimal_places: int | None = None
    missing: str = ""
    decimal_digits: int = DECIMAL_DIGITS_MAX
    decimal_sign: str = "."
