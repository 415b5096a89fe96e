"""A DBAPI cursor over ADBC: one statement at a time, its rows, and its receipt.

A result is fetched whole when its statement is executed: it is small, and what was charged for it
is then here. Writing is refused by the server, not here.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self, TypeAlias

import pyarrow as pa
from adbc_driver_flightsql import dbapi as flight_sql
from adbc_driver_manager import AdbcStatusCode

from tacit_client.accuracy import Accuracy
from tacit_client.errors import NotSupportedError, ProgrammingError, translated
from tacit_client.receipts import Receipt, receipt_of

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]
Row: TypeAlias = tuple[Any, ...]


class Cursor:
    """Executes statements of one connection.

    Parameters
    ----------
    driver : adbc_driver_flightsql.dbapi.Connection
        The driver's connection.
    accuracy : Accuracy
        What statements are asked with that do not say.
    """

    def __init__(self, driver: Any, accuracy: Accuracy) -> None:
        self.arraysize = 1
        self._driver: flight_sql.Connection = driver
        self._accuracy = accuracy
        self._data: pa.Table | None = None
        self._place = 0
        self._is_closed = False

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """Name and Arrow type of each column of the result; None if there is none."""
        if self._data is None or not self._data.schema.names:
            return None
        return [
            (field.name, field.type, None, None, None, None, field.nullable)
            for field in self._data.schema
        ]

    @property
    def rowcount(self) -> int:
        """How many rows the result has; -1 before there is one."""
        return -1 if self._data is None else int(self._data.num_rows)

    @property
    def receipt(self) -> Receipt | None:
        """The receipt of the result; None if nothing private was asked."""
        return None if self._data is None else receipt_of(self._data)

    def execute(self, operation: str, parameters: Parameters | None = None) -> Self:
        """Answer one statement; `parameters` are values of its ``?``, or by name of ``:name``."""
        self._check_open()
        self._data, self._place = None, 0
        self._data = fetched(self._driver, operation, parameters, self._accuracy)
        return self

    def executemany(self, _operation: str, _parameters: Sequence[Parameters]) -> None:
        """Refused: it is for writing, and an answer for each row of values would be lost."""
        raise NotSupportedError(
            "executemany() cannot return results. Call execute() for each row of values."
        )

    def fetchone(self) -> Row | None:
        """The next row; None after the last."""
        return next(iter(self.fetchmany(1)), None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows, as many as `arraysize` says if `size` is left out."""
        rows = rows_of(self._result().slice(self._place, self.arraysize if size is None else size))
        self._place += len(rows)
        return rows

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return self.fetchmany(self._result().num_rows)

    def fetch_arrow_table(self) -> pa.Table:
        """The whole result as Arrow, with the receipt in its schema's metadata."""
        return self._result()

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing: values say their types themselves."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing: results are fetched whole."""

    def close(self) -> None:
        """Forget the result."""
        self._data, self._is_closed = None, True

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _result(self) -> pa.Table:
        self._check_open()
        if self._data is None:
            raise _misused("There is no result. Execute a query first.")
        return self._data

    def _check_open(self) -> None:
        if self._is_closed:
            raise _misused("The cursor is closed.")


def fetched(
    driver: flight_sql.Connection, sql: str, parameters: Parameters | None, accuracy: Accuracy
) -> pa.Table:
    """The whole result of a statement; raises this package's errors."""
    bound: Any = parameters
    if isinstance(parameters, Mapping):  # this driver binds names of Arrow data only
        values = {name: [value] for name, value in parameters.items()}
        bound = pa.RecordBatch.from_pydict(values)
    # The driver's cursors add to their headers, and never replace one: each statement has its own.
    with translated(), driver.cursor(adbc_stmt_kwargs=accuracy.headers) as cursor:
        cursor.execute(sql, bound)
        return cursor.fetch_arrow_table()


def rows_of(data: pa.Table) -> list[Row]:
    """The rows of a table as Python values."""
    if not data.column_names:
        return []
    return list(zip(*(column.to_pylist() for column in data.columns), strict=True))


def _misused(message: str) -> ProgrammingError:
    return ProgrammingError(message, status_code=AdbcStatusCode.INVALID_STATE)
