"""Bounds the rows of each unit: keeps a limited number of them, or makes one row of shared columns.

*Which rows are kept*, by the unit's own rows and a key. Of a unit with more rows, those come first
that have the smallest keyed digests of the unit, the row, and its number among the unit's identical
rows; of a table that grows, before that, those of the first levels of its axis, so that rows that
come later change nothing. First those at each level of an axis are kept, where they are bounded
too, and of these those in all. So another unit's rows change nothing, the same rows are kept
whenever the same data is read with the same key, and without the key it is impossible to tell, or
arrange, which rows these are. Proof: accountant/proofs/units.md, "Bounding".

*One row for each unit*: the attributes that are the same in all of a unit's rows. All of its rows
are looked at, before any are left out or bounded, so whether a unit has a row, and which, depends
on that unit's rows alone, and on no bound. Proof: accountant/proofs/units.md, "One row for each
unit".

Generated SQL on encoded rows; nothing here opens anything.
"""

from dataclasses import dataclass

from cube.schema import Schema
from planner.domain import owner_of
from proxy.sources.closed import Connection
from proxy.sources.problems import Problems

UNIT = "unit_of_row"  # the column of encoded rows that says whose they are
UNIT_NUMBER = "unit_number"  # the same in the snapshot, without the unit itself
UNIT_DIGEST = "unit_digest"
UNIT_WAS_CUT = "unit_was_cut"  # 1 for units with rows that were left out


@dataclass(frozen=True, slots=True)
class RowsRead:
    """Which rows of the data are read.

    Parameters
    ----------
    key : bytes, optional
        Of the digests by which some rows of a unit are kept, if it may have several.
    n_readable : int, optional
        Rows of later levels of the axis along which the table grows are not there yet.
    """

    key: bytes | None = None
    n_readable: int | None = None


def axis_column(schema: Schema, name: str) -> str:
    """The column of encoded rows that holds the positions of an axis."""
    return f"axis_{[axis.name for axis in schema.axes].index(name)}"


def bounded_rows_sql(schema: Schema, rows: str) -> str:
    """The query of the rows that are kept, and whose they are; its parameter is the key, as text.

    Parameters
    ----------
    schema : Schema
        Of a table whose units may have several rows.
    rows : str
        A query of rows with the columns ``axis_0``, ``axis_1``, ... and `UNIT`.

    Notes
    -----
    The key is hashed before and after the row, as HMAC does, so that a digest tells nothing about
    the digests of longer rows.
    """
    axes = ", ".join(f"axis_{place}" for place in range(len(schema.axes)))
    texts = ", '/', ".join(f"axis_{place}" for place in range(len(schema.axes)))
    inner = f"sha256(concat($1, {texts}, '/', copy_of_row, '/', {UNIT}))"
    earliest = "" if schema.grows is None else f"{axis_column(schema, schema.grows)}, "
    order = f"{earliest}digest, {axes}, copy_of_row"
    found = (
        f"SELECT *, sha256(concat($1, {inner})) AS digest FROM ("  # noqa: S608 - generated names only
        f"SELECT *, row_number() OVER (PARTITION BY {UNIT}, {axes}) AS copy_of_row FROM ({rows}))"
    )
    by = schema.rows_per_unit_max_by
    if by is not None:
        found = _first(by.rows, f"{UNIT}, {axis_column(schema, by.axis)}", order, found)
    return f"SELECT {axes}, {UNIT} FROM ({_first(schema.rows_per_unit_max, UNIT, order, found)})"  # noqa: S608 - the same


def _first(n_rows: int, keys: str, order: str, rows: str) -> str:
    """The query of the first rows of each group, in an order without ties."""
    place = f"row_number() OVER (PARTITION BY {keys} ORDER BY {order})"
    return f"SELECT * FROM ({rows}) QUALIFY {place} <= {n_rows}"  # noqa: S608 - the same


def numbered_units_sql(schema: Schema, rows: str, kept: str, n_before: int = 0) -> str:
    """The query of the rows that are kept, with what stands for their unit; the same parameter.

    The number only tells units apart: it depends on the others, and on how they were read. The
    digest, of 60 bits, depends on the unit and the key alone: by it is decided which of a unit's
    groups count (`accountant/exact/unit_counts.py`).

    Parameters
    ----------
    rows : str
        The query of all rows.
    kept : str
        That of the rows that are kept (`bounded_rows_sql`).
    n_before : int
        How many units have a number already.
    """
    axes = ", ".join(f"axis_{place}" for place in range(len(schema.axes)))
    digest = f"sha256(concat($1, sha256(concat($1, 'unit/', {UNIT}))))"
    return (
        f"WITH kept AS MATERIALIZED ({kept}), "  # noqa: S608 - generated names only
        f"n_kept AS (SELECT {UNIT}, count(*) AS n_kept FROM kept GROUP BY {UNIT}), "
        f"n_all AS (SELECT {UNIT}, count(*) AS n_all FROM ({rows}) GROUP BY {UNIT}), "
        f"units AS (SELECT {UNIT}, row_number() OVER () + {n_before - 1} AS {UNIT_NUMBER}, "
        f"CAST('0x' || substr({digest}, 1, 15) AS BIGINT) AS {UNIT_DIGEST}, "
        f"CAST(n_all > n_kept AS BIGINT) AS {UNIT_WAS_CUT} "
        f"FROM n_kept JOIN n_all USING ({UNIT})) "
        f"SELECT {axes}, {UNIT_NUMBER}, {UNIT_DIGEST}, {UNIT_WAS_CUT} "
        f"FROM kept JOIN units USING ({UNIT})"
    )


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
