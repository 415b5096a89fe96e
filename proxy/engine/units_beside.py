"""Advice to count units in the table with one row for each, where that counts them better.

It is no other way to the same number: a unit all of whose rows are left out of a table, for want of
a level, is in the table of its units. So a statement is never answered by the other table.
"""

from cube.schema import Schema
from planner.workload import Wanted


def counted_as_rows(units: Schema | None, wanted: Wanted) -> str | None:
    """What to ask instead of a count of units; None if it depends on more than their attributes.

    Parameters
    ----------
    units : Schema, optional
        Of the table with one row for each unit, if there is one that the caller may know of.
    wanted : Wanted
        Counts of rows or of units.
    """
    if units is None or wanted.groups_max is None or wanted.only_cut:
        return None
    if not units.by_name.keys() >= set(wanted.block.scope):
        return None
    return (
        f"COUNT(*) FROM {units.table} counts every {units.unit}, whatever rows are kept, costs no "
        "more, and shares its history."
    )
