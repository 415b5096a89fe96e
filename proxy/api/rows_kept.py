"""Which rows of a private table count, in words: at most so many of each unit, and no others."""

from typing import Final

from cube.schema import Schema
from planner.domain.relations import owner_of

LEFT_OUT: Final = "The others are in no value, and intervals do not allow for them."


def rows_kept(schema: Schema) -> str | None:
    """How many rows of a unit count; None where no unit has rows that are left out.

    A table whose units have one row each leaves none of them out: it is refused if somebody has
    two.

    >>> from cube.axis import CategoryAxis
    >>> axes = (CategoryAxis(name="shop", values=("a", "b")),)
    >>> orders = {"table": "orders", "axes": axes, "n_records_max": 9, "unit": "customer"}
    >>> rows_kept(Schema(**orders, rows_per_unit_max=5))
    'at most 5 rows of each customer count'
    >>> rows_kept(Schema(**orders))
    """
    if schema.rows_per_unit_max == 1:
        return None
    by = schema.rows_per_unit_max_by
    of_each = "" if by is None else f", of them at most {by.rows} for each {by.axis}"
    return f"at most {schema.rows_per_unit_max} rows of each {schema.unit} count{of_each}"


def about_rows(schema: Schema) -> str:
    """Whom the rows of a private table are about, and which are left out."""
    owner = owner_of(schema.table)
    if owner is not None:
        who = f"One record for each unit of {owner}: {schema.unit}."
    elif schema.unit is None:
        who = "Each record is a unit of privacy."
    else:
        who = f"Unit: {schema.unit}."
    kept = rows_kept(schema)
    if kept is not None:
        who += f" {kept[0].upper()}{kept[1:]}. {LEFT_OUT}"
    return who
