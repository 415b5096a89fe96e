"""Prints what DuckDB's extension does with a database: a cell a line, its name, a tab, and JSON.

Run by `tests/clients/test_matrix.py` in a process of its own, because the extension's version has
to be that of DuckDB, and is seldom that of the DuckDB that the tests import.
"""

import datetime as dt
import json
import os
import sys
from pathlib import Path

GROUPED = " GROUP BY 1 ORDER BY 1"
DAYS = "SELECT joined FROM people WHERE joined "
ASKED = {
    "dates": DAYS + "BETWEEN DATE '2025-03-01' AND DATE '2025-03-03'" + GROUPED,
    "timestamps": DAYS + "> TIMESTAMP '2025-12-29 12:00:00'" + GROUPED,
    "intervals": DAYS + "> DATE '2025-12-29' + INTERVAL '1 day'" + GROUPED,
    "arrays": "SELECT city FROM people WHERE city = ANY(ARRAY['Oslo', 'Rome'])" + GROUPED,  # noqa: S608 - a constant
    "NULLs": "SELECT city FROM people" + GROUPED,  # noqa: S608 - a constant
}
# The extension reads a table by COPY, and sends conditions along.
SCANNED = (
    "SELECT * FROM p.public.cities ORDER BY city",
    "SELECT city FROM p.cities WHERE city = 'Oslo'",
    "SELECT city FROM p.cities WHERE city > 'P'",
    "SELECT city FROM p.cities WHERE city >= 'Oslo' AND country <> 'Italy'",
    "SELECT city FROM p.cities WHERE city IN ('Oslo', 'Paris')",
    "SELECT city FROM p.cities WHERE city LIKE 'R%'",
    "SELECT country FROM p.cities WHERE country IS NOT NULL ORDER BY 1 LIMIT 1",
    "SELECT count(*), min(city) FROM p.cities",
)


def main() -> None:
    """Attach what the environment names, and print."""
    import duckdb  # noqa: PLC0415
    import duckdb_extension_postgres_scanner as packed  # noqa: PLC0415

    (extension,) = Path(packed.__path__[0]).rglob("*.duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"LOAD '{extension}'")
    connection.execute(f"ATTACH '{os.environ['MATRIX_DATABASE']}' AS p (TYPE postgres, READ_ONLY)")
    connection.execute("SET pg_use_ctid_scan = true")
    connection.execute("SET pg_pages_per_task = 1")

    def asked(sql: str) -> duckdb.DuckDBPyConnection:
        return connection.execute(f"SELECT * FROM postgres_query('p', $q${sql}$q$)")  # noqa: S608 - constants

    def told(cell: str, value: object) -> None:
        sys.stdout.write(f"{cell}\t{json.dumps(value)}\n")

    for cell, sql in ASKED.items():
        rows = asked(sql).fetchall()
        told(cell, [one.isoformat() if isinstance(one, dt.date) else one for (one,) in rows])
    cities = asked(ASKED["NULLs"])
    told("metadata", [one[0] for one in cities.description])
    told("cursors", len([*cities.fetchmany(3), *cities.fetchall()]))
    connection.execute("BEGIN")
    asked("SELECT 1").fetchall()
    connection.execute("COMMIT")  # the connection goes back to the extension's own pool
    told("pool reset", asked("SELECT 1").fetchall() == [(1,)])
    told("scanned", [connection.execute(sql).fetchall() for sql in SCANNED])
    connection.execute("DETACH p")


if __name__ == "__main__":
    main()
