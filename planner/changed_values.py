"""Values of a column that count as others than they are: clamped ones, and those of OTHER."""

from dataclasses import dataclass

from cube.query import QueryBlock


@dataclass(frozen=True, slots=True)
class ChangedValues:
    """Which values they are, and how their rows are counted.

    Parameters
    ----------
    table : str
    said : str
        A sentence on what they count as.
    rows_said : str
        What is said of the rows that `rows` counts, after their number.
    rows : QueryBlock
        Counts the rows with a value that others count as, in one row. A row whose value is exactly
        a bound is among them.
    """

    table: str
    said: str
    rows_said: str
    rows: QueryBlock
