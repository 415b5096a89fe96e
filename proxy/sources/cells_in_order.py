"""Every cell of a loaded table with its count, as bytes in a canonical order.

Cells are sorted by their positions, column after column, so that the result does not depend on the
order of the file. A large table is sorted in consecutive pieces, so that the memory needed does not
grow with it. All of this is private.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from proxy.sources.closed import Connection

N_RECORDS_AT_ONCE = 2**20
N_CELLS_A_BATCH = 2**16
EVERYTHING = "true"


def counting_sql(columns: Iterable[str], condition: str = EVERYTHING) -> str:
    """SQL for the occupied cells of some columns of the table `cells`, and their counts."""
    named = ", ".join(columns)
    if not named:
        return f"SELECT count(*) AS n_records FROM cells WHERE {condition}"  # noqa: S608 - generated names only
    return (
        f"SELECT {named}, count(*) AS n_records FROM cells WHERE {condition} "  # noqa: S608 - generated names only
        "GROUP BY ALL ORDER BY ALL"
    )


def cells_in_order(
    columns: Sequence[str], connection: Connection, within: str = EVERYTHING
) -> Iterator[bytes]:
    """Positions in these columns and counts, 64 bits each, little-endian, cell after cell.

    Of the rows within a condition.
    """
    ((n_records,),) = connection.execute(counting_sql((), within)).fetchall()
    for condition in _pieces(columns, within, n_records, connection):
        for batch in connection.sql(counting_sql(columns, condition)).to_arrow_reader(
            N_CELLS_A_BATCH
        ):
            yield cell_bytes(batch)


def cell_bytes(batch: pa.RecordBatch) -> bytes:
    """Cells and their counts, as bytes."""
    arrays = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
    return np.column_stack(arrays).astype("<i8").tobytes()


def _pieces(
    columns: Sequence[str], within: str, n_records: int, connection: Connection
) -> Iterator[str]:
    """Conditions that split the rows within a condition into pieces, in the order of cells."""
    if n_records <= N_RECORDS_AT_ONCE or not columns:
        yield within
        return
    first, *others = columns
    for low, high, n_found in _runs(first, within, connection):
        condition = f"{within} AND {first} BETWEEN {low} AND {high}"
        yield from _pieces(others, condition, n_found, connection)


def _runs(column: str, within: str, connection: Connection) -> list[tuple[int, int, int]]:
    """Runs of levels (low, high, number of records), each run small enough where possible."""
    runs: list[tuple[int, int, int]] = []
    found = connection.execute(counting_sql([column], within))
    while levels := found.fetchmany(N_CELLS_A_BATCH):
        for level, n_records in levels:
            low, _, n_before = runs[-1] if runs else (level, level, N_RECORDS_AT_ONCE)
            if n_before + n_records <= N_RECORDS_AT_ONCE:
                runs[-1] = low, level, n_before + n_records
            else:
                runs.append((level, level, n_records))
    return runs
