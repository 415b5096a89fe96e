"""At most so many rows of each unit: which are kept depends on the unit's own rows and a key.

Of a unit with more rows, those come first that have the smallest keyed digests of the unit, the
row, and its number among the unit's identical rows: first those at each level of an axis, where
they are bounded too, and of these those in all. So another unit's rows change nothing, the same
rows are kept whenever the same data is read with the same key, and nobody without the key can tell,
or arrange, which rows these are. Proof: accountant/proofs/units.md, "Bounding".
"""

from cube.schema import Schema

UNIT = "unit_of_row"  # the column of encoded rows that says whose they are


def bounded_rows_sql(schema: Schema, rows: str) -> str:
    """The query of the rows that are kept, with one parameter: the key, as text.

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
    names = [axis.name for axis in schema.axes]
    axes = ", ".join(f"axis_{place}" for place in range(len(schema.axes)))
    texts = ", '/', ".join(f"axis_{place}" for place in range(len(schema.axes)))
    inner = f"sha256(concat($1, {texts}, '/', copy_of_row, '/', {UNIT}))"
    order = f"digest, {axes}, copy_of_row"
    found = (
        f"SELECT *, sha256(concat($1, {inner})) AS digest FROM ("  # noqa: S608 - generated names only
        f"SELECT *, row_number() OVER (PARTITION BY {UNIT}, {axes}) AS copy_of_row FROM ({rows}))"
    )
    by = schema.rows_per_unit_max_by
    if by is not None:
        found = _first(by.rows, f"{UNIT}, axis_{names.index(by.axis)}", order, found)
    return f"SELECT {axes} FROM ({_first(schema.rows_per_unit_max, UNIT, order, found)})"  # noqa: S608 - the same


def _first(n_rows: int, keys: str, order: str, rows: str) -> str:
    """The query of the first rows of each group, in an order without ties."""
    place = f"row_number() OVER (PARTITION BY {keys} ORDER BY {order})"
    return f"SELECT * FROM ({rows}) QUALIFY {place} <= {n_rows}"  # noqa: S608 - the same
