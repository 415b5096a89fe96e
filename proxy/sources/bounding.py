"""At most so many rows of each unit: which are kept depends on the unit's own rows and a key.

Of a unit with more rows, those come first that have the smallest keyed digests of the unit, the
row, and its number among the unit's identical rows. So another unit's rows change nothing, the same
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
    axes = ", ".join(f"axis_{place}" for place in range(len(schema.axes)))
    texts = ", '/', ".join(f"axis_{place}" for place in range(len(schema.axes)))
    inner = f"sha256(concat($1, {texts}, '/', copy_of_row, '/', {UNIT}))"
    return (
        f"SELECT {axes} FROM ("  # noqa: S608 - generated names only
        f"SELECT {axes}, row_number() OVER "
        f"(PARTITION BY {UNIT} ORDER BY sha256(concat($1, {inner})), {axes}, copy_of_row) AS place "
        f"FROM (SELECT *, row_number() OVER (PARTITION BY {UNIT}, {axes}) AS copy_of_row "
        f"FROM ({rows}))) WHERE place <= {schema.rows_per_unit_max}"
    )
