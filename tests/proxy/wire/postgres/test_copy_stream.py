"""An answer as a stream: what is escaped, quoted and NULL, held to a real PostgreSQL."""

import pyarrow as pa
import pytest

from planner.sql.cursors import CopyFormat, CopyOut
from proxy.wire.postgres.portals import columns_of
from proxy.wire.postgres.values import stream
from tests.support.postgres import PostgresServer

ROWS = pa.table(
    {
        "n": pa.array([1, None, -3], pa.int64()),
        "t": pa.array(["a\tb\\c\nd", "", None], pa.string()),
        "q": pa.array(['say "hi", you', "plain", "\\."], pa.string()),
        "x": pa.array([0.1, 1e20, None], pa.float64()),
    }
)


@pytest.mark.parametrize(
    ("form", "has_header"),
    [(CopyFormat.TEXT, False), (CopyFormat.CSV, True), (CopyFormat.BINARY, False)],
)
def test_streams_are_those_of_postgresql(
    postgres_server: PostgresServer, form: CopyFormat, has_header: bool
) -> None:
    ours = stream(ROWS, columns_of(ROWS.schema), CopyOut("", form, has_header))
    with postgres_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE copied (n int8, t text, q text, x float8)")
        for row in ROWS.to_pylist():
            cursor.execute("INSERT INTO copied VALUES (%s, %s, %s, %s)", tuple(row.values()))
        header = ", HEADER" if has_header else ""
        with cursor.copy(f"COPY copied TO STDOUT (FORMAT {form.value}{header})") as copy:
            theirs = b"".join(bytes(piece) for piece in copy)
    assert b"".join(ours) == theirs
