"""The table of drivers in docs/clients.md: what each does with the PostgreSQL wire.

`tests/clients/test_matrix.py` runs every cell. ``python -m tests.clients.matrix`` prints the table
into the page.
"""

from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[2] / "docs" / "clients.md"
CELLS: Final = (
    *("dates", "timestamps", "intervals", "arrays", "NULLs"),
    *("pool reset", "prepared", "metadata", "cursors"),
)
MARK: Final = "yes"
NONE: Final = "—"  # the driver has no such thing; the page says why


def _all_but(*left_out: str) -> dict[str, str]:
    return {cell: NONE if cell in left_out else MARK for cell in CELLS}


DRIVERS: Final[dict[str, dict[str, str]]] = {
    "psycopg 3": _all_but(),
    "psycopg2": _all_but(),
    "asyncpg, with its pool": _all_but(),
    "pg8000": _all_but(),
    "SQLAlchemy": _all_but(),
    "psqlODBC, through pyodbc": _all_but(),
    "ADBC": _all_but(),
    "connectorx": _all_but("pool reset", "prepared"),
    "DuckDB's postgres extension": _all_but("prepared"),
    "Django": _all_but("prepared"),
    "pgjdbc, simple": _all_but(),
    "pgjdbc, extended": _all_but(),
    "pgjdbc, extendedForPrepared": _all_but(),
    "pgjdbc, extendedCacheEverything": _all_but(),
    "node-postgres": _all_but(),
    "postgres.js": _all_but(),
}
_BEGIN: Final = "<!-- matrix: printed by python -m tests.clients.matrix -->\n"
_END: Final = "<!-- end of the matrix -->\n"


def table() -> str:
    """The table in Markdown."""
    head = f"| driver | {' | '.join(CELLS)} |\n|---|{'---|' * len(CELLS)}\n"
    return head + "".join(
        f"| {driver} | {' | '.join(cells[cell] for cell in CELLS)} |\n"
        for driver, cells in DRIVERS.items()
    )


def page_with_matrix(page: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{table()}\n{_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with_matrix(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
