"""One row for each unit: the attributes that are the same in all of a unit's rows.

All of its rows are looked at, before any are left out or bounded, so whether a unit has a row, and
which, depends on that unit's rows alone, and on no bound. Proof: accountant/proofs/units.md, "One
row for each unit". Generated SQL on encoded rows; nothing here opens anything.
"""

from cube.schema import Schema
from planner.domain.table_names import owner_of
from proxy.sources.bounding import UNIT
from proxy.sources.closed import Connection
from proxy.sources.problems import Problems


def unit_rows_sql(schema: Schema) -> str:
    """The query of one row for each unit of the table `encoded`, if no attribute varies."""
    axes = ", ".join(f"min(axis_{place}) AS axis_{place}" for place in range(len(schema.axes)))
    return f"SELECT {axes} FROM encoded GROUP BY {UNIT}"  # noqa: S608 - generated names only


def note_varying(schema: Schema, problems: Problems, connection: Connection) -> None:
    """Record each attribute that differs between rows of one unit; whose, and how, is private.

    Levels are compared, so values that no level tells apart do not differ; NULL is a value, and
    what is outside of all levels is one more.

    Parameters
    ----------
    schema : Schema
        Of the table with a row for each unit.
    problems : Problems
        Where problems are recorded.
    connection : Connection
        The database with the rows as they were encoded, and whose they are.
    """
    places = range(len(schema.axes))
    each = ", ".join(f"min(axis_{at}) <> max(axis_{at}) AS varies_{at}" for at in places)
    flags = ", ".join(f"coalesce(bool_or(varies_{at}), false)" for at in places)
    (found,) = connection.execute(
        f"SELECT {flags} FROM (SELECT {each} FROM encoded GROUP BY {UNIT})"  # noqa: S608 - generated names only
    ).fetchall()
    for axis, varies in zip(schema.axes, found, strict=True):
        if varies:
            problems.add(
                ("tables", owner_of(schema.table) or schema.table, "per_unit"),
                f"{axis.name} is not the same in all rows of some unit; leave it out",
            )
